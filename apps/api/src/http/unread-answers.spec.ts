import { createLogger, Metrics } from '@baton/telemetry';
import { once } from 'node:events';
import { createServer, get, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { UnreadAnswers } from './unread-answers.js';

const MIB = 1024 * 1024;
/** Much more than the kernel keeps for a connection. */
const ANSWER = Buffer.alloc(32 * MIB);
const MAX_BYTES = 3 * ANSWER.length;

describe('unread answers', () => {
  let server: Server;
  let port: number;
  let metrics: Metrics;
  const callers: Socket[] = [];
  const served = new Set<Socket>();
  const start = async (trustedProxies: string[]): Promise<void> => {
    metrics = new Metrics();
    server = createServer((_request, response) => response.end(ANSWER));
    server.on('connection', (socket) => {
      served.add(socket.once('close', () => served.delete(socket)));
    });
    const options = { trustedProxies, maxBytes: MAX_BYTES };
    new UnreadAnswers(
      createLogger({ logLevel: 'error' }, 'api', { write: () => undefined }),
      metrics,
      options,
    ).limit(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ({ port } = server.address() as AddressInfo);
  };
  afterEach(async () => {
    for (const caller of callers.splice(0)) caller.destroy();
    server.closeAllConnections();
    await once(server.close(), 'close');
  });

  const unread = async (localAddress: string): Promise<void> => {
    const caller = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => undefined);
    callers.push(caller.pause());
    await once(caller, 'connect');
    caller.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  };
  const bytes = (): number => [...served].reduce((sum, { writableLength }) => sum + writableLength, 0);
  const closed = async (): Promise<number> =>
    Number(/limit="unreadAnswers"\} (\d+)/.exec((await metrics.render()).body)?.[1] ?? 0);

  it('are bounded in total, and those of other addresses stay', async () => {
    await start([]);
    const slow = get({ port, host: '127.0.0.1', localAddress: '127.0.0.1' });
    const [answer] = (await once(slow, 'response')) as [NodeJS.ReadableStream];
    answer.pause();
    for (let n = 0; n < 8; n++) await unread('127.0.0.2');
    while (served.size < 9 && (await closed()) === 0) await once(server, 'connection');
    while (bytes() > MAX_BYTES || (await closed()) === 0) await new Promise((go) => setTimeout(go, 20));
    let length = 0;
    for await (const chunk of answer) length += chunk.length;
    expect(length).toBe(ANSWER.length);
  });

  it('of a trusted proxy count for each connection', async () => {
    await start(['127.0.0.2']);
    for (let n = 0; n < 8; n++) await unread('127.0.0.2');
    while ((await closed()) === 0 || bytes() > MAX_BYTES) await new Promise((go) => setTimeout(go, 20));
    // Their shares are equal, so each that is closed makes room for the others.
    expect(served.size).toBeGreaterThan(0);
  });
});
