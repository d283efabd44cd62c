import { ArtifactFold, type EventPayload, type Task } from '@baton/a2a';
import type { ClaimedRun } from '@baton/database';

/** Artifacts are folded in memory up to this size, in characters of the events they are made of. */
const MAX_CHARS = 1024 * 1024;
/** Artifacts of which it is known that they are new. */
const MAX_KNOWN = 10_000;

/**
 * The artifacts of a task while its turn goes on, as long as they are small: they are kept with the task when the turn
 * ends. Those of a large turn are in the log alone, and forgotten here.
 */
export class SmallArtifacts {
  private fold: ArtifactFold | undefined;
  private readonly chars = new Map<string, number>();
  private total = 0;
  /** Set while whatever the log says of artifacts was said by this attempt. */
  private isAlone: boolean;

  constructor({ cut, attempt, startSequence, artifactsAreWhole }: ClaimedRun) {
    this.isAlone = attempt === 1 && startSequence === 1;
    if (artifactsAreWhole) this.fold = new ArtifactFold(cut.task.artifacts);
  }

  /**
   * Take an event of the log in.
   * @param chars its size
   * @returns whether it is known that nothing was said before of the artifact that it belongs to
   */
  apply(payload: EventPayload, chars: number): boolean {
    if (payload.$case !== 'artifactUpdate' || !payload.value.artifact) return false;
    const { append, artifact } = payload.value;
    const { artifactId: id } = artifact;
    const isFirst = this.isAlone && !this.chars.has(id);
    if (!this.fold && !this.isAlone) return false;
    const before = this.chars.get(id) ?? 0;
    const after = append ? before + chars : chars;
    this.chars.set(id, after);
    this.total += after - before;
    if (this.total > MAX_CHARS) this.fold = undefined;
    if (this.chars.size > MAX_KNOWN) this.isAlone = false;
    if (!this.fold && !this.isAlone) this.chars.clear();
    this.fold?.apply(payload);
    return isFirst;
  }

  /** All of them, folded; undefined if they are large. */
  all(): Task['artifacts'] | undefined {
    return this.fold?.artifacts();
  }
}
