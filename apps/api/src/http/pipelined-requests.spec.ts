import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import Fastify from 'fastify';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { RawSocket } from '../../../../test/support/raw-socket.js';
import { Connections } from './connections.js';

/** One under way, and as many as may wait. */
const MAX_PIPELINED = 65;
const PIPELINED = 50;
const REQUEST = 'GET /v1/whoami HTTP/1.1\r\nhost: x\r\n\r\n';

it('begin in many turns of the event loop, with others in between', async () => {
  const api: FakeApi = await startFakeApi();
  const connections = 40;
  const answered = () => api.log.filter(({ path }) => path === '/v1/whoami').length;
  const peers = await Promise.all(Array.from({ length: connections }, () => RawSocket.open(api.url)));
  const counts = [0];
  for (const peer of peers) peer.send(REQUEST.repeat(PIPELINED));
  while (counts.at(-1)! < connections * PIPELINED) {
    await new Promise((resolve) => setImmediate(resolve));
    counts.push(answered());
  }
  const most = Math.max(...counts.map((count, i) => count - (counts[i - 1] ?? 0)));
  expect(most).toBeLessThanOrEqual(16);
  for (const peer of peers) peer.close();
  await api.close();
});

it('of a connection that has too many are dropped before they are routed, and those after them are not parsed', async () => {
  let parsed = 0;
  class CountedRequest extends IncomingMessage {
    constructor(socket: Socket) {
      super(socket);
      parsed += 1;
    }
  }
  const server = Fastify({ forceCloseConnections: true, http: { IncomingMessage: CountedRequest } });
  let routed = 0;
  server.addHook('onRequest', (_request, _reply, done) => {
    routed += 1;
    done();
  });
  new Connections({}).install(server);
  server.get('/v1/whoami', () => new Promise(() => undefined));
  const peer = await RawSocket.open(await server.listen({ host: '127.0.0.1', port: 0 }));
  peer.send(REQUEST.repeat(1_000));
  await peer.closed;
  expect([routed, parsed]).toEqual([MAX_PIPELINED + 1, MAX_PIPELINED + 1]);
  await server.close();
});

it('with more than a hundred headers are refused behind the answers before them, and those after them are dropped', async () => {
  const server = Fastify({ forceCloseConnections: true });
  const routed: string[] = [];
  let answer = (): void => undefined;
  const isAnswered = new Promise<void>((resolve) => (answer = resolve));
  new Connections({}).install(server);
  server.get('/:name', async ({ url }) => {
    routed.push(url);
    await isAnswered;
    return 'answered';
  });
  const peer = await RawSocket.open(await server.listen({ host: '127.0.0.1', port: 0 }));
  const request = (name: string, count: number) =>
    `GET /${name} HTTP/1.1\r\nhost: x\r\nconnection: ${name === 'after' ? 'close' : 'keep-alive'}\r\n${Array.from({ length: count - 2 }, (_, i) => `x-${String(i)}: y\r\n`).join('')}\r\n`;
  peer.send(request('hundred', 100) + request('more', 101) + request('after', 2));
  answer();
  await peer.closed;
  expect(peer.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 431']);
  expect(peer.received).toContain('more than 100 headers');
  expect(routed).toEqual(['/hundred']);
  await server.close();
});

it('with a thousand headers have few of them parsed', async () => {
  const server = Fastify({ forceCloseConnections: true });
  new Connections({}).install(server);
  const counts: number[] = [];
  server.server.on('request', ({ headers }) => counts.push(Object.keys(headers).length));
  const peer = await RawSocket.open(await server.listen({ host: '127.0.0.1', port: 0 }));
  const headers = Array.from({ length: 1_000 }, (_, i) => `x-${String(i)}: y\r\n`).join('');
  peer.send(`GET / HTTP/1.1\r\nhost: x\r\n${headers}\r\n`);
  await peer.closed;
  expect(peer.received).toMatch(/^HTTP\/1\.1 431/);
  // From Node 22 on the parser refuses the request itself.
  expect(Math.max(0, ...counts)).toBeLessThanOrEqual(101);
  await server.close();
});
