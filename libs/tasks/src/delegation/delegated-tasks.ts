import {
  type Agent,
  type Message,
  ProtocolError,
  Role,
  type Task,
  TaskState,
  dataPart,
  endsTurn,
  textPart,
  wellFormed,
} from '@baton/a2a';
import {
  type ChildAnswer,
  ChildRefusal,
  type ChildRequest,
  type ChildTask,
  ChildTasks,
  type Decision,
  MAX_REASON,
  SENT_BY_AGENT,
  type Turn,
  approvalsOf,
  asksForApproval,
  withApprover,
} from '@baton/agents';
import {
  type Ancestor,
  TaskTreeStore,
  type MessageKey,
  ParentOverError,
  RetentionStore,
  type StoredTask,
  TaskStore,
  TooManyChildrenError,
  retryTransient,
} from '@baton/database';
import { Injectable } from '@nestjs/common';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask } from '../turns/new-task.js';
import { AppendRefused } from '../core/append-refused.js';
import { childIdOf } from '../core/child-id.js';
import { childAnswerKey, childApprovalKey, childContextId, childMessageId } from './child-ids.js';

/** A child's metadata names its parent under this key. Callers can write the key too, so nothing depends on it. */
const METADATA_KEY = 'baton.parent';
/** How long to keep the key of an answer to a child. A parent may wait long before it asks for the result. */
const ANSWER_HOURS = 8760;

/** Children are ordinary tasks: they are accepted, dispatched, executed and kept like the tasks of callers. */
@Injectable()
export class DelegatedTasks extends ChildTasks {
  constructor(
    private readonly tasks: TaskStore,
    private readonly taskTree: TaskTreeStore,
    private readonly retention: RetentionStore,
    private readonly acceptance: TurnAcceptance,
  ) {
    super();
  }

  override async call(turn: Turn, request: ChildRequest): Promise<ChildTask> {
    const { taskId, signal } = request;
    return retryTransient(
      () => (taskId === undefined ? this.start(turn, request) : this.sendMessage(turn, request, taskId)),
      { signal },
    );
  }

  override async answer(turn: Turn, answer: ChildAnswer): Promise<ChildTask> {
    return retryTransient(() => this.forwardAnswer(turn, answer), { signal: answer.signal });
  }

  private async start(turn: Turn, request: ChildRequest): Promise<ChildTask> {
    const { tenantId } = turn;
    const id = childIdOf(turn.task.id, request.callId);
    const ancestors = await this.taskTree.ancestors(tenantId, turn.task.id);
    const found = await this.find(tenantId, id, ancestors.length);
    if (found) return found;
    if (await this.retention.findTombstone(tenantId, id)) {
      throw new ChildRefusal('The answer of the agent was deleted by retention');
    }
    assertAllowed(ancestors, request);
    const child = newChild(turn, request, id, ancestors.length);
    const { runId, attempt } = turn;
    const { agent, limits, traceparent = turn.traceparent } = request;
    const parent = { tenantId, taskId: turn.task.id, runId, attempt };
    const rootTaskId = ancestors.at(-1)?.taskId ?? turn.task.id;
    const isMade = await this.acceptance
      .ensureTask({
        tenantId,
        agent,
        task: child,
        traceparent,
        child: { parent, rootTaskId, maxTasks: limits.tasks },
      })
      .catch((error: unknown) => {
        throw explained(error, request);
      });
    if (isMade) return { task: child, depth: ancestors.length, isAtWork: true };
    return this.found(tenantId, id, ancestors.length);
  }

  /** Send an agent's answer to a child that asked for input, once. It never counts as a decision on an approval. */
  private async sendMessage(turn: Turn, request: ChildRequest, taskId: string): Promise<ChildTask> {
    const { agent, callId } = request;
    const { stored, depth } = await this.childOf(turn, agent, taskId);
    const key = { hash: childAnswerKey(turn, callId), content: null, hours: ANSWER_HOURS };
    if (!(await this.tasks.earlierTurn(turn.tenantId, key))) {
      if (asksForApproval(stored.task.status)) {
        throw new ChildRefusal(
          `taskId: ${agent.slug} waits for a person to approve a call; only a person can answer it, not an agent`,
        );
      }
      const message = userMessage(turn, request, { taskId, contextId: stored.task.contextId });
      const refusal = await this.continue(turn, agent, message, key).catch((error: unknown) => {
        throw explained(error, request);
      });
      if (refusal) throw notAsking(refusal);
    }
    return this.found(turn.tenantId, taskId, depth);
  }

  /** Forward a person's decisions to the child, as if the person had sent them to it. */
  private async forwardAnswer(turn: Turn, answer: ChildAnswer): Promise<ChildTask> {
    const { agent, callId, taskId, number, decisions, by } = answer;
    const { stored, depth } = await this.childOf(turn, agent, taskId);
    const asked = approvalsOf(stored.task.status) ?? [];
    const due = decisions.filter((decision) => asked.some((one) => one.callId === decision.callId));
    const key = { hash: childApprovalKey(turn, callId, number), content: null, hours: ANSWER_HOURS };
    if (due.length > 0 && !(await this.tasks.earlierTurn(turn.tenantId, key))) {
      const { contextId } = stored.task;
      const answer = answerMessage(turn, `${callId} approval ${number}`, due, { taskId, contextId });
      const message = { ...answer, metadata: withApprover(undefined, by) };
      // The child refuses it if it was answered or canceled meanwhile. That is no error. The tenant's limits do not apply:
      // the person's message was already accepted with the parent's turn.
      await this.continue(turn, agent, message, key, { isUnlimited: true });
    }
    return this.found(turn.tenantId, taskId, depth);
  }

  /** @returns why the task takes no message; undefined = it took this one, now or earlier */
  private async continue(
    turn: Turn,
    agent: Agent,
    message: Message,
    key: MessageKey,
    options: { isUnlimited?: boolean } = {},
  ): Promise<'not-found' | 'terminal' | 'busy' | 'late' | undefined> {
    const { tenantId, traceparent } = turn;
    const next = { tenantId, agent, message, key, traceparent, ...options };
    const continued = await this.acceptance.continueTask(next);
    return continued.ok || continued.reason === 'repeated' ? undefined : continued.reason;
  }

  /** A child of this turn's task that belongs to the agent, and its depth. */
  private async childOf(
    { tenantId, task }: Turn,
    agent: Agent,
    taskId: string,
  ): Promise<{ stored: StoredTask; depth: number }> {
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    const ancestors = await this.taskTree.ancestors(tenantId, taskId);
    if (ancestors[1]?.taskId !== task.id || stored?.agentId !== agent.id) {
      throw new ChildRefusal(`taskId: you have given no such task to ${agent.slug}; leave taskId out`);
    }
    return { stored, depth: ancestors.length - 1 };
  }

  private async found(tenantId: string, taskId: string, depth: number): Promise<ChildTask> {
    const child = await this.find(tenantId, taskId, depth);
    if (!child) throw new ChildRefusal('The answer of the agent was deleted by retention');
    return child;
  }

  private async find(tenantId: string, taskId: string, depth: number): Promise<ChildTask | undefined> {
    const stored = await this.tasks.get(tenantId, taskId);
    if (!stored) return undefined;
    const { task } = stored;
    return { task, depth, isAtWork: !endsTurn(task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED) };
  }
}

/** @param ancestors from the asking task up to the root */
function assertAllowed(ancestors: readonly Ancestor[], { agent, limits }: ChildRequest): void {
  if (ancestors.some(({ agentId }) => agentId === agent.id)) {
    throw new ChildRefusal(
      `${agent.slug} is already working on this, or has delegated it: an agent cannot be called in a circle`,
    );
  }
  if (ancestors.length > limits.depth) {
    throw new ChildRefusal(
      `the maximum delegation depth of ${limits.depth} is reached: do it yourself, or answer without it`,
    );
  }
}

/** The error for the asking agent. Errors that the agent cannot correct stay unchanged. */
function explained(error: unknown, { limits }: ChildRequest): unknown {
  if (error instanceof TooManyChildrenError) {
    return new ChildRefusal(
      `the maximum of ${limits.tasks} child tasks for this task is reached: do it yourself, or answer without it`,
    );
  }
  if (error instanceof ParentOverError) return new AppendRefused('another attempt owns the run');
  if (error instanceof ProtocolError && error.kind === 'limit-exceeded') {
    return new ChildRefusal(error.message);
  }
  return error;
}

const notAsking = (reason: 'not-found' | 'terminal' | 'busy' | 'late'): ChildRefusal =>
  new ChildRefusal(
    reason === 'busy' || reason === 'late'
      ? 'taskId: the agent is still working on this task'
      : 'taskId: this task has ended; leave taskId out to begin a new one',
  );

function newChild(turn: Turn, request: ChildRequest, id: string, depth: number): Task {
  const contextId = childContextId(turn, request.agent.id, request.lane);
  const metadata = { [METADATA_KEY]: { taskId: turn.task.id, agent: turn.agent.slug, depth } };
  return newTask(userMessage(turn, request, { taskId: id, contextId }), { id, contextId, metadata });
}

const userMessage = (
  turn: Turn,
  { callId, message, data }: ChildRequest,
  ids: { taskId: string; contextId: string },
): Message => ({
  ...ids,
  messageId: childMessageId(turn, callId),
  role: Role.ROLE_USER,
  // Models write it.
  parts: wellFormed([textPart(message), ...(data === undefined ? [] : [dataPart(data)])]),
  metadata: SENT_BY_AGENT,
  extensions: [],
  referenceTaskIds: [turn.task.id],
});

const answerMessage = (
  turn: Turn,
  name: string,
  decisions: readonly Decision[],
  ids: { taskId: string; contextId: string },
): Message => ({
  ...ids,
  messageId: childMessageId(turn, name),
  role: Role.ROLE_USER,
  parts: decisions.map(({ callId, approved, reason, input }) =>
    dataPart({
      approval: {
        callId,
        approved,
        ...(reason && { reason: reason.slice(0, MAX_REASON).toWellFormed() }),
        ...(input !== undefined && { input }),
      },
    }),
  ),
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [turn.task.id],
});
