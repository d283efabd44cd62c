import { EventEmitter, once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * A system outside of Baton that counts its effects. `/keyed/…` has an effect once for a key, `/plain/…` for each request. Both answer whether
 * they have a key.
 */
export class Bank {
  /** Every effect: its path and key. */
  readonly effects: { path: string; key: string }[] = [];
  /** Paths whose effects are not answered. */
  readonly held = new Set<string>();
  /** Paths that refuse: without an effect. */
  readonly refused = new Set<string>();
  private readonly events = new EventEmitter();
  private readonly server = http.createServer((request, response) => this.answer(request, response));

  async start(): Promise<this> {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return this;
  }

  url(path: string): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}${path}`;
  }

  stop(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  countOf(path: string): number {
    return this.effects.filter((effect) => effect.path === path).length;
  }

  keysOf(path: string): Set<string> {
    return new Set(this.effects.filter((effect) => effect.path === path).map(({ key }) => key));
  }

  /** Resolves when this many effects of a path are there. */
  async reached(path: string, count = 1): Promise<void> {
    while (this.countOf(path) < count) await once(this.events, 'effect');
  }

  private answer(
    { method, url: path = '', headers }: http.IncomingMessage,
    response: http.ServerResponse,
  ): void {
    if (method === 'GET') {
      const known = this.effects.some((effect) => path === `${effect.path}/${effect.key}`);
      return void response.writeHead(known ? 200 : 404).end('found');
    }
    if (this.refused.has(path)) return void response.writeHead(503).end();
    const key = String(headers['idempotency-key']);
    const isKnown = path.startsWith('/keyed/') && this.keysOf(path).has(key);
    if (!isKnown) this.effects.push({ path, key });
    this.events.emit('effect');
    if (!this.held.has(path)) response.end('paid');
  }
}
