import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { gaugeBecomes, readGauge } from '../support/gauges.js';
import { DRIVERS } from '../support/index.js';
import { nightlyDescribe, nightlyIt } from '../support/nightly.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { httpPost, RawSocket } from '../support/raw-socket.js';
import { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

const LIMITS = {
  SSE_HEARTBEAT_MS: '400',
  SSE_STALL_MS: '1000',
  SSE_BUFFER_BYTES: '65536',
  NODE_OPTIONS: '--max-old-space-size=160',
};
const driver = DRIVERS[0]!;
const PATH = '/agents/echo';

let stack: Stack;
let caller: RawCaller;
let url: string;
let managementUrl: string;
let headers: Record<string, string>;

beforeAll(async () => {
  stack = await Stack.start({ driver, env: LIMITS });
  const { token } = await stack.createTenant();
  ({ url, managementUrl } = stack.apis[0]!);
  caller = new RawCaller(stack.url(0), token);
  headers = { authorization: `Bearer ${token}`, 'a2a-version': '1.0' };
});
afterAll(() => stack.stop());

const rpc = (method: string, params: object, id: unknown = 1): string =>
  JSON.stringify({ jsonrpc: '2.0', id, method, params });
const oneTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);
const echo = (text: string, options: object) => sendParams(text, { metadata: { echo: options } });

/** A task that says nothing for ten minutes; its id. */
async function silentTask(): Promise<string> {
  const params = { ...echo('late', { delayMs: 600_000 }), configuration: { returnImmediately: true } };
  return (await caller.call('SendMessage', params)).result!.task.id as string;
}

async function everythingFreed(): Promise<void> {
  await gaugeBecomes(managementUrl, 'baton_open_streams', 0);
  await gaugeBecomes(managementUrl, 'baton_task_watches', 0);
}

async function whenItHasEnded(id: string): Promise<string> {
  for await (const _ of caller.stream('SubscribeToTask', { id }, 0)) continue;
  return (await caller.call('GetTask', { id })).result!.status.state as string;
}

nightlyDescribe('a reader that stops reading', () => {
  const READERS = Number(process.env.E2E_STALLED ?? 20);
  const CHUNKS = 1_000;
  const LAST = CHUNKS + 3;
  let taskId: string;

  beforeAll(async () => {
    const sent = await caller.call('SendMessage', echo('talk', { chunks: CHUNKS, chunkBytes: 20_000 }));
    taskId = sent.result!.task.id as string;
  });

  /** Reads on from the first frame until the connection ends, and again from where it is, until it has all. */
  async function readOn(first: Frame, stream: AsyncGenerator<Frame>): Promise<number[]> {
    const ids = [first.id];
    const take = async (frames: AsyncGenerator<Frame>) => {
      for await (const { id } of frames) ids.push(id);
    };
    await take(stream).catch(() => undefined);
    while (ids.at(-1) !== LAST) await take(caller.stream('SubscribeToTask', { id: taskId }, ids.at(-1)));
    return ids;
  }

  it('costs no more than its buffer, is closed, and misses nothing when it comes back', async () => {
    const streams = Array.from({ length: READERS }, () =>
      caller.stream('SubscribeToTask', { id: taskId }, 0),
    );
    const first = await Promise.all(streams.map(async (stream) => (await stream.next()).value as Frame));
    // Its heap would not hold what they do not read.
    await gaugeBecomes(managementUrl, 'baton_open_streams', 0);
    const log = () => stack.apis[0]!.log();
    await until(() => log().split('"stream":"fell-behind"').length - 1 >= READERS);
    expect(await readOn(first[0]!, streams[0]!)).toEqual(oneTo(LAST));
    await Promise.all(streams.map((stream) => stream.return(undefined)));
    await everythingFreed();
  });

  it('is not kept alive by what it sends', async () => {
    const peer = await RawSocket.open(url);
    peer.socket.pause();
    peer.send(httpPost(PATH, { ...headers, 'last-event-id': '0' }, rpc('SubscribeToTask', { id: taskId })));
    await gaugeBecomes(managementUrl, 'baton_open_streams', 1);
    peer.trickle('GET /healthz HTTP/1.1\r\nx: y\r\n\r\n'.repeat(100), 20);
    await everythingFreed();
    peer.socket.resume();
    await peer.closed;
  });
});

describe('a caller that vanishes', () => {
  it.each(['vanish', 'close'] as const)(
    'in any moment (%s) leaves nothing behind but its run',
    async (leave) => {
      const silent = await silentTask();
      const subscribe = rpc('SubscribeToTask', { id: silent });
      // No turn ends before they have left.
      stack.workers[0]!.signal('SIGSTOP');
      const marks = oneTo(10).map((n) => `${leave} ${n}`);
      const slow = marks.map((mark, n) => {
        const method = n % 2 ? 'SendMessage' : 'SendStreamingMessage';
        return httpPost(PATH, headers, rpc(method, echo(mark, { chunks: 3, delayMs: 100 })));
      });
      const requests = [
        ...slow,
        ...oneTo(10).map(() => httpPost(PATH, headers, subscribe)),
        // Several in a row: those that wait for their turn hear of it, too.
        ...oneTo(5).map(() => httpPost(PATH, headers, subscribe).repeat(3)),
        ...oneTo(10).map(() => httpPost(PATH, { ...headers, 'content-length': '9999' }, subscribe)),
        ...oneTo(10).map(() => httpPost(PATH, headers, subscribe).slice(0, -20)),
        ...oneTo(10).map(() => httpPost(PATH, headers, subscribe).slice(0, 40)),
      ];
      const peers = await Promise.all(requests.map(async (bytes) => (await RawSocket.open(url)).send(bytes)));
      // Ten sends that watch their turn, and fifteen subscriptions.
      await gaugeBecomes(managementUrl, 'baton_task_watches', 25);
      for (const peer of peers) peer[leave]();
      await everythingFreed();
      stack.workers[0]!.signal('SIGCONT');
      const { tasks } = (await caller.call('ListTasks', { pageSize: 50, includeArtifacts: true })).result!;
      const mine = (tasks as { id: string; history: { parts: { text: string }[] }[] }[]).filter(
        ({ history }) => marks.includes(history[0]!.parts[0]!.text),
      );
      expect(mine).toHaveLength(10);
      const ends = await Promise.all(mine.map(({ id }) => whenItHasEnded(id)));
      expect(new Set(ends)).toEqual(new Set(['TASK_STATE_COMPLETED']));
      await everythingFreed();
      if (stack.redis) {
        const redis = new Redis(stack.redis.url);
        const channels = (await redis.pubsub('CHANNELS', '*:task:*')) as string[];
        redis.disconnect();
        expect(channels).toEqual([]);
      }
    },
  );

  nightlyIt('behind a line that swallows everything is given up in time', async () => {
    const upstream: Socket[] = [];
    const proxy = createServer((client) => {
      const server = connect(Number(new URL(url).port), '127.0.0.1');
      upstream.push(server);
      client.pipe(server);
      // Nothing comes back, and no error either.
      server.pause();
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const peer = await RawSocket.open(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
    const talk = echo('talk', { chunks: 1_000, chunkBytes: 20_000 });
    peer.send(httpPost(PATH, headers, rpc('SendStreamingMessage', talk)));
    await gaugeBecomes(managementUrl, 'baton_open_streams', 1);
    await everythingFreed();
    peer.close();
    for (const socket of upstream) socket.destroy();
    proxy.close();
  });

  it('may not have piled up requests behind one that lasts', async () => {
    const peer = await RawSocket.open(url);
    peer.send(httpPost(PATH, headers, rpc('SubscribeToTask', { id: await silentTask() })));
    await peer.until(/\nid: \d/);
    peer.send('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(200));
    await peer.closed;
    await everythingFreed();
  });
});

afterEach(async () => {
  stack.workers[0]!.signal('SIGCONT');
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  expect(await readGauge(managementUrl, 'baton_open_streams')).toBe(0);
});
