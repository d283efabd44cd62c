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
const [HEADERS, RESET, WINDOW_UPDATE, CANCEL] = [1, 3, 8, 8];
/** A frame GOAWAY with ENHANCE_YOUR_CALM, as hexadecimal digits. */
const GOAWAY = /000008070000000000[\da-f]{8}0000000b/;
const END_HEADERS = 4;

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** A frame of HTTP/2 (RFC 9113 §4.1). */
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
        msg: 'a connection of gRPC is closed: its peer has reset too many calls',
        address: '127.0.0.1',
      }),
    );
  });

  it('is closed if its peer sends frames without a call', async () => {
    const peer = await RawSocket.open(url);
    const frames = Buffer.concat(Array.from({ length: 1_000 }, () => frame(WINDOW_UPDATE, uint32(1))));
    const flood = (error?: Error | null): void => {
      if (!error) peer.socket.write(frames, flood);
    };
    peer.send(HELLO);
    flood();
    await peer.closed;
    expect(api.log).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        msg: 'a connection of gRPC is closed: its peer sends frames without calls',
        address: '127.0.0.1',
      }),
    );
  });

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
  let calls = 0;
  let ended = 0;
  let url: string;
  beforeEach(async () => {
    [calls, ended, sockets.length, sessions.length] = [0, 0, 0, 0];
    server = createServer();
    const connections = new Map<Socket, Connection>();
    // As grpc-js keeps them.
    const grpc = { http2Servers: new Map([[server, {}]]) } as unknown as Server;
    new GrpcSessions(grpc, {
      connectionOf: () => undefined,
      all: () => connections.values(),
      turns: new CallTurns(),
      maxCalls: MAX_CALLS,
      logger: undefined as never,
      metrics: undefined as never,
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

  it('that are destroyed with open calls, after many resets, end once', async () => {
    const peer = await RawSocket.open(url);
    peer.send(Buffer.concat([HELLO, resetCalls(90)]));
    while (ended < 90) await new Promise(setImmediate);
    for (let i = 90; i < 90 + MAX_CALLS; i++) peer.send(frame(HEADERS, CALL, 1 + 2 * i, END_HEADERS));
    while (calls < 90 + MAX_CALLS) await new Promise(setImmediate);
    sessions[0]?.destroy(new Error('protocol error'));
    while (ended < 90 + MAX_CALLS) await new Promise(setImmediate);
    await peer.closed;
    expect(sessions).toHaveLength(1);
  });
});
