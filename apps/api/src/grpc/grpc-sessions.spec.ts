import type { Logger, Metrics } from '@baton/telemetry';
import type { Server } from '@grpc/grpc-js';
import { once } from 'node:events';
import { connect, createServer, type Http2Server, type Http2Session } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { GrpcCaller } from '../../../../test/support/api/grpc-caller.js';
import { RawSocket } from '../../../../test/support/raw-socket.js';
import { CallTurns } from '../http/call-turns.js';
import { Connection } from '../http/connection.js';
import { GrpcSessions } from './grpc-sessions.js';

const PATH = '/lf.a2a.v1.A2AService/GetTask';
/** Maximum number of calls that a peer may have open. */
const MAX_CALLS = 50;
const [HEADERS, RESET, WINDOW_UPDATE] = [1, 3, 8];
const [REFUSED_STREAM, CANCEL] = [7, 8];
/** A frame GOAWAY with ENHANCE_YOUR_CALM, as hexadecimal digits. */
const GOAWAY = /000008070000000000[\da-f]{8}0000000b/;
const END_HEADERS = 4;

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** An HTTP/2 frame (RFC 9113 §4.1). */
const frame = (type: number, payload: Buffer, stream = 0, flags = 0): Buffer =>
  Buffer.concat([uint32(payload.length).subarray(1), Buffer.from([type, flags]), uint32(stream), payload]);

/** Headers without the tables of HPACK (RFC 7541 §6.2.2), each shorter than 127 bytes. */
const hpack = (headers: Record<string, string>): Buffer =>
  Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [
      Buffer.from([0, name.length]),
      Buffer.from(name),
      Buffer.from([value.length]),
      Buffer.from(value),
    ]),
  );

const HELLO = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, Buffer.alloc(0))]);
const CALL = hpack({
  ':method': 'POST',
  ':scheme': 'http',
  ':path': PATH,
  ':authority': 'x',
  'content-type': 'application/grpc',
  te: 'trailers',
});

/** Calls that their peer resets at once. */
const resetCalls = (count: number): Buffer =>
  Buffer.concat(
    Array.from({ length: count }, (_, i) => [
      frame(HEADERS, CALL, 1 + 2 * i, END_HEADERS),
      frame(RESET, uint32(CANCEL), 1 + 2 * i),
    ]).flat(),
  );

describe('a session of gRPC', () => {
  let api: FakeApi;
  let url: string;
  beforeEach(async () => {
    api = await startFakeApi({ GRPC_PORT: '0', GRPC_STREAMS_PER_CONNECTION: String(MAX_CALLS) });
    url = `http://${api.grpcAddress}`;
  });
  afterEach(() => api.close());

  it('is closed if its peer resets more calls than one that leaves would', async () => {
    const peer = await RawSocket.open(url);
    peer.send(Buffer.concat([HELLO, resetCalls(10 * MAX_CALLS)]));
    await peer.closed;
    expect(Buffer.from(peer.received, 'latin1').toString('hex')).toMatch(GOAWAY);
    expect(api.log).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        msg: 'a connection of gRPC is closed: too many of its calls were reset',
        address: '127.0.0.1',
      }),
    );
  });

  it('answers a call that ends without a message', async () => {
    const session = connect(url);
    const headers = {
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: 'Bearer caller',
    };
    const call = session.request(headers).end(Buffer.alloc(0));
    const [answer] = (await once(call, 'response')) as [Record<string, unknown>];
    expect(answer['grpc-status']).toBeDefined();
    session.destroy();
  });

  it.each(['without a call', 'while it keeps a call open'])(
    'is read slowly if its peer sends frames without messages, %s',
    async (when) => {
      const peer = await RawSocket.open(url);
      const frames = Buffer.concat(Array.from({ length: 1_000 }, () => frame(WINDOW_UPDATE, uint32(1))));
      let taken = 0;
      const flood = (error?: Error | null): void => {
        if (error) return;
        taken += 1;
        peer.socket.write(frames, flood);
      };
      peer.send(HELLO);
      if (when !== 'without a call') peer.send(frame(HEADERS, CALL, 1, END_HEADERS));
      flood();
      const paused = {
        level: 'warn',
        msg: 'a connection of gRPC is read slowly: its peer sends many frames without messages',
        address: '127.0.0.1',
      };
      while (!api.log.some((line) => line.msg === paused.msg)) await new Promise(setImmediate);
      expect(api.log).toContainEqual(expect.objectContaining(paused));
      // The peer sends as fast as it can until the kernel takes no more.
      for (let before = -1; before !== taken;) {
        before = taken;
        for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
      }
      expect(peer.socket.destroyed).toBe(false);
      peer.close();
    },
  );

  it('goes on if its peer sends a large message', async () => {
    const session = connect(url);
    const stream = session.request({
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: 'Bearer caller',
    });
    const message = Buffer.alloc(2_000_000);
    stream.on('error', () => undefined).resume();
    stream.end(Buffer.concat([Buffer.from([0]), uint32(message.length), message]));
    await once(stream, 'close');
    await new Promise((resolve) => session.ping(resolve));
    expect(session.closed).toBe(false);
    session.close();
  });

  it('goes on if its peer resets all the calls that it has open', async () => {
    const session = connect(url);
    const streams = Array.from({ length: MAX_CALLS }, () =>
      session.request({
        ':method': 'POST',
        ':path': PATH,
        'content-type': 'application/grpc',
        te: 'trailers',
      }),
    );
    const closed = streams.map(
      (stream) => new Promise((resolve) => stream.on('error', () => undefined).once('close', resolve)),
    );
    for (const stream of streams) stream.close(CANCEL);
    await Promise.all(closed);
    await new Promise((resolve) => session.ping(resolve));
    expect(session.closed).toBe(false);
    session.close();
  });

  it('is read on when its calls have begun', async () => {
    const grpc = new GrpcCaller(api.grpcAddress);
    const ask = (): Promise<unknown> =>
      grpc.ask('Check', { service: '' }, { service: 'grpc.health.v1.Health' });
    for (let round = 0; round < 3; round++) await Promise.all(Array.from({ length: 60 }, ask));
    grpc.close();
  });
});

describe('sessions of a server of HTTP/2', () => {
  let server: Http2Server;
  const sockets: Socket[] = [];
  const sessions: Http2Session[] = [];
  const log: string[] = [];
  let calls = 0;
  let ended = 0;
  let begun: (number | undefined)[];
  let url: string;
  beforeEach(async () => {
    [calls, ended, sockets.length, sessions.length, log.length] = [0, 0, 0, 0, 0];
    server = createServer();
    const connections = new Map<Socket, Connection>();
    // Calls of a server of before may still have their turns.
    const own: typeof begun = [];
    begun = own;
    server.on('stream', ({ id }) => void own.push(id));
    // As grpc-js keeps them.
    const grpc = { http2Servers: new Map([[server, {}]]) } as unknown as Server;
    new GrpcSessions(grpc, {
      connectionOf: () => undefined,
      all: () => connections.values(),
      maxCalls: MAX_CALLS,
      logger: { warn: (text: string) => log.push(text) } as unknown as Logger,
      metrics: { limitExceeded: { inc: () => undefined } } as unknown as Metrics,
    });
    server.on('connection', (socket: Socket) => {
      sockets.push(socket);
      connections.set(socket, new Connection(socket, '127.0.0.1', new Set()));
    });
    server.on('session', (session) => void sessions.push(session.on('error', () => undefined)));
    server.on('stream', (stream) => {
      calls += 1;
      stream.on('error', () => undefined).once('close', () => (ended += 1));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, 'close');
  });

  it('that bring many calls are read in turns of the event loop', async () => {
    const count = 20;
    const peers = await Promise.all(Array.from({ length: count }, () => RawSocket.open(url)));
    while (sockets.length < count) await new Promise(setImmediate);
    for (const peer of peers) peer.send(Buffer.concat([HELLO, resetCalls(MAX_CALLS)]));
    const counts = [0];
    while (calls < count * MAX_CALLS) {
      await new Promise(setImmediate);
      counts.push(calls);
    }
    const most = Math.max(...counts.map((each, i) => each - (counts[i - 1] ?? 0)));
    expect(most).toBeLessThanOrEqual(MAX_CALLS);
    for (const peer of peers) peer.close();
  });

  it('that bring more calls reset before their turns than they may have open are closed', async () => {
    const peer = await RawSocket.open(url);
    peer.send(Buffer.concat([HELLO, resetCalls(MAX_CALLS + 1)]));
    await peer.closed;
    expect(begun).toEqual([]);
    expect(log).toEqual(['a connection of gRPC is closed: too many of its calls were reset']);
  });

  it('that have many calls without messages lose the oldest', async () => {
    const peer = await RawSocket.open(url);
    const count = 1_025;
    peer.send(HELLO);
    for (let i = 0; i < count; i++) peer.send(frame(HEADERS, CALL, 1 + 2 * i, END_HEADERS));
    const refused = frame(RESET, uint32(REFUSED_STREAM), 1).toString('latin1');
    await peer.until(new RegExp(refused, 's'));
    expect(calls).toBe(count);
    expect(log).toEqual(['a call of gRPC is refused: too many wait for their messages']);
    peer.close();
  });

  it('give grpc-js no call that was reset before its turn, and keep none in the line', async () => {
    const take = jest.spyOn(CallTurns.prototype, 'take');
    const peer = await RawSocket.open(url);
    peer.send(Buffer.concat([HELLO, resetCalls(MAX_CALLS)]));
    while (ended < MAX_CALLS) await new Promise(setImmediate);
    peer.send(frame(HEADERS, CALL, 1 + 2 * MAX_CALLS, END_HEADERS));
    while (begun.length === 0) await new Promise(setImmediate);
    expect(begun).toEqual([1 + 2 * MAX_CALLS]);
    expect(take).toHaveBeenCalledTimes(1);
    take.mockRestore();
    peer.close();
  });

  it('that are destroyed with open calls, after many resets, end once', async () => {
    const peer = await RawSocket.open(url);
    const reset = 30;
    peer.send(Buffer.concat([HELLO, resetCalls(reset)]));
    while (ended < reset) await new Promise(setImmediate);
    for (let i = reset; i < reset + MAX_CALLS; i++) peer.send(frame(HEADERS, CALL, 1 + 2 * i, END_HEADERS));
    while (calls < reset + MAX_CALLS) await new Promise(setImmediate);
    sessions[0]?.destroy(new Error('protocol error'));
    while (ended < reset + MAX_CALLS) await new Promise(setImmediate);
    await peer.closed;
    expect(sessions).toHaveLength(1);
  });
});
