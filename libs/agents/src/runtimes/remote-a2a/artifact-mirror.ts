import { type Artifact, isMediaType, Part, type TaskArtifactUpdateEvent } from '@baton/a2a';
import { isDeepStrictEqual } from 'node:util';
import type { AgentOutput, Turn } from '../../agent-runtime.js';

/** Approximate size of the pieces of a snapshot, so that each fits into an event. */
const PIECE_BYTES = 64 * 1024;

interface Mirrored {
  parts: Part[];
  /** Whether this attempt has written to it. Content of another attempt must be replaced, not extended. */
  begun: boolean;
}

/**
 * Mirrors the artifacts of a remote task. Chunks are relayed. From a snapshot only the missing parts are relayed, and
 * different content is replaced. So nothing is lost or doubled when the connection breaks, also several times.
 */
export class ArtifactMirror {
  private readonly known: Map<string, Mirrored>;
  /** False after an earlier attempt: it may have written more than the given task shows, so nothing is appended. */
  private readonly addsToOthers: boolean;

  constructor(private readonly turn: Turn) {
    const { artifacts } = turn.task;
    this.known = new Map(
      artifacts.map(({ artifactId, parts }) => [artifactId, { parts: [...parts], begun: false }]),
    );
    this.addsToOthers = turn.attempt === 1;
  }

  /** Relays one chunk of the remote task's stream. */
  chunk({ artifact, append, lastChunk, metadata }: TaskArtifactUpdateEvent): AgentOutput[] {
    if (!artifact) return [];
    const known = this.known.get(artifact.artifactId);
    if (known && append && !known.begun && !this.addsToOthers) {
      return this.replace({ ...artifact, parts: [...known.parts, ...artifact.parts] }, lastChunk);
    }
    const parts = known && append ? known.parts : [];
    parts.push(...artifact.parts);
    this.known.set(artifact.artifactId, { parts, begun: true });
    return [this.update(artifact, artifact.parts, append, lastChunk, metadata)];
  }

  /**
   * Relays the changes of a snapshot of the remote task.
   * @param over whether the artifacts are complete
   */
  snapshot(artifacts: readonly Artifact[], over: boolean): AgentOutput[] {
    return artifacts.flatMap((artifact) => this.catchUp(artifact, over));
  }

  private catchUp(artifact: Artifact, over: boolean): AgentOutput[] {
    const known = this.known.get(artifact.artifactId);
    const missing = known && missingParts(known.parts, artifact.parts);
    if (!missing || (missing.length > 0 && !known.begun && !this.addsToOthers))
      return this.replace(artifact, over);
    if (missing.length === 0) return [];
    known.parts.push(...missing);
    known.begun = true;
    return this.pieces(artifact, missing, true, over);
  }

  private replace(artifact: Artifact, over: boolean): AgentOutput[] {
    this.known.set(artifact.artifactId, { parts: [...artifact.parts], begun: true });
    return this.pieces(artifact, artifact.parts, false, over);
  }

  private pieces(artifact: Artifact, parts: readonly Part[], append: boolean, over: boolean): AgentOutput[] {
    const pieces = inPieces(parts);
    return pieces.map((piece, i) =>
      this.update(artifact, piece, append || i > 0, over && i === pieces.length - 1, undefined),
    );
  }

  private update(
    artifact: Artifact,
    parts: Part[],
    append: boolean,
    lastChunk: boolean,
    metadata: TaskArtifactUpdateEvent['metadata'],
  ): AgentOutput {
    const { id: taskId, contextId } = this.turn.task;
    const value = { taskId, contextId, artifact: { ...artifact, parts }, append, lastChunk, metadata };
    return { $case: 'artifactUpdate', value };
  }
}

/**
 * The parts of `now` after those of `before`; undefined if `now` does not start with them. Agents may join texts. Empty texts do not
 * count: an artifact without parts is stored with one.
 */
export function missingParts(before: readonly Part[], now: readonly Part[]): Part[] | undefined {
  const [known, whole] = [before.filter(saysSomething), now.filter(saysSomething)];
  const begins = known.length <= whole.length && known.every((part, i) => isSame(part, whole[i]));
  if (begins) return whole.slice(known.length);
  const [start, all] = [textOf(known), textOf(whole)];
  const [last] = whole.slice(-1);
  if (start === undefined || all === undefined || !last || !all.startsWith(start)) return undefined;
  return all === start ? [] : [{ ...last, content: { $case: 'text', value: all.slice(start.length) } }];
}

const saysSomething = ({ content, metadata }: Part): boolean =>
  content?.$case !== 'text' || content.value !== '' || Object.keys(metadata ?? {}).length > 0;

const isSame = (a: Part, b: Part | undefined): boolean =>
  b !== undefined && isDeepStrictEqual(comparablePart(a), comparablePart(b));

/** Drops empty fields, because protocol versions omit different ones. */
function comparablePart(part: Part): unknown {
  const { metadata, mediaType, ...rest } = Part.toJSON(part) as Record<string, unknown>;
  const isText = part.content?.$case === 'text';
  return {
    ...rest,
    ...(Object.keys(part.metadata ?? {}).length > 0 && { metadata }),
    ...(mediaType !== undefined && !(isText && isMediaType(part.mediaType, 'text/plain')) && { mediaType }),
  };
}

/** The joined text; undefined if any part is not plain text. */
function textOf(parts: readonly Part[]): string | undefined {
  let text = '';
  for (const { content, metadata } of parts) {
    if (content?.$case !== 'text' || Object.keys(metadata ?? {}).length > 0) return undefined;
    text += content.value;
  }
  return text;
}

function inPieces(parts: readonly Part[]): Part[][] {
  const pieces: Part[][] = [[]];
  let size = 0;
  for (const part of parts) {
    const bytes = JSON.stringify(Part.toJSON(part)).length;
    if (size > 0 && size + bytes > PIECE_BYTES) {
      pieces.push([]);
      size = 0;
    }
    pieces.at(-1)?.push(part);
    size += bytes;
  }
  return pieces;
}
