/** Calls that begin in one turn of the event loop. */
const CALLS_A_TURN = 8;

/**
 * Turns of the event loop for new calls. A connection may open a hundred calls with one packet, and many connections may do so at the same
 * moment. Then a few calls begin in each turn of the loop, and others are served in between. Connections take turns.
 */
export class CallTurns<Connection> {
  private begun = 0;
  private isScheduled = false;
  /** Those of the next connection come first. */
  private readonly waiting = new Map<Connection, (() => void)[]>();

  /** Resolves when a call of this connection may begin. */
  async take(connection: Connection): Promise<void> {
    if (this.begun < CALLS_A_TURN && this.waiting.size === 0) this.begin();
    else await new Promise<void>((resolve) => this.enqueue(connection, resolve));
  }

  private enqueue(connection: Connection, resolve: () => void): void {
    const calls = this.waiting.get(connection);
    if (calls) calls.push(resolve);
    else this.waiting.set(connection, [resolve]);
  }

  private begin(): void {
    this.begun += 1;
    if (this.isScheduled) return;
    this.isScheduled = true;
    setImmediate(this.onNextTurn);
  }

  private readonly onNextTurn = (): void => {
    this.isScheduled = false;
    this.begun = 0;
    while (this.begun < CALLS_A_TURN && this.waiting.size > 0) this.beginNext();
  };

  /** The connection then moves to the end of the line. */
  private beginNext(): void {
    for (const [connection, calls] of this.waiting) {
      this.waiting.delete(connection);
      calls.shift()?.();
      if (calls.length > 0) this.waiting.set(connection, calls);
      this.begin();
      return;
    }
  }
}
