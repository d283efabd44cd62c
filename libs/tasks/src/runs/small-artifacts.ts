import { ArtifactFold, type EventPayload, type Task } from '@baton/a2a';
import type { ClaimedRun } from '@baton/database';

/** Artifacts are folded in memory up to this size, in characters of the events they are made of. */
const MAX_FOLDED_CHARS = 1024 * 1024;
/** Maximum number of artifact ids that a writer keeps to detect new artifacts. */
const MAX_KNOWN_ARTIFACTS = 10_000;

/**
 * The artifacts of a task during its turn, while they are small: they are stored with the task when the turn ends.
 * Artifacts of a large turn are in the log alone, and dropped here.
 */
export class SmallArtifacts {
  private fold: ArtifactFold | undefined;
  private readonly chars = new Map<string, number>();
  private total = 0;
  /** Set while this attempt has written all artifacts of the log. */
  private hasAllArtifacts: boolean;

  constructor({ snapshot, attempt, startSequence, artifactsAreWhole }: ClaimedRun) {
    this.hasAllArtifacts = attempt === 1 && startSequence === 1;
    if (artifactsAreWhole) this.fold = new ArtifactFold(snapshot.task.artifacts);
  }

  /**
   * Adds an event of the log.
   * @param chars size of its JSON
   * @returns whether its artifact is known to be new
   */
  apply(payload: EventPayload, chars: number): boolean {
    if (payload.$case !== 'artifactUpdate' || !payload.value.artifact) return false;
    const { append, artifact } = payload.value;
    const { artifactId: id } = artifact;
    const isFirst = this.hasAllArtifacts && !this.chars.has(id);
    if (!this.fold && !this.hasAllArtifacts) return false;
    const before = this.chars.get(id) ?? 0;
    const after = append ? before + chars : chars;
    this.chars.set(id, after);
    this.total += after - before;
    if (this.total > MAX_FOLDED_CHARS) this.fold = undefined;
    if (this.chars.size > MAX_KNOWN_ARTIFACTS) this.hasAllArtifacts = false;
    if (!this.fold && !this.hasAllArtifacts) this.chars.clear();
    this.fold?.apply(payload);
    return isFirst;
  }

  /** All artifacts, with their chunks joined. Undefined if they are too large. */
  folded(): Task['artifacts'] | undefined {
    return this.fold?.artifacts();
  }
}
