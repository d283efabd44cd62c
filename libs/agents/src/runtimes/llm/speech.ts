import { EVENT_KIND, textOf } from '@baton/a2a';
import { type AgentOutput, artifactChunk, textPart, type Turn } from '../../runtime.js';

type Kind = 'reply' | 'reasoning';

/**
 * What the model says in one step, as chunks of artifacts: its reply, and apart from it what it thinks. A try that
 * follows one that broke off replaces what that had said, be it of this worker or of one that died.
 */
export class Speech {
  /** What this try has said, and whether it is closed. */
  private readonly said = new Map<Kind, boolean>();
  /** What is there of tries that broke off. */
  private readonly stale = new Set<Kind>();

  /** @param step number of the step in the task, from 1 */
  constructor(
    private readonly turn: Turn,
    private readonly step: number,
  ) {
    const there = new Map(turn.task.artifacts.map(({ artifactId, parts }) => [artifactId, textOf(parts)]));
    for (const kind of ['reply', 'reasoning'] as const) {
      if (there.get(idOf(kind, step))) this.stale.add(kind);
    }
  }

  /** @param last nothing of this kind follows */
  say(kind: Kind, text: string, last: boolean): AgentOutput {
    const append = this.said.has(kind);
    this.said.set(kind, last);
    this.stale.delete(kind);
    return this.chunk(kind, text, append, last);
  }

  /** The next thing that is said is the beginning of another try. */
  restart(): void {
    for (const kind of this.said.keys()) this.stale.add(kind);
    this.said.clear();
  }

  /** The step is over: what was said is closed, what is left of broken tries becomes empty. */
  *end(): Generator<AgentOutput> {
    for (const [kind, isClosed] of this.said) if (!isClosed) yield this.chunk(kind, '', true, true);
    for (const kind of this.stale) yield this.chunk(kind, '', false, true);
  }

  private chunk(kind: Kind, text: string, append: boolean, lastChunk: boolean): AgentOutput {
    return artifactChunk(this.turn, textArtifact(kind, this.step, text), { append, lastChunk });
  }
}

const idOf = (kind: Kind, step: number): string => `${kind}-${step}`;

/** A text of the model as an artifact; what it thinks is marked as no part of the reply. */
export const textArtifact = (kind: Kind, step: number, text: string) => ({
  artifactId: idOf(kind, step),
  name: kind,
  parts: [textPart(text)],
  ...(kind === 'reasoning' && { metadata: { [EVENT_KIND]: 'reasoning' } }),
});
