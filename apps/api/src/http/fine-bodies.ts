import { CallSlots } from './call-slots.js';

/** Bodies in small chunks of one holder that are read at the same time. Programs that send such bodies send one after the other. */
const MAX_OF_HOLDER = 8;
/** Bodies in small chunks of all holders that are read at the same time. Together they have the rate of `SMALL_CHUNKS_A_MS`. */
const MAX = 32;
/** Maximum number of small chunks that the process reads in a millisecond: about a tenth of a core. */
export const SMALL_CHUNKS_A_MS = 100;

/**
 * Bodies in small chunks (`PacedRequest`). Each chunk takes about a microsecond of the event loop and 200 bytes of memory, and a read of a
 * connection (64 KiB) may bring eleven thousand. So such bodies take turns, few are read at a time, and all together have a rate.
 */
export class FineBodies {
  private readonly slots = new CallSlots(MAX_OF_HOLDER, MAX);
  private readonly resting: (() => number)[] = [];
  private isGoing = false;
  /** When the rate allows the next turn, by `performance.now()`. */
  private paidAt = 0;

  /** @returns ends the counting of a body of this holder; undefined if there are too many */
  begin(holder: string): (() => void) | undefined {
    return this.slots.take(holder);
  }

  /** @param takeRest called in the turn of a body, never at once. It returns how many chunks the body has taken. It must not throw */
  rest(takeRest: () => number): void {
    this.resting.push(takeRest);
    if (this.isGoing) return;
    this.isGoing = true;
    this.awaitTurn();
  }

  private awaitTurn(): void {
    setTimeout(this.onTurn, Math.max(0, this.paidAt - performance.now()));
  }

  private readonly onTurn = (): void => {
    const chunks = this.resting.shift()?.() ?? 0;
    this.paidAt = performance.now() + chunks / SMALL_CHUNKS_A_MS;
    if (this.resting.length > 0) this.awaitTurn();
    else this.isGoing = false;
  };
}

/** The turns of this process: all its ports share one event loop. */
export const fineBodies = new FineBodies();
