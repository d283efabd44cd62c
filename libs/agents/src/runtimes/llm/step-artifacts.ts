import { textOf } from '@baton/a2a';
import { type AgentOutput, type Turn, artifactChunk } from '../../agent-runtime.js';
import { idOf, type Kind, type ModelSpeech, textArtifact } from './turn-artifacts.js';

/**
 * Streams the output of one model step as artifact chunks: reply and reasoning are separate artifacts. A retry replaces
 * the output of a failed try, also of a crashed worker.
 */
export class StepArtifacts implements ModelSpeech<AgentOutput> {
  /** The artifacts of this try, and whether each is closed. */
  private readonly said = new Map<Kind, boolean>();
  /** Artifacts with output of failed tries. */
  private readonly stale = new Set<Kind>();

  /**
   * @param step number of the step in the task, from 1
   * @param isData the reply is JSON for an output schema: it becomes a data part at the end of the turn
   */
  constructor(
    private readonly turn: Turn,
    private readonly step: number,
    private readonly isData = false,
  ) {
    const there = new Map(turn.task.artifacts.map(({ artifactId, parts }) => [artifactId, textOf(parts)]));
    for (const kind of ['reply', 'reasoning'] as const) {
      if (there.get(idOf(kind, step))) this.stale.add(kind);
    }
  }

  say(kind: Kind, text: string, last: boolean): AgentOutput | undefined {
    if (kind === 'reply' && this.isData) return undefined;
    const append = this.said.has(kind);
    this.said.set(kind, last);
    this.stale.delete(kind);
    return this.chunk(kind, text, append, last);
  }

  /** Starts a retry: the next text replaces the artifact. */
  restart(): void {
    for (const kind of this.said.keys()) this.stale.add(kind);
    this.said.clear();
  }

  /** Ends the step: closes open artifacts, and empties artifacts of failed tries. */
  *end(): Generator<AgentOutput> {
    for (const [kind, isClosed] of this.said) if (!isClosed) yield this.chunk(kind, '', true, true);
    for (const kind of this.stale) yield this.chunk(kind, '', false, true);
  }

  private chunk(kind: Kind, text: string, append: boolean, lastChunk: boolean): AgentOutput {
    return artifactChunk(this.turn, textArtifact(kind, this.step, text), { append, lastChunk });
  }
}
