/** Calls that begin in one turn of the event loop. */
const CALLS_A_TURN = 8;

type Begin = () => void;

/**
 * Turns of the event loop for new gRPC calls, and for HTTP requests. A connection may open a hundred calls with one packet, or
 * pipeline as many requests, and many connections may do so at the same moment. Then a few begin in each turn of the loop, and others
 * are served in between. Connections take turns.
 */
export class CallTurns<Connection> {
  private begun = 0;
  private isScheduled = false;
  /** Calls by connection. The calls of the next connection come first. */
  private readonly waiting = new Map<Connection, Set<Begin>>();

  /**
   * @param begin called when the call of this connection may begin: at once if there is room
   * @returns takes the call out of the line, undefined if it has begun. To be called if the call ends before it begins: a line of ended
   * calls would keep them, and all that belongs to them, in memory.
   */
  take(connection: Connection, begin: Begin): (() => void) | undefined {
    if (this.begun < CALLS_A_TURN && this.waiting.size === 0) {
      this.begin(begin);
      return undefined;
    }
    this.enqueue(connection, begin);
    return () => this.leave(connection, begin);
  }

  /** Whether calls of this connection have not begun. */
  isWaiting(connection: Connection): boolean {
    return this.waiting.has(connection);
  }

  private enqueue(connection: Connection, begin: Begin): void {
    const calls = this.waiting.get(connection);
    if (calls) calls.add(begin);
    else this.waiting.set(connection, new Set([begin]));
  }

  private leave(connection: Connection, begin: Begin): void {
    const calls = this.waiting.get(connection);
    if (calls?.delete(begin) && calls.size === 0) this.waiting.delete(connection);
  }

  private begin(begin: Begin): void {
    this.begun += 1;
    if (!this.isScheduled) {
      this.isScheduled = true;
      setImmediate(this.onNextTurn);
    }
    begin();
  }

  private readonly onNextTurn = (): void => {
    this.isScheduled = false;
    this.begun = 0;
    while (this.begun < CALLS_A_TURN && this.waiting.size > 0) this.beginNext();
  };

  /** The connection then moves to the end of the line. */
  private beginNext(): void {
    for (const [connection, calls] of this.waiting) {
      const [next] = calls;
      this.waiting.delete(connection);
      if (next) calls.delete(next);
      if (calls.size > 0) this.waiting.set(connection, calls);
      if (next) this.begin(next);
      return;
    }
  }
}
