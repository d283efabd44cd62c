import type { Socket } from 'node:net';

/** A connection that ConnectionLimit counts. It is silent while no request or call is under way on it. */
export class Connection {
  /** Since when it is silent, by `performance.now()`. */
  silentSince = performance.now();
  private underWay = 0;

  /**
   * @param address its caller's network; undefined for a trusted proxy
   * @param silent the silent connections, those that are so for longest first
   */
  constructor(
    readonly socket: Socket,
    readonly address: string | undefined,
    private readonly silent: Set<Connection>,
  ) {
    silent.add(this);
  }

  /** A request or call has come in. */
  began(): void {
    this.underWay += 1;
    this.silent.delete(this);
  }

  /** It is over. */
  ended(): void {
    this.underWay -= 1;
    if (this.underWay > 0 || this.socket.destroyed) return;
    this.silentSince = performance.now();
    this.silent.add(this);
  }
}
