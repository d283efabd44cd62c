import {
  type Agent,
  assertWritable,
  isTruncated,
  type Message,
  type Part,
  ProtocolError,
  type Reacher,
  type Task,
  TaskState,
  taskStateToJSON,
} from '@baton/a2a';
import {
  historyBefore,
  originJson,
  originOf,
  pointOfFailure,
  reopenedStep,
  runOfEffects,
  stepsToUndo,
  taskOfEffects,
  type TaskOrigin,
  undoEntry,
} from '@baton/agents';
import {
  type Actor,
  type ForkedTurn,
  JournalStore,
  type StoredTask,
  TaskForkStore,
  TaskStore,
} from '@baton/database';
import { Inject, Injectable } from '@nestjs/common';
import { v5 as derivedId, parse, v7 as uuid } from 'uuid';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask } from '../turns/new-task.js';
import { clock } from '@baton/telemetry';
import { continuesMetadata, forkMetadata, undoesMetadata } from './fork-metadata.js';

/** The namespace of the tasks that continue failed ones. */
const CONTINUATIONS = parse('5d0d1c3e-7b36-4f0a-9a52-0c1f6be8a7d4');
/** The namespace of the tasks that undo the steps of canceled ones. */
const UNDOS = parse('b7a2f5c4-6d0e-4c39-8f11-2e9d53a80c76');
/** Tasks that a task can continue, one after the other. */
const MAX_TASKS = 100;
/** Bytes of the messages of the tasks that a task continues, as JSON. */
const MAX_HISTORY_BYTES = 1_048_576;
/** Effects that an answer names. */
const MAX_EFFECTS = 1_000;

/** A failed task that a caller continues. */
export interface TaskContinuation {
  /** The task that continues it. */
  taskId: string;
  agent: Agent;
}

/**
 * Tasks that continue the journals of earlier ones (docs/inside/adr/0067-forks.md). A terminal task never changes, so what continues
 * is a new task.
 */
@Injectable()
export class TaskForks {
  constructor(
    private readonly forks: TaskForkStore,
    private readonly journals: JournalStore,
    private readonly tasks: TaskStore,
    @Inject(AgentDirectory)
    private readonly agents: { find(tenantId: string, id: string): Promise<Agent | undefined> },
    private readonly acceptance: TurnAcceptance,
  ) {}

  /** The task that continues a failed one. Undefined: it was not continued. */
  async continuedAs(
    tenantId: string,
    { id, status }: Pick<Task, 'id' | 'status'>,
  ): Promise<string | undefined> {
    if (status?.state !== TaskState.TASK_STATE_FAILED) return undefined;
    const continuation = continuationOf(id);
    return (await this.acceptance.exists(tenantId, continuation)) ? continuation : undefined;
  }

  /** The task that undoes the steps of a canceled one. Undefined: there is none. */
  async undoneAs(tenantId: string, { id, status }: Pick<Task, 'id' | 'status'>): Promise<string | undefined> {
    if (status?.state !== TaskState.TASK_STATE_CANCELED) return undefined;
    const undo = undoOf(id);
    return (await this.acceptance.exists(tenantId, undo)) ? undo : undefined;
  }

  /**
   * Undo the finished steps of a canceled task that have `compensate`, in a new task with its owner and its context. A repeated call, also
   * after a crash, makes no second task.
   * @returns the new task. Undefined: nothing is to be undone
   * @throws ProtocolError `unsupported-operation` if its agent is disabled; `limit-exceeded` if the tenant's quota has no room
   */
  async undoCanceled(tenantId: string, taskId: string): Promise<string | undefined> {
    const canceled = await this.tasks.get(tenantId, taskId, { artifacts: false });
    if (canceled?.task.status?.state !== TaskState.TASK_STATE_CANCELED) return undefined;
    const id = undoOf(taskId);
    if (await this.acceptance.exists(tenantId, id)) return id;
    const outline = await this.forks.outline(tenantId, taskId);
    const undo = stepsToUndo(outline);
    if (!undo) return undefined;
    const begun =
      undo.begunAt === undefined ? undefined : await this.journals.entry(tenantId, taskId, undo.begunAt);
    const agent = await this.agents.find(tenantId, canceled.agentId);
    if (!agent || agent.status === 'deleted') return undefined;
    if (agent.status) throw refused('its agent is disabled');
    const turn =
      (await this.forks.turn(tenantId, taskId, undo.runId)) ?? (await this.forks.lastTurn(tenantId, taskId));
    if (!turn) return undefined;
    const { task, owner } = canceled;
    await this.createFork(tenantId, {
      source: task,
      turn,
      history: historyBefore({ task, message: turn.message }),
      journal: { dropped: [], added: undoEntry(undo, begun?.value, clock.date().toISOString()) },
      entries: outline.length,
      task: { owner, agent, id, metadata: undoesMetadata(task.id, turn.runId) },
    });
    return id;
  }

  /**
   * Go on with a failed task where it has failed, with the newest version of its agent. What had finished is not done again. The new
   * task has the owner and the context of the failed one. A repeated call, also after a crash, makes no second task.
   * @param by for the audit log
   * @throws ProtocolError `task-not-found`; `forbidden` if the caller may only see it; `unsupported-operation` if it has not failed, or
   * its agent is gone; `limit-exceeded` if the tenant's quota has no room
   */
  async continueFailed(
    caller: Reacher & { tenantId: string },
    taskId: string,
    by: Actor,
  ): Promise<TaskContinuation> {
    const { tenantId } = caller;
    const failed = await this.tasks.get(tenantId, taskId, { artifacts: false });
    const turn = await this.forks.lastTurn(tenantId, taskId);
    if (!failed || !turn) throw ProtocolError.taskNotFound(taskId);
    assertWritable(caller, failed.owner);
    assertFailed(failed);
    const agent = await this.agents.find(tenantId, failed.agentId);
    if (!agent || agent.status) {
      throw refused(
        'its agent no longer exists or is disabled: enable it, or send the message to another agent',
      );
    }
    const id = continuationOf(taskId);
    if (await this.acceptance.exists(tenantId, id)) return { taskId: id, agent };
    const isNew = await this.makeContinuation(tenantId, { failed, turn, agent, id });
    if (isNew) await this.forks.noteContinued(tenantId, taskId, id, by);
    return { taskId: id, agent };
  }

  /**
   * Make a new task of the caller from any task, with its history and its journal up to an entry.
   * @throws ProtocolError `task-not-found`; `invalid-params` if there is no such entry; `unsupported-operation` if the agent is gone;
   * `limit-exceeded` if the tenant's quota has no room
   */
  async fork(caller: Reacher & { tenantId: string }, taskId: string, wanted: WantedFork): Promise<Forked> {
    const { tenantId } = caller;
    const source = await this.tasks.get(tenantId, taskId, { artifacts: false });
    const outline = source && (await this.forks.outline(tenantId, taskId));
    if (!source || !outline) throw ProtocolError.taskNotFound(taskId);
    const at = wanted.at ?? outline.at(-1)?.position ?? 0;
    const last = outline.find(({ position }) => position === at);
    if (!last && at > 0) {
      throw ProtocolError.invalidParams(
        'at',
        `must be the entry of a span: the task has ${outline.length} entries`,
      );
    }
    const turn = last
      ? await this.forks.turn(tenantId, taskId, last.runId)
      : await this.forks.lastTurn(tenantId, taskId);
    if (!turn) {
      throw ProtocolError.invalidParams(
        'at',
        'is an entry of the task that this one continues: fork that one',
      );
    }
    const { undoneAt = Infinity } = pointOfFailure(outline, turn.runId);
    if (at >= undoneAt) {
      throw ProtocolError.invalidParams(
        'at',
        `must be less than ${undoneAt}: from that entry on the task undoes its finished steps`,
      );
    }
    const doneAgain = await this.effectsAfter(tenantId, taskId, at);
    if (wanted.isDryRun) return { at, doneAgain };
    const agent = await this.agents.find(tenantId, wanted.agentId ?? source.agentId);
    if (!agent || agent.status) throw refused('the agent no longer exists or is disabled: name another one');
    const id = uuid();
    const { message } = turn;
    const forked = wanted.parts ? { ...message, messageId: uuid(), parts: wanted.parts } : message;
    await this.createFork(tenantId, {
      source: source.task,
      turn: { ...turn, message: forked },
      history: historyBefore({ task: source.task, message }),
      journal: { dropped: outline.filter(({ position }) => position > at).map(({ position }) => position) },
      entries: outline.length,
      isFork: true,
      task: { owner: caller.principal.key, agent, id, metadata: forkMetadata(taskId, turn.runId, at) },
    });
    return { taskId: id, at, doneAgain };
  }

  /** What a task has done after an entry of its journal, as far as it has effects. */
  private async effectsAfter(tenantId: string, taskId: string, at: number): Promise<DoneAgain[]> {
    const steps = await this.journals.steps(tenantId, taskId);
    const tools = await this.journals.toolCalls(tenantId, taskId, MAX_EFFECTS);
    const ofSteps = steps.flatMap(({ position, kind, name }): DoneAgain[] => {
      if (kind === 'agent') return [{ entry: position, kind, name }];
      return kind === 'run' ? [{ entry: position, kind: 'step', name }] : [];
    });
    const ofTools = tools.map(({ position, tool }) => ({
      entry: position,
      kind: 'tool' as const,
      name: tool,
    }));
    const all = [...ofSteps, ...ofTools].filter(({ entry }) => entry > at);
    return all.sort((a, b) => a.entry - b.entry).slice(0, MAX_EFFECTS);
  }

  /** The task that continues a failed one. @returns whether this call has made it */
  private async makeContinuation(
    tenantId: string,
    { failed, turn, agent, id }: { failed: StoredTask; turn: ForkedTurn; agent: Agent; id: string },
  ): Promise<boolean> {
    const { task, owner } = failed;
    const outline = await this.forks.outline(tenantId, task.id);
    const { dropped, reopened, undoneAt, undoesCanceled } = pointOfFailure(outline, turn.runId);
    if (undoneAt !== undefined && !undoesCanceled) {
      throw refused('it has undone its finished steps: send its message again');
    }
    const changed = [];
    for (const position of reopened) {
      const entry = await this.journals.entry(tenantId, task.id, position);
      const value = reopenedStep(entry?.value);
      if (value) changed.push({ position, value });
    }
    return this.createFork(tenantId, {
      source: task,
      turn,
      history: historyBefore({ task, message: turn.message }),
      journal: { dropped, changed },
      entries: outline.length,
      task: { owner, agent, id, metadata: continuesMetadata(task.id, turn.runId) },
    });
  }

  /**
   * Copies the journal, then makes the task: no attempt can run without it.
   * @returns whether this call has made the task
   */
  private async createFork(
    tenantId: string,
    { source, turn, task, journal, ...from }: NewFork,
  ): Promise<boolean> {
    const earlier = originOf(await this.forks.firstEntry(tenantId, source.id));
    const dropped = earlier ? [1, ...journal.dropped] : journal.dropped;
    const origin = originJson({
      taskIds: [source.id, ...(earlier?.taskIds ?? [])].slice(0, MAX_TASKS),
      history: [...(earlier?.history ?? []), ...from.history],
      copied: from.entries - dropped.length,
      effectsOf: from.isFork ? undefined : effectsOf(source, turn.runId, earlier),
    });
    if (isTruncated(source) || Buffer.byteLength(JSON.stringify(origin)) > MAX_HISTORY_BYTES) {
      throw refused('the messages before that turn are too large: send its message again');
    }
    const copiedBytes = await this.forks.copyJournal({
      tenantId,
      source: { taskId: source.id, runId: turn.runId },
      taskId: task.id,
      origin,
      dropped,
      changed: journal.changed ?? [],
      added: journal.added,
    });
    const { owner, agent, id, metadata } = task;
    try {
      return await this.acceptance.ensureTask({
        tenantId,
        owner,
        agent,
        task: newTask(turn.message, { id, contextId: source.contextId, metadata }),
        details: turn.details,
        extensions: turn.extensions,
        copiedBytes,
        isStable: true,
      });
    } catch (error) {
      await this.forks.discard(tenantId, id);
      throw error;
    }
  }
}

/** The task and the run whose effects a failed task has made: its own, or those with which it went on itself. */
const effectsOf = (task: Task, runId: string, origin: TaskOrigin | undefined) => ({
  taskId: taskOfEffects({ task, origin }),
  runId: runOfEffects({ task, origin, runId }),
});

/** What a fork is made of. */
export interface WantedFork {
  /** The last entry of the journal that it takes over. Unset: all. */
  at: number | undefined;
  /** Another message for the turn. Unset: that of the turn. */
  parts: Part[] | undefined;
  /** Another agent. Unset: that of the task. */
  agentId: string | undefined;
  /** Make no task. */
  isDryRun: boolean;
}

/** A step with a function, a call of an agent or a tool call. */
export interface DoneAgain {
  /** The last entry about it in the journal of the task. */
  entry: number;
  kind: 'step' | 'agent' | 'tool';
  name: string;
}

/** A fork, or what it would be. */
export interface Forked {
  /** Unset: a dry run. */
  taskId?: string;
  /** The last entry that is taken over. 0: none. */
  at: number;
  /** What the task has done after that entry, and the fork may do once more. */
  doneAgain: DoneAgain[];
}

interface NewFork {
  source: Task;
  /** The turn that continues. */
  turn: ForkedTurn;
  /** The messages of the source before that turn. */
  history: Message[];
  journal: {
    dropped: readonly number[];
    changed?: readonly { position: number; value: unknown }[];
    /** The entry after them. */
    added?: object;
  };
  /** Number of entries in the journal of the source. */
  entries: number;
  isFork?: true;
  task: { owner: string | null; agent: Agent; id: string; metadata: Record<string, unknown> };
}

/** One failed task is continued by one task, whose id follows from it. So a repeated call finds it. */
const continuationOf = (taskId: string): string => derivedId(taskId, CONTINUATIONS);

/** The steps of a canceled task are undone by one task, whose id follows from it. */
const undoOf = (taskId: string): string => derivedId(taskId, UNDOS);

const refused = (reason: string): ProtocolError => new ProtocolError('unsupported-operation', reason);

function assertFailed({ task }: StoredTask): void {
  const { state = TaskState.TASK_STATE_UNSPECIFIED } = task.status ?? {};
  if (state === TaskState.TASK_STATE_FAILED) return;
  throw refused(`only a failed task can be continued, and its state is ${taskStateToJSON(state)}`);
}
