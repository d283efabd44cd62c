import { type Artifact, StreamResponse } from './model.js';

/** The content of one entry of a task's log. A bare `message` never enters the log (see `Outcome`). */
export type EventPayload = Exclude<NonNullable<StreamResponse['payload']>, { $case: 'message' }>;

/**
 * The artifacts of a task, folded from its log (A2A 1.0 §4.2.2). An `append` adds its parts to the artifact of that id,
 * anything else replaces it; an append to an unknown id creates it. A task payload lays its artifacts over the ones
 * there are. Each chunk costs its own size, however long the artifact has become. The arguments are never changed.
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

  /** The artifacts in the order in which they first appeared. They continue growing with later events. */
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
