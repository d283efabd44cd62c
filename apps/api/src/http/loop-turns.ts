import { RecentHolders } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';

/** Smaller work never waits. */
export const SMALL_WORK_BYTES = 65_536;
/** Length of a pause, as a multiple of the turn before it. */
const PAUSE = 2;
/** Longest pause, in ms. */
const MAX_PAUSE_MS = 1_000;
/** How long a holder counts as active after its last work, in ms. */
const ACTIVE_MS = 1_000;

/**
 * Turns of the event loop for large work: to parse the body of a request, or to encode an answer or an event. Such work may block
 * the event loop for a tenth of a second. A holder of `BodyMemoryPool` has one turn at a time. While others send bodies,
 * a pause follows each turn, so that the large work of one holder takes at most a third of the time.
 */
@Injectable()
export class LoopTurns {
  /** The end of the last turn of each holder, its pause included. */
  private readonly ends = new Map<string, Promise<void>>();
  private readonly holders = new RecentHolders(ACTIVE_MS);

  /** Resolves when work on `bytes` may begin. The caller must begin at once. */
  async take(holder: string, bytes: number): Promise<void> {
    this.holders.noteUse(holder);
    if (bytes <= SMALL_WORK_BYTES) return;
    const before = this.ends.get(holder);
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    this.ends.set(holder, over);
    await before;
    const beganAt = performance.now();
    const finish = (): void => {
      if (this.ends.get(holder) === over) this.ends.delete(holder);
      end();
    };
    // The work, and all that follows it without a wait, is over then.
    setImmediate(() => {
      const tookMs = performance.now() - beganAt;
      if (this.holders.hasOthers(holder)) setTimeout(finish, Math.min(tookMs * PAUSE, MAX_PAUSE_MS));
      else finish();
    });
  }
}
