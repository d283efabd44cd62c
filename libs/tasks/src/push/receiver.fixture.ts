import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KEEPS_CONNECTIONS } from '../../../../test/support/server-options.js';

/** A request that a receiver got. */
export interface Received {
  sequence: number;
  headers: IncomingHttpHeaders;
  json: Record<string, unknown>;
}

/** Answers a request. Unset = 200 at once. */
type Answer = (response: ServerResponse, request: Received) => void;

const OK: Answer = (response) => void response.end();

/** A receiver of push notifications on this machine. */
export class Receiver {
  readonly received: Received[] = [];
  private readonly waiting = new Set<() => void>();
  answer: Answer = OK;

  private constructor(private readonly server: ReturnType<typeof createServer>) {
    server.on('request', (request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const json = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
        const { headers } = request;
        const received = { sequence: Number(headers['baton-sequence']), headers, json };
        this.received.push(received);
        for (const check of this.waiting) check();
        this.answer(response, received);
      });
    });
  }

  static async start(): Promise<Receiver> {
    const server = createServer(KEEPS_CONNECTIONS);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Receiver(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/hook`;
  }

  get sequences(): number[] {
    return this.received.map(({ sequence }) => sequence);
  }

  /** Resolves when it has got so many requests. */
  reach(count: number): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (this.received.length < count) return;
        this.waiting.delete(check);
        resolve();
      };
      this.waiting.add(check);
      check();
    });
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}
