import type { Part } from '../components/part-view';

export interface Message {
  messageId?: string;
  role?: string;
  parts?: Part[];
  metadata?: Record<string, unknown>;
}

export interface Artifact {
  artifactId: string;
  name?: string;
  parts?: Part[];
  metadata?: Record<string, unknown>;
}

/** `baton.event` of an artifact that is no output of the agent, such as `tool-call`. */
export const kindOf = ({ metadata }: Artifact): string | undefined => {
  const kind = metadata?.['baton.event'];
  return typeof kind === 'string' ? kind : undefined;
};

/** A TaskArtifactUpdateEvent of A2A 1.0 (§4.2.2). */
export interface ArtifactUpdate {
  artifact: Artifact;
  /** It appends to the artifact of the same id. */
  append?: boolean;
  lastChunk?: boolean;
}

/** Adds an event to the artifacts by their ids: pieces put together, the newest content of each. */
export function addToArtifacts(
  artifacts: Map<string, Artifact>,
  { artifact, append = false }: ArtifactUpdate,
): void {
  const before = append ? artifacts.get(artifact.artifactId) : undefined;
  const parts = joinTexts([...(before?.parts ?? []), ...(artifact.parts ?? [])]);
  artifacts.set(artifact.artifactId, { ...before, ...artifact, parts });
}

/** Pieces of text that follow each other are one text. */
export function joinTexts(parts: readonly Part[]): Part[] {
  const all: Part[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (last?.text !== undefined && part.text !== undefined && last.mediaType === part.mediaType) {
      all[all.length - 1] = { ...last, text: last.text + part.text };
    } else all.push(part);
  }
  return all;
}
