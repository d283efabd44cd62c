import { type ProtocolError } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { Metrics } from '@baton/telemetry';
import { once } from 'node:events';
import http2 from 'node:http2';
import { connect, type Socket } from 'node:net';
import { type FakeApi, recordCalls, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { GrpcCaller } from '../../../../test/support/api/grpc-caller.js';
import { request, taskItem } from '../../../../test/support/api/samples.js';
import { BodyMemoryPool } from './body-memory-pool.js';

const KIB = 1024;

describe('the memory for bodies under way', () => {
  const settings = { bodyTotalBytes: 1_000 * KIB, bodyLimitBytes: 64 * KIB };
  const make = () => new BodyMemoryPool(settings as Environment, new Metrics());
  /** A body, and why it was refused. */
  function body(pool: BodyMemoryPool, holder: string) {
    const refusals: ProtocolError[] = [];
    const lease = pool.lease(holder, (refusal) => refusals.push(refusal));
    return { lease, refusals };
  }

  it('has a share for each holder, and gives back what a refused or complete body had', () => {
    const pool = make();
    const [first, second, other] = [body(pool, 'a'), body(pool, 'a'), body(pool, 'b')];
    first.lease.take(80 * KIB);
    second.lease.take(80 * KIB);
    expect([first.refusals.length, second.refusals[0]?.kind]).toEqual([0, 'overloaded']);
    other.lease.take(100 * KIB);
    expect(other.refusals).toEqual([]);
    expect(pool.takenBytes).toBe((80 - 16 + 100 - 16) * KIB);
    first.lease.end();
    second.lease.end();
    other.lease.end();
    expect(pool.takenBytes).toBe(0);
  });

  it('is bounded for all holders together', () => {
    const pool = make();
    const bodies = Array.from({ length: 20 }, (_, i) => body(pool, `holder ${i}`));
    for (const { lease } of bodies) lease.take(100 * KIB);
    expect(bodies.filter(({ refusals }) => refusals.length > 0)).toHaveLength(20 - 11);
    expect(pool.takenBytes).toBeLessThanOrEqual(1_000 * KIB);
  });

  it('does not count small bodies', () => {
    const pool = make();
    const bodies = Array.from({ length: 1_000 }, () => body(pool, 'a'));
    for (const { lease } of bodies) lease.take(16 * KIB);
    expect([pool.takenBytes, bodies.some(({ refusals }) => refusals.length > 0)]).toEqual([0, false]);
  });

  it('ends a slow body before it refuses another one', () => {
    jest.useFakeTimers({ now: 0 });
    try {
      const pool = make();
      const slow = body(pool, 'a');
      slow.lease.take(80 * KIB);
      jest.advanceTimersByTime(10_001);
      const next = body(pool, 'a');
      next.lease.take(80 * KIB);
      expect([slow.refusals.length, next.refusals.length]).toEqual([1, 0]);
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('half-sent bodies of one tenant', () => {
  const MIB = 1024 * KIB;
  let api: FakeApi;
  const sockets: Socket[] = [];
  beforeAll(async () => {
    api = await startFakeApi({
      GRPC_PORT: '0',
      BODY_LIMIT_BYTES: String(MIB),
      BODY_TOTAL_BYTES: String(4 * MIB),
    });
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await api.close();
  });

  /** Sends all but the last byte of a body. Resolves with the first line of the answer, if there is one before others are. */
  async function halfSend(): Promise<{ socket: Socket; answer: Promise<string> }> {
    const { port, hostname } = new URL(api.url);
    const socket = connect(Number(port), hostname);
    sockets.push(socket);
    socket.on('error', () => undefined);
    socket.write(
      `POST /agents/echo HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer caller\r\n` +
        `content-type: application/json\r\ncontent-length: ${MIB}\r\n\r\n`,
    );
    const answer = once(socket, 'data').then(([chunk]) => String(chunk).split('\r\n\r\n')[0] ?? '');
    answer.catch(() => undefined);
    socket.write(Buffer.alloc(MIB - 1, ' '));
    return { socket, answer };
  }

  it('over HTTP get 503 with Retry-After once their share is used up', async () => {
    const bodies = [await halfSend(), await halfSend()];
    const head = await Promise.race(bodies.map(({ answer }) => answer));
    expect(head).toMatch(/^HTTP\/1.1 503 /);
    expect(head.toLowerCase()).toContain('retry-after: 5');
    for (const socket of sockets.splice(0)) socket.destroy();
  });

  it('over gRPC get UNAVAILABLE', async () => {
    const session = http2.connect(`http://${api.grpcAddress}`);
    const streams: http2.ClientHttp2Stream[] = [];
    const open = () => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/lf.a2a.v1.A2AService/SendMessage',
        'content-type': 'application/grpc',
        te: 'trailers',
        authorization: 'Bearer caller',
      });
      streams.push(stream);
      stream.on('error', () => undefined);
      const frame = Buffer.alloc(5 + MIB - 100);
      frame.writeUInt32BE(MIB - 50, 1);
      stream.write(frame);
      return once(stream, 'response').then(
        ([headers]) => (headers as http2.IncomingHttpHeaders)['grpc-status'],
      );
    };
    const answers = [open(), open(), open()];
    for (const answer of answers) answer.catch(() => undefined);
    expect(await Promise.race(answers)).toBe('14');
    // Not `session.destroy()`: with so much unsent, Node 20 frees the session before its last use, and the process crashes.
    for (const stream of streams) stream.close(http2.constants.NGHTTP2_CANCEL);
    session.close();
  });
});

describe('messages of gRPC', () => {
  const MIB = 1024 * KIB;
  const { message } = request.send.params;
  let api: FakeApi;
  let grpc: GrpcCaller;
  const ECHO = { metadata: { 'baton-agent': 'echo' } };
  beforeAll(async () => {
    api = await startFakeApi({ GRPC_PORT: '0' });
    grpc = new GrpcCaller(api.grpcAddress);
  });
  afterAll(async () => {
    grpc.close();
    await api.close();
  });
  const sendOf = (bytes: number) => ({ message: { ...message, parts: [{ text: 'x'.repeat(bytes) }] } });

  it('that are compressed unpack to at most 1 MiB', async () => {
    recordCalls(api);
    const compressing = new GrpcCaller(api.grpcAddress, { 'grpc.default_compression_algorithm': 2 });
    expect((await compressing.ask('SendMessage', sendOf(MIB / 2), ECHO)).end.status).toBe('OK');
    const { end } = await compressing.ask('SendMessage', sendOf(2 * MIB), ECHO);
    compressing.close();
    expect(end).toMatchObject({
      status: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('decompresses to a size larger than 1048576') as string,
    });
    expect((await grpc.ask('SendMessage', sendOf(2 * MIB), ECHO)).end.status).toBe('OK');
  });

  it('take no memory after their arrival, for any length of the stream', async () => {
    Object.assign(api.operations, {
      sendStreamingMessage: async function* (_: unknown, __: unknown, signal: AbortSignal) {
        yield [taskItem()];
        await new Promise((over) => signal.addEventListener('abort', over));
      },
    });
    const stream = grpc.stream('SendStreamingMessage', sendOf(2 * MIB), ECHO);
    await once(stream.call, 'data');
    expect(api.app.get(BodyMemoryPool, { strict: false }).takenBytes).toBe(0);
    stream.call.cancel();
    await stream.end;
  });
});
