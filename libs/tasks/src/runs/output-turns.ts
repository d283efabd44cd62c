/** For so long runs go on in one turn of the event loop, all together, in ms. The last one may take longer. */
const TURN_MS = 1;

/**
 * Turns of the event loop for runs that say much. An agent may have hundreds of events ready at once, such as those of a part that a remote
 * agent has sent. Without a wait between them, a process does nothing else for as long, and for the next run again. Here the
 * event loop serves everybody else before the next runs go on, and tenants take turns.
 */
export class OutputTurns {
  /** Runs that wait, by tenant. Those of the next tenant come first. */
  private readonly waiting = new Map<string, (() => void)[]>();
  private isGoing = false;
  private turnEndsAt = 0;

  /** Resolves when it is the turn of this run. What it does without a wait counts. */
  next(tenantId: string): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.waiting.get(tenantId);
      if (waiting) waiting.push(resolve);
      else this.waiting.set(tenantId, [resolve]);
      if (this.isGoing) return;
      this.isGoing = true;
      setImmediate(this.beginTurn);
    });
  }

  private readonly beginTurn = (): void => {
    this.turnEndsAt = performance.now() + TURN_MS;
    this.goOn();
  };

  private goOn(): void {
    this.takeNext()?.();
    // A tick runs after all promises that the run settles, and those that these settle.
    queueMicrotask(() => process.nextTick(this.onPause));
  }

  private readonly onPause = (): void => {
    if (this.waiting.size === 0) this.isGoing = false;
    else if (performance.now() < this.turnEndsAt) this.goOn();
    else setImmediate(this.beginTurn);
  };

  /** The run that waits longest, of the tenant that then moves to the end of the line. */
  private takeNext(): (() => void) | undefined {
    for (const [tenantId, waiting] of this.waiting) {
      const next = waiting.shift();
      this.waiting.delete(tenantId);
      if (waiting.length > 0) this.waiting.set(tenantId, waiting);
      return next;
    }
    return undefined;
  }
}
