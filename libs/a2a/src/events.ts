import { type Artifact, StreamResponse, type Task } from './model.js';

/** What one entry of a task's log says. A bare `message` never enters the log (see `Outcome`). */
export type EventPayload = Exclude<NonNullable<StreamResponse['payload']>, { $case: 'message' }>;

/** One entry of a task's log. `sequence` counts 1..n per task without holes. */
export interface TaskEvent {
  sequence: number;
  /** The run's fencing token when it was written; 0 for what the platform wrote outside a run. */
  attempt: number;
  payload: EventPayload;
}

/** A task as it was right after the event `sequence`. Only later events may follow it on a stream. */
export interface TaskSnapshot {
  task: Task;
  sequence: number;
}

/** The stored and published form of a payload: A2A 1.0 ProtoJSON of a StreamResponse, as text. */
export const serializePayload = (payload: EventPayload): string =>
  JSON.stringify(StreamResponse.toJSON({ payload }));

/** Inverse of `serializePayload`. Throws if the text is not an event of a log. */
export function parsePayload(json: string): EventPayload {
  const { payload } = StreamResponse.fromJSON(JSON.parse(json));
  if (!payload || payload.$case === 'message') throw new Error('not an event of a task log');
  return payload;
}

/** The text of an artifact update begins so, as `serializePayload` writes it. */
const ARTIFACT = '{"artifactUpdate":';

/**
 * An entry of a log as text. Many readers only pass the text on. The payload is parsed when it is first asked for; all who
 * hold this entry share it.
 */
export class LoggedEvent implements TaskEvent {
  private parsed: EventPayload | undefined;

  constructor(
    readonly sequence: number,
    readonly attempt: number,
    /** As `serializePayload` wrote it. */
    readonly json: string,
  ) {}

  /** Throws if the text is not an event of a log. */
  get payload(): EventPayload {
    return (this.parsed ??= parsePayload(this.json));
  }

  /** Whether it is known, without a look at the payload, to be an artifact update. */
  get isArtifact(): boolean {
    return this.json.startsWith(ARTIFACT);
  }
}

/**
 * The artifacts of a task, folded from its log (A2A 1.0 §4.2.2). An `append` adds its parts to the artifact
 * of that id, anything else replaces it; an append to an unknown id creates it. A task payload lays its
 * artifacts over the ones there are. Each chunk costs its own size, however long the artifact has become.
 * What is passed in is never changed.
 */
export class ArtifactFold {
  private readonly byId = new Map<string, Artifact>();

  constructor(artifacts: readonly Artifact[] = []) {
    for (const artifact of artifacts) this.replace(artifact);
  }

  apply(payload: EventPayload): void {
    if (payload.$case === 'task') {
      for (const artifact of payload.value.artifacts) this.replace(artifact);
    }
    if (payload.$case !== 'artifactUpdate' || !payload.value.artifact) return;
    const { artifact, append } = payload.value;
    const existing = this.byId.get(artifact.artifactId);
    if (append && existing) extend(existing, artifact);
    else this.replace(artifact);
  }

  /** The artifacts in the order in which they first appeared. They go on growing with later events. */
  artifacts(): Artifact[] {
    return [...this.byId.values()];
  }

  private replace(artifact: Artifact): void {
    this.byId.set(artifact.artifactId, { ...artifact, parts: [...artifact.parts] });
  }
}

/** Parts stay separate, as the SDK keeps them: joining texts would hide the agent's own boundaries. */
function extend(existing: Artifact, chunk: Artifact): void {
  for (const part of chunk.parts) existing.parts.push(part);
  if (chunk.name) existing.name = chunk.name;
  if (chunk.description) existing.description = chunk.description;
  if (chunk.metadata) existing.metadata = { ...existing.metadata, ...chunk.metadata };
}

/** A task folded from the events of its log, or from a snapshot and the events after it. */
export class TaskFold {
  private base: Omit<Task, 'artifacts'> = {
    id: '',
    contextId: '',
    status: undefined,
    history: [],
    metadata: undefined,
  };
  private readonly artifacts = new ArtifactFold();

  apply(payload: EventPayload): void {
    this.artifacts.apply(payload);
    if (payload.$case === 'task') this.base = payload.value;
    if (payload.$case !== 'statusUpdate') return;
    const { taskId: id, contextId, status, metadata } = payload.value;
    const { history } = this.base;
    this.base = {
      id,
      contextId,
      status,
      history: status?.message ? [...history, status.message] : history,
      metadata: metadata ? { ...this.base.metadata, ...metadata } : this.base.metadata,
    };
  }

  /** The task after the events so far. Its artifacts go on growing with later ones. */
  task(): Task {
    return { ...this.base, artifacts: this.artifacts.artifacts() };
  }
}
