import {
  type Agent,
  type Task,
  Artifact,
  type EventPayload,
  type Message,
  type Part,
  Role,
  type TaskArtifactUpdateEvent,
  TaskState,
  type TaskStatus,
  endsTurn,
  isDeeper,
  isTruncated,
  MAX_JSON_DEPTH,
  textPart,
  wellFormed,
  withoutTruncation,
} from '@baton/a2a';
import {
  type GuardedTurn,
  type JournalEntry,
  type TurnJournal,
  type TurnLog,
  type AgentOutput,
  SecretReader,
  SecretGuard,
} from '@baton/agents';
import {
  type ClaimedRun,
  JournalStore,
  TaskStore,
  type LoggedSize,
  type TurnOutcome,
  retryTransient,
} from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import { clock, type Span } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { TenantLimits } from '@baton/config';
import { isDeepStrictEqual } from 'node:util';
import { v7 as uuid } from 'uuid';
import { AppendRefused, TurnFailure } from '../core/errors.js';
import { newContextOf } from '../turns/turn-intake.js';
import { completeOutput } from './complete-output.js';
import { TaskConsoles } from './task-consoles.js';
import { WellFormedOutput } from './well-formed-output.js';

const MAX_REFERENCE_TASKS = 16;
/** Number of earlier tasks of the context that a runtime gets: the default, and the maximum. */
const EARLIER_TASKS = 16;
const MAX_EARLIER_TASKS = 100;

/** Builds the input of a runtime for a turn. */
@Injectable()
export class TurnBuilder {
  constructor(
    private readonly tasks: TaskStore,
    private readonly journals: JournalStore,
    private readonly secrets: SecretReader,
    private readonly outbound: Outbound,
    private readonly limits: LimitsService,
    private readonly consoles: TaskConsoles,
  ) {}

  /** The turn of a claimed run. Its later reads are retried while Postgres is away, until `signal` aborts. */
  async turnOf(
    run: ClaimedRun,
    agent: Agent,
    log: TurnLog,
    signal: AbortSignal,
    span?: Span,
  ): Promise<GuardedTurn> {
    const { tenantId, runId, attempt, details, extensions, runsAlone } = run;
    // Earlier releases have stored what is not well-formed Unicode.
    const { message, task } = wellFormed({ message: run.message, task: run.snapshot.task });
    const secrets = new SecretGuard(this.secrets, tenantId);
    const egress = () => retryTransient(() => this.limits.egress(tenantId), { signal });
    const outbound = () => this.outbound.forTenant(tenantId, egress);
    const console = () => secrets.console(this.consoles.of(run));
    return {
      tenantId,
      runId,
      attempt,
      agent,
      task,
      message,
      details,
      referenceTasks: await retryTransient(() => this.referenceTasks(run), { signal }),
      earlierTasks: (count = EARLIER_TASKS) => this.earlierTasks(run, agent, count, signal),
      journal: secrets.journal(new RunJournal(this.journals, run, signal)),
      log,
      secrets,
      // Made when they are asked for, because many turns call nobody and have no console.
      get outbound() {
        return outbound();
      },
      get console() {
        return console();
      },
      extensions,
      traceparent: run.traceparent ?? undefined,
      span,
      runsAlone,
    };
  }

  /** Only tasks that the owner of this task may read: a caller can name any task. */
  private async referenceTasks({ tenantId, message, owner }: ClaimedRun): Promise<Task[]> {
    const ids = message.referenceTaskIds.slice(0, MAX_REFERENCE_TASKS);
    const found = await Promise.all(ids.map((id) => this.tasks.get(tenantId, id)));
    return found.flatMap((stored) =>
      stored && isReadableBy(owner, stored) ? [wellFormed(stored.task)] : [],
    );
  }

  private async earlierTasks(
    { tenantId, snapshot }: ClaimedRun,
    agent: Agent,
    count: number,
    signal: AbortSignal,
  ): Promise<Task[]> {
    const { contextId, id } = snapshot.task;
    if (contextId === newContextOf(id)) return [];
    const limit = Math.min(count, MAX_EARLIER_TASKS);
    const list = () => this.tasks.listContext(tenantId, agent.id, contextId, id, limit);
    const earlier = await retryTransient(list, { signal });
    return earlier.map((stored) => wellFormed(stored.task));
  }
}

/** Whether a task may be shown to an agent that answers a task of that owner. */
const isReadableBy = (owner: string | null, { owner: theirs }: { owner: string | null }): boolean =>
  theirs === owner || (theirs === null && !owner?.startsWith('guest:'));

/** The journal of a claimed run's task. Entries are written one after another, each until Postgres has answered. */
export class RunJournal implements TurnJournal {
  private head: number | undefined;
  private last: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly store: Pick<JournalStore, 'read' | 'append'>,
    private readonly run: Pick<ClaimedRun, 'tenantId' | 'taskId' | 'runId' | 'attempt'>,
    private readonly signal: AbortSignal,
  ) {}

  read(taskId = this.run.taskId): Promise<JournalEntry[]> {
    return retryTransient(() => this.store.read(this.run.tenantId, taskId), { signal: this.signal });
  }

  append(value: unknown): Promise<void> {
    const written = this.last.then(() => this.write(value));
    this.last = written.catch(() => undefined);
    return written;
  }

  /** A lost answer is asked for again. The entry has a fixed position, so it is written once. */
  private async write(value: unknown): Promise<void> {
    this.head ??= (await this.read()).at(-1)?.position ?? 0;
    const position = this.head + 1;
    const isOurs = await retryTransient(() => this.store.append(this.run, position, value), {
      signal: this.signal,
    });
    if (!isOurs) throw new AppendRefused('another attempt owns the run');
    this.head = position;
  }
}

/** Readers of a log or a list hold the ids and names of all artifacts in memory. Long content belongs into parts. */
const MAX_ARTIFACT_ID_BYTES = 512;
const MAX_ARTIFACT_NAME_BYTES = 4096;

/** One output of an agent, as an event of the log. */
export interface LogEntry {
  payload: EventPayload;
  /**
   * The id of an artifact that is too large for memory. Its content of earlier turns must be in the log before this
   * event (`ArtifactRestorer`).
   */
  restores?: string;
  /** Set when this event ends the turn. */
  end?: { state: TaskState; outcome: TurnOutcome | null };
}

type Metadata = Record<string, unknown>;

/**
 * Converts the output of a runtime into events of this task's log. Ids are the task's own, times are the platform's. A
 * bare message becomes a completed status. A whole task becomes the events that lead to it.
 */
export class TurnOutput {
  private readonly seen = new Set<string>();
  private readonly text = new WellFormedOutput();
  private readonly baseArtifacts: Map<string, Artifact>;

  constructor(
    private readonly run: ClaimedRun,
    /** Called with metadata that the agent puts on the task. */
    private readonly onMetadata: (metadata: Metadata) => void,
  ) {
    const base = run.attempt > 1 ? run.artifactsAtStart : run.snapshot.task.artifacts;
    this.baseArtifacts = new Map(base.map((artifact) => [artifact.artifactId, artifact]));
  }

  /** The events that an output stands for, in order. Their texts are well-formed Unicode. */
  entries(output: AgentOutput): LogEntry[] {
    return this.text.of(completeOutput(output)).flatMap((each) => this.entriesOf(each));
  }

  /** The agent says no more: the events of what was held for its next output. */
  rest(): LogEntry[] {
    return this.text.rest().map(({ value }) => this.artifact(value));
  }

  private entriesOf(output: AgentOutput): LogEntry[] {
    switch (output.$case) {
      case 'statusUpdate': {
        const { status, metadata } = output.value;
        const entry = this.status(status, metadata);
        if (metadata) this.onMetadata(withoutTruncation(metadata));
        return [entry];
      }
      case 'artifactUpdate':
        return [this.artifact(output.value)];
      case 'message':
        return [this.reply(output.value)];
      case 'task':
        return this.takeOver(output.value);
    }
  }

  /** The next chunk of an artifact is not the first one: it goes on with what is in the log. */
  keepArtifact(artifactId: string): void {
    this.seen.add(artifactId);
  }

  /** A status of this task, with a text of the platform's own. */
  platformStatus(state: TaskState, text: string): EventPayload {
    const message: Message = {
      messageId: uuid(),
      role: Role.ROLE_AGENT,
      parts: [textPart(text.toWellFormed())],
      contextId: '',
      taskId: '',
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
    return this.status({ state, message, timestamp: undefined }, undefined).payload;
  }

  private status(status: TaskStatus | undefined, metadata: Metadata | undefined): LogEntry {
    const state = status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
    if (state <= TaskState.TASK_STATE_UNSPECIFIED)
      throw new TurnFailure('The agent sent a status without a state: set status.state');
    assertDepth(status?.message?.parts ?? [], metadata, status?.message?.metadata);
    const { id: taskId, contextId } = this.run.snapshot.task;
    const message = status?.message && this.message(status.message);
    const timestamp = clock.date().toISOString();
    return {
      payload: {
        $case: 'statusUpdate',
        value: { taskId, contextId, status: { state, message, timestamp }, metadata },
      },
      ...(endsTurn(state) && { end: { state, outcome: null } }),
    };
  }

  private reply(message: Message): LogEntry {
    const entry = this.status(
      { state: TaskState.TASK_STATE_COMPLETED, message, timestamp: undefined },
      undefined,
    );
    return { ...entry, end: { state: TaskState.TASK_STATE_COMPLETED, outcome: 'message' } };
  }

  private artifact(update: TaskArtifactUpdateEvent): LogEntry {
    const { artifact } = update;
    if (!artifact?.artifactId)
      throw new TurnFailure('The agent sent an artifact without an artifactId: give each artifact an id');
    assertLength('artifactId', artifact.artifactId, MAX_ARTIFACT_ID_BYTES);
    assertLength('name', artifact.name, MAX_ARTIFACT_NAME_BYTES);
    assertDepth(artifact.parts, update.metadata, artifact.metadata);
    const { id: taskId, contextId } = this.run.snapshot.task;
    const first = !this.seen.has(artifact.artifactId);
    this.seen.add(artifact.artifactId);
    const value = { ...update, taskId, contextId };
    if (first && this.mustRestore(update)) {
      return { payload: { $case: 'artifactUpdate', value }, restores: artifact.artifactId };
    }
    return { payload: { $case: 'artifactUpdate', value: first ? this.firstChunk(value, artifact) : value } };
  }

  /** A new attempt continues an artifact that is not wholly in memory. */
  private mustRestore({ append }: TaskArtifactUpdateEvent): boolean {
    return append && this.run.attempt > 1 && !this.run.artifactsAreWhole;
  }

  /**
   * Invariant 10: the first chunk of a new attempt replaces the output of a dead attempt. The content of earlier turns
   * is sent again before it.
   */
  private firstChunk(update: TaskArtifactUpdateEvent, artifact: Artifact): TaskArtifactUpdateEvent {
    if (!update.append) return update;
    const base = this.baseArtifacts.get(artifact.artifactId);
    if (base && this.run.attempt === 1) return update;
    const parts = [...(base?.parts ?? []), ...artifact.parts];
    return { ...update, append: false, artifact: { ...artifact, parts } };
  }

  /** A whole task as output: its artifacts, its metadata and its status, if they are new. */
  private takeOver(task: Task): LogEntry[] {
    assertDepth([], task.metadata);
    if (task.metadata) this.onMetadata(withoutTruncation(task.metadata));
    const artifacts = task.artifacts
      .filter((artifact) => !this.seen.has(artifact.artifactId) && this.isNews(artifact))
      .map((artifact) => this.artifact({ ...NO_UPDATE, ...this.news(artifact), lastChunk: true }));
    const { status } = task;
    const saysNothing = !status || (OPENING.has(status.state) && !status.message);
    return saysNothing ? artifacts : [...artifacts, this.status(status, undefined)];
  }

  /** Agents return the artifacts of earlier turns with their task. Only changed ones become events. */
  private isNews(artifact: Artifact): boolean {
    const base = this.baseArtifacts.get(artifact.artifactId);
    return !base || !isDeepStrictEqual(Artifact.toJSON(base), Artifact.toJSON(artifact));
  }

  /** An agent that got the beginning of an artifact returns it with an addition. Only the addition is new. */
  private news(artifact: Artifact): { artifact: Artifact; append: boolean } {
    const base = this.baseArtifacts.get(artifact.artifactId);
    const known = base && isTruncated(this.run.snapshot.task) ? Artifact.toJSON(base) : undefined;
    const begins = { ...artifact, parts: artifact.parts.slice(0, base?.parts.length) };
    if (!base || !isDeepStrictEqual(known, Artifact.toJSON(begins))) return { artifact, append: false };
    return { artifact: { ...artifact, parts: artifact.parts.slice(base.parts.length) }, append: true };
  }

  private message(message: Message): Message {
    const { id: taskId, contextId } = this.run.snapshot.task;
    return { ...message, messageId: message.messageId || uuid(), role: Role.ROLE_AGENT, taskId, contextId };
  }
}

function assertLength(field: 'artifactId' | 'name', value: string, max: number): void {
  const bytes = Buffer.byteLength(value);
  if (bytes <= max) return;
  throw new TurnFailure(
    `The agent sent an artifact whose ${field} has ${bytes} bytes, and the maximum is ${max}`,
  );
}

/** Twice what callers and other servers may send, because Baton shows it inside of other data. */
const MAX_DEPTH = 2 * MAX_JSON_DEPTH;

/** Deeper JSON cannot be written as protobuf and overflows the stack of readers: the task could not be read, or a list with it. */
function assertDepth(parts: readonly Part[], ...metadata: (Metadata | undefined)[]): void {
  const isTooDeep = (value: unknown): boolean => value !== undefined && isDeeper(value, MAX_DEPTH);
  const isDeepPart = (part: Part): boolean =>
    isTooDeep(part.metadata) || (part.content?.$case === 'data' && isTooDeep(part.content.value));
  if (!metadata.some(isTooDeep) && !parts.some(isDeepPart)) return;
  throw new TurnFailure(`The agent sent data that is nested deeper than ${MAX_DEPTH} levels`);
}

const NO_UPDATE = { taskId: '', contextId: '', metadata: undefined };

/** States a task is in anyway while its agent runs. */
const OPENING: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
]);

/** The limits of what agents say. */
export type EventLimits = Pick<
  TenantLimits,
  'eventBytes' | 'eventsPerRun' | 'bytesPerRun' | 'eventsPerTask' | 'bytesPerTask'
>;

/**
 * The remaining budget of one attempt: the tenant's limits at its start. Limits of a run count the events of this
 * attempt. Limits of a task count its whole log.
 */
export class EventAllowance {
  private readonly run = { events: 0, bytes: 0 };
  private readonly task: { events: number; bytes: number };

  /** @param logged what the log of the task holds already */
  constructor(
    private readonly limits: EventLimits,
    logged: LoggedSize,
  ) {
    this.task = { ...logged };
  }

  /**
   * Take one more event of the agent.
   * @param json the event as it is stored
   * @throws TurnFailure if it goes over a limit; its message names the limit
   */
  take(json: string): void {
    const { eventBytes, eventsPerRun, bytesPerRun, eventsPerTask, bytesPerTask } = this.limits;
    const bytes = Buffer.byteLength(json);
    for (const counted of [this.run, this.task]) {
      counted.events += 1;
      counted.bytes += bytes;
    }
    const { run, task } = this;
    if (isOver(run.events, eventsPerRun)) throw overRun('events', 'eventsPerRun', eventsPerRun);
    if (isOver(bytes, eventBytes)) {
      throw new TurnFailure(
        `The agent sent an event of ${bytes} bytes, and the limit eventBytes of this tenant is ${eventBytes}`,
        'eventBytes',
      );
    }
    if (isOver(run.bytes, bytesPerRun)) throw overRun('bytes', 'bytesPerRun', bytesPerRun);
    if (isOver(task.events, eventsPerTask)) throw overTask('events', 'eventsPerTask', eventsPerTask);
    if (isOver(task.bytes, bytesPerTask)) throw overTask('bytes', 'bytesPerTask', bytesPerTask);
  }
}

const isOver = (value: number, limit: number | null): limit is number => limit !== null && value > limit;

const overRun = (what: string, limit: keyof EventLimits, max: number): TurnFailure =>
  new TurnFailure(
    `The agent sent more ${what} than the limit ${limit} of this tenant allows, which is ${max}`,
    limit,
  );

const overTask = (what: string, limit: keyof EventLimits, max: number): TurnFailure =>
  new TurnFailure(
    `The task has more ${what} than the limit ${limit} of this tenant allows, which is ${max}; begin a new task`,
    limit,
  );

/**
 * Measures the texts and files of an event before it becomes JSON, which may be six times as large.
 * @throws TurnFailure if they are larger than `maxBytes`
 */
export function assertSize(payload: EventPayload, maxBytes: number): void {
  if (sizeOf(partsOf(payload)) <= maxBytes) return;
  throw new TurnFailure(`The agent sent an event of more than ${maxBytes} bytes`);
}

function partsOf(payload: EventPayload): readonly Part[] {
  if (payload.$case === 'artifactUpdate') return payload.value.artifact?.parts ?? [];
  return payload.value.status?.message?.parts ?? [];
}

/** Bytes of texts and files. */
function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { content }) => {
    const value: unknown = content?.value;
    if (typeof value === 'string') return sum + Buffer.byteLength(value);
    return sum + (Buffer.isBuffer(value) ? value.length : 0);
  }, 0);
}
