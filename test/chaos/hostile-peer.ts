import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { KEEPS_CONNECTIONS } from '../support/server-options.js';

/** How a peer behaves. `endless` sends without an end, `slow` almost nothing, `junk` nonsense. */
export type Manner = 'endless' | 'slow' | 'junk';
export const MANNERS: readonly Manner[] = ['endless', 'slow', 'junk'];

/** Bytes of an endless answer; then it stays open. Far over every limit of Baton. */
const ENDLESS_BYTES = 64 * 2 ** 20;
const BLOCK = 64 * 1024;
const SLOW_MS = 500;

type Answer = (response: http.ServerResponse) => Promise<void>;

/**
 * A model provider, an MCP server and the card of an A2A agent in one, each of which means ill: `/<manner>/model/…`,
 * `/<manner>/tools`, `/<manner>/card`. `/seven/model/…` is a provider whose model answers `{"value": 7}`.
 */
export class HostilePeer {
  private readonly sockets = new Set<Socket>();

  private constructor(private readonly server: http.Server) {
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket));
    });
    server.on('request', (request, response) => {
      request.resume();
      const [, manner = '', what = ''] = (request.url ?? '').split('/');
      this.answerOf(manner, what)(response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<HostilePeer> {
    const server = http.createServer(KEEPS_CONNECTIONS).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new HostilePeer(server);
  }

  url(manner: Manner | 'seven', what: 'model' | 'tools' | 'card'): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/${manner}/${what}`;
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private answerOf(manner: string, what: string): Answer {
    const isModel = what === 'model';
    const type = isModel ? 'text/event-stream' : 'application/json';
    const says = isModel ? said : (text: string) => text;
    if (manner === 'seven') return sayAll(type, [said('{"value":7}', 'stop'), 'data: [DONE]\n\n']);
    // A fence that never closes, and an array that never does.
    const nonsense = isModel ? [said(`\`\`\`${'\n'.repeat(100_000)}x`, 'stop')] : ['['.repeat(2 ** 20)];
    if (manner === 'junk') return sayAll(type, nonsense);
    if (manner === 'slow') return drip(type, says(' '));
    return pour(type, says('x'.repeat(BLOCK)));
  }
}

/** An event of a provider's stream. */
function said(content: string, finish: string | null = null): string {
  const chunk = { index: 0, delta: { role: 'assistant', content }, finish_reason: finish };
  const head = { id: 'c-1', object: 'chat.completion.chunk', created: 1, model: 'm' };
  return `data: ${JSON.stringify({ ...head, choices: [chunk] })}\n\n`;
}

const sayAll =
  (type: string, blocks: readonly string[]): Answer =>
  async (response) => {
    response.writeHead(200, { 'content-type': type });
    response.end(blocks.join(''));
  };

const drip =
  (type: string, block: string): Answer =>
  async (response) => {
    response.writeHead(200, { 'content-type': type });
    while (!response.destroyed) {
      response.write(block);
      await delay(SLOW_MS, undefined, { ref: false });
    }
  };

const pour =
  (type: string, block: string): Answer =>
  async (response) => {
    response.writeHead(200, { 'content-type': type });
    for (let sent = 0; sent < ENDLESS_BYTES && !response.destroyed; sent += block.length) {
      await new Promise((resolve) => response.write(block, resolve));
    }
  };
