import fc from 'fast-check';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { KEEPS_CONNECTIONS } from '../support/server-options.js';

const MIB = 2 ** 20;
/** Where an endless answer ends if no reader closes it. More than Baton accepts. */
const ENDLESS_BYTES = 96 * MIB;

/** A request to a peer, its path without the number of the case. */
export interface PeerRequest {
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  body: unknown;
  /** How many requests of the case came before this one. */
  before: number;
}

export type PeerScript = (request: PeerRequest, response: http.ServerResponse) => Promise<void>;

/** How an answer goes over the wire; most go as they should. */
export interface Manner {
  kind:
    | ('plain' | 'pieces' | 'crlf' | 'joined' | 'cut' | 'noise' | 'endless' | 'stall' | 'reset' | 'silence')
    | ('status' | 'redirect' | 'type' | 'encoding' | 'long' | 'deep' | 'empty' | 'short' | 'headers');
  /** Where, or how much; what it is of depends on the kind. */
  at: number;
}

const FAULTS: readonly Manner['kind'][] = [
  ...(['pieces', 'crlf', 'joined', 'cut', 'noise', 'endless', 'stall', 'reset', 'silence'] as const),
  ...(['status', 'redirect', 'type', 'encoding', 'long', 'deep', 'empty', 'short', 'headers'] as const),
];
export const manner: fc.Arbitrary<Manner> = fc.record({
  kind: fc.oneof(
    { weight: 12, arbitrary: fc.constant('plain' as const) },
    { weight: 6, arbitrary: fc.constantFrom(...FAULTS) },
  ),
  at: fc.nat(10_000),
});

const STATUSES = [204, 301, 400, 401, 403, 404, 408, 409, 413, 418, 429, 500, 503, 529];
const TYPES = [
  'text/html',
  'application/json',
  'text/event-stream',
  'application/octet-stream',
  '',
  'a/b; c=\u00fc',
];

/** A server of many cases: the first member of a request's path is the number of its case. */
export class OddPeer {
  private readonly sockets = new Set<Socket>();
  private readonly scripts = new Map<number, { script: PeerScript; requests: number }>();

  private constructor(private readonly server: http.Server) {
    server.on('connection', (socket) => {
      this.sockets.add(socket);
      socket.once('close', () => this.sockets.delete(socket)).on('error', () => undefined);
    });
    server.on('request', (request, response) => {
      this.answer(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<OddPeer> {
    const server = http.createServer(KEEPS_CONNECTIONS).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new OddPeer(server);
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** What answers the requests of a case from now on. @returns the URL of its paths, without a slash at its end */
  play(number: number, script: PeerScript): string {
    this.scripts.set(number, { script, requests: 0 });
    return `${this.origin}/${number}`;
  }

  forget(number: number): void {
    this.scripts.delete(number);
  }

  async stop(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk as string;
    const [, number, path = ''] = /^\/(\d+)(.*)$/.exec(request.url ?? '') ?? [];
    const played = this.scripts.get(Number(number));
    if (!played) return void response.writeHead(404).end();
    const { method = '', headers } = request;
    const body = text === '' ? undefined : (JSON.parse(text) as unknown);
    await played.script({ method, path, headers, body, before: played.requests++ }, response);
  }
}

/** Send an answer in a manner. An error status quotes the key that was shown. */
export async function sendOddly(
  response: http.ServerResponse,
  { kind, at }: Manner,
  { type, text, key = '' }: { type: string; text: string; key?: string },
): Promise<void> {
  const head = (headers: http.OutgoingHttpHeaders = {}): void =>
    void response.writeHead(200, { 'content-type': type, ...headers });
  const bytes = Buffer.from(text);
  const part = at % (bytes.length + 1);
  switch (kind) {
    case 'plain':
      head();
      return void response.end(bytes);
    case 'pieces':
      head();
      for (let from = 0; from < bytes.length && from < 2_000; from += 1)
        response.write(bytes.subarray(from, from + 1));
      return void response.end(bytes.subarray(2_000));
    case 'crlf':
      head();
      return void response.end(text.replaceAll('\n', '\r\n'));
    case 'joined':
      head();
      return void response.end(text.replaceAll('\n\n', '\n'));
    case 'cut':
      head();
      return void response.end(bytes.subarray(0, part));
    case 'noise':
      head();
      return void response.end(Buffer.concat([bytes.subarray(0, part), NOISE, bytes.subarray(part)]));
    case 'endless':
      head();
      return pour(response, at % 2 ? bytes : Buffer.from(': x\n\n'.repeat(10_000)));
    case 'stall':
      head();
      return void response.write(bytes.subarray(0, part));
    case 'reset':
      head();
      response.write(bytes.subarray(0, part));
      await delay(5);
      return void response.destroy();
    case 'silence':
      return;
    case 'status': {
      const body = JSON.stringify({ error: { message: `no: ${key}`, type: 'x', code: null } });
      return void response.writeHead(STATUSES[at % STATUSES.length]!, { 'retry-after': '0' }).end(body);
    }
    case 'redirect':
      return void response.writeHead(307, { location: at % 2 ? 'http://127.0.0.1:1/' : '' }).end();
    case 'type':
      return void response.writeHead(200, { 'content-type': TYPES[at % TYPES.length] }).end(bytes);
    case 'encoding':
      head({ 'content-encoding': at % 2 ? 'gzip' : 'br' });
      return void response.end(bytes);
    case 'long':
      head();
      return pour(response, Buffer.from('x'.repeat(MIB)), Buffer.from('data: "'), (16 + (at % 3) * 16) * MIB);
    case 'deep':
      head();
      return void response.end(`data: ${(at % 2 ? '[' : '{"a":').repeat(100 * (at % 1_000))}\n\n`);
    case 'empty':
      head();
      return void response.end();
    case 'short':
      head({ 'content-length': String(bytes.length + 10) });
      response.write(bytes);
      await delay(5);
      return void response.destroy();
    case 'headers':
      head(Object.fromEntries(Array.from({ length: at % 200 }, (_, n) => [`x-odd-${n}`, 'y'.repeat(at)])));
      return void response.end(bytes);
  }
}

const NOISE = Buffer.concat([
  Buffer.from('\n\ndata: {"this is": no JSON\n\ndata: \ndata: nu\ndata: ll\n\n'),
  Buffer.from([0, 0xff, 0xc0, 0x0a]),
]);

async function pour(
  response: http.ServerResponse,
  block: Buffer,
  first = block,
  most = ENDLESS_BYTES,
): Promise<void> {
  response.write(first);
  for (let sent = 0; sent < most && !response.destroyed && block.length > 0; sent += block.length) {
    await new Promise<void>((resolve) => {
      const closed = (): void => resolve();
      response.once('close', closed);
      response.write(block, () => {
        response.removeListener('close', closed);
        resolve();
      });
    });
  }
  response.end();
}
