import {
  type AgentDefinition,
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
  isInterrupted,
  isTruncated,
  MAX_JSON_DEPTH,
  textPart,
  withoutTruncation,
  type JsonObject,
} from '@baton/a2a';
import { type AgentOutput } from '@baton/agents';
import { type ClaimedRun, type TurnOutcome, type WaitReminders } from '@baton/database';
import { clock } from '@baton/telemetry';
import { isDeepStrictEqual } from 'node:util';
import { v7 as uuid } from 'uuid';
import { TurnFailure } from '../core/turn-failure.js';
import { completeOutput } from './complete-output.js';
import { WellFormedOutput } from './well-formed-output.js';

/** Readers of a log or a list hold the ids of all artifacts in memory. */
const MAX_ARTIFACT_ID_BYTES = 512;
/** They hold the names as well. Long content belongs into parts. */
const MAX_ARTIFACT_NAME_BYTES = 4096;

const HOUR_MS = 3_600_000;

/** One output of an agent, as an event of the log. */
export interface LogEntry {
  payload: EventPayload;
  /**
   * The id of an artifact that is too large for memory. Its content of earlier turns must be in the log before this
   * event (`restoreArtifact`).
   */
  restores?: string;
  /** Set when this event ends the turn. */
  end?: { state: TaskState; outcome: TurnOutcome | null; wakeInMs?: number; reminders?: WaitReminders };
}

/**
 * Converts the output of a runtime into events of this task's log. Ids are the task's own, times are the platform's. A
 * bare message becomes a completed status. A whole task becomes the events that lead to it.
 */
export class TurnOutput {
  private readonly seen = new Set<string>();
  private readonly text = new WellFormedOutput();
  private readonly baseArtifacts: Map<string, Artifact>;
  /** Set if a question does not wait for its answer alone. */
  private wakeInMs: number | undefined;
  private reminders: WaitReminders | undefined;

  constructor(
    private readonly run: ClaimedRun,
    /** Called with metadata that the agent puts on the task. */
    private readonly onMetadata: (metadata: JsonObject) => void,
  ) {
    const base = run.attempt > 1 ? run.artifactsAtStart : run.snapshot.task.artifacts;
    this.baseArtifacts = new Map(base.map((artifact) => [artifact.artifactId, artifact]));
  }

  /** The events that an output stands for, in order. Their texts are well-formed Unicode. */
  entries(output: AgentOutput): LogEntry[] {
    return this.text.convert(completeOutput(output)).flatMap((each) => this.entriesOf(each));
  }

  /** At the end of the agent's output: the events that were held back. */
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
        return this.entriesOfTask(output.value);
    }
  }

  /** The next chunk of an artifact continues the artifact in the log. */
  keepArtifact(artifactId: string): void {
    this.seen.add(artifactId);
  }

  /** If the turn ends with a question, the task continues after this time without an answer. */
  wakeIn(ms: number): void {
    this.wakeInMs = ms;
  }

  /** If the turn ends with a question, the webhooks are notified after these times. */
  remind(after: AgentDefinition['reminders']): void {
    const inMs = (hours: number | undefined) =>
      hours === undefined ? undefined : Math.round(hours * HOUR_MS);
    this.reminders = after && {
      remindMs: inMs(after.remindAfterHours),
      escalateMs: inMs(after.escalateAfterHours),
    };
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

  private status(status: TaskStatus | undefined, metadata: JsonObject | undefined): LogEntry {
    const state = status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
    if (state <= TaskState.TASK_STATE_UNSPECIFIED)
      throw new TurnFailure('The agent sent a status without a state: set status.state');
    assertDepth(status?.message?.parts ?? [], metadata, status?.message?.metadata);
    const { id: taskId, contextId } = this.run.snapshot.task;
    const message = status?.message && this.message(status.message);
    const timestamp = clock.date().toISOString();
    const { wakeInMs, reminders } = this;
    const waits = isInterrupted(state) && {
      ...(wakeInMs !== undefined && { wakeInMs }),
      ...(reminders && { reminders }),
    };
    return {
      payload: {
        $case: 'statusUpdate',
        value: { taskId, contextId, status: { state, message, timestamp }, metadata },
      },
      ...(endsTurn(state) && { end: { state, outcome: null, ...waits } }),
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
  private entriesOfTask(task: Task): LogEntry[] {
    assertDepth([], task.metadata);
    if (task.metadata) this.onMetadata(withoutTruncation(task.metadata));
    const artifacts = task.artifacts
      .filter((artifact) => !this.seen.has(artifact.artifactId) && this.isChanged(artifact))
      .map((artifact) => this.artifact({ ...NO_UPDATE, ...this.updateOf(artifact), lastChunk: true }));
    const { status } = task;
    const hasNoStatus = !status || (OPENING.has(status.state) && !status.message);
    return hasNoStatus ? artifacts : [...artifacts, this.status(status, undefined)];
  }

  /** Agents return the artifacts of earlier turns with their task. Only changed ones become events. */
  private isChanged(artifact: Artifact): boolean {
    const base = this.baseArtifacts.get(artifact.artifactId);
    return !base || !isDeepStrictEqual(Artifact.toJSON(base), Artifact.toJSON(artifact));
  }

  /** An agent that got the beginning of an artifact returns it with an addition. Only the addition is new. */
  private updateOf(artifact: Artifact): { artifact: Artifact; append: boolean } {
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

/** Deeper JSON cannot be written as protobuf and overflows the stack of readers: neither the task nor a list with it could be read. */
function assertDepth(parts: readonly Part[], ...metadata: (JsonObject | undefined)[]): void {
  const isTooDeep = (value: unknown): boolean => value !== undefined && isDeeper(value, MAX_DEPTH);
  const isDeepPart = (part: Part): boolean =>
    isTooDeep(part.metadata) || (part.content?.$case === 'data' && isTooDeep(part.content.value));
  if (!metadata.some(isTooDeep) && !parts.some(isDeepPart)) return;
  throw new TurnFailure(`The agent sent data that is nested deeper than ${MAX_DEPTH} levels`);
}

const NO_UPDATE = { taskId: '', contextId: '', metadata: undefined };

/** States of a task while its agent runs. Without a message they add nothing to the log. */
const OPENING: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
]);
