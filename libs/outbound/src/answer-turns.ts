import { TimeShare } from '@baton/telemetry';

/** Maximum time for reading the answers of one tenant in a turn of the event loop, in ms. The last one may take longer. */
const TURN_MS = 1;
/** Part of the time that the answers of one tenant may take in a process. */
const TENANT_TIME_SHARE = 0.25;
/** Time in ms that a tenant may take at once before its share counts. */
const BURST_MS = 20;

/**
 * Turns of the event loop for the answers that a tenant's peers send: to read a part of one costs little on the wire and much here. The
 * parts come in turn, and the event loop serves all other work before it continues with the next ones. A tenant whose parts take more than
 * its share of the time waits: peers that send without end would keep the event loop, and a core, busy.
 */
export class AnswerTurns {
  private readonly waiting: (() => void)[] = [];
  private isGoing = false;
  private turnEndsAt = 0;
  private readonly time = new TimeShare(TENANT_TIME_SHARE, BURST_MS);

  /** @param read runs when it is its turn. What it begins without a wait counts too. It must not throw */
  take(read: () => void): void {
    this.waiting.push(read);
    if (this.isGoing) return;
    this.isGoing = true;
    this.awaitTurn();
  }

  private awaitTurn(): void {
    const { waitMs } = this.time;
    if (waitMs > 0) setTimeout(this.beginTurn, waitMs);
    else setImmediate(this.beginTurn);
  }

  private readonly beginTurn = (): void => {
    this.turnEndsAt = performance.now() + TURN_MS;
    this.readNext();
  };

  private readNext(): void {
    const beganAt = performance.now();
    this.waiting.shift()?.();
    // A tick runs after all promises that the read has settled, and those that these settle.
    queueMicrotask(() => process.nextTick(() => this.pay(beganAt)));
  }

  private pay(beganAt: number): void {
    const now = performance.now();
    this.time.use(now - beganAt);
    if (this.waiting.length === 0) this.isGoing = false;
    else if (now < this.turnEndsAt) this.readNext();
    else this.awaitTurn();
  }
}
