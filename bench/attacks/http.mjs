// Attacks of bench/neighbours.mjs with requests of HTTP/1.1: pipelines, headers.
import { once } from 'node:events';
import { head, open, over, unread } from './socket-attacks.mjs';

const get = (path, headers) => head('GET', path, headers);

/** Headers of 15 KiB, a few bytes each second. */
async function slowHeaders(a) {
  const socket = await open(a.url);
  if (!socket) return 'refused';
  socket.on('error', () => undefined).resume();
  socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n');
  const timer = setInterval(() => socket.write(`x-${'y'.repeat(20)}: z\r\n`), 1_000);
  await Promise.race([once(socket, 'close'), over(a.signal)]);
  clearInterval(timer);
  const outcome = socket.destroyed ? 'closed' : 'open';
  socket.destroy();
  return outcome;
}

/**
 * Sends bytes over one connection again and again until the server closes it, and drops what is answered.
 * @param first sent once, before them
 */
async function pour(a, bytes, first = '') {
  const socket = await open(a.url);
  if (!socket) return 'refused';
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.resume().write(first);
  while (!socket.destroyed && !a.signal.aborted) {
    const isTaken = socket.write(bytes);
    const drained = new Promise((resolve) =>
      isTaken ? setImmediate(resolve) : socket.once('drain', resolve),
    );
    await Promise.race([drained, closed, over(a.signal)]);
    a.sent += bytes.length;
  }
  const outcome = socket.destroyed ? 'closed' : 'open';
  socket.destroy();
  return outcome;
}

/** The beginning of a message whose body comes in chunks. */
const chunked = (a) =>
  head('POST', '/agents/echo', {
    ...a.a2aHeaders,
    'content-type': 'application/json',
    'transfer-encoding': 'chunked',
  });

const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`x-${i}`, 'y'.repeat(4)]));

export const HTTP_ATTACKS = {
  'pipelined: unread tasks': {
    isMany: true,
    prepare: (a) => a.makeTasks(100),
    act: (a) =>
      a.note(
        unread(
          a.url,
          (get('/v1/tasks?limit=100', a.bearer) + get('/v1/openapi.json', {})).repeat(32),
          a.signal,
        ),
      ),
  },
  'pipelined: unread welcome': {
    isMany: true,
    act: (a) => a.note(unread(a.url, get('/', {}).repeat(64), a.signal)),
  },
  'pipelined: with a token': {
    isMany: true,
    act: (a) => a.note(pour(a, get('/v1/whoami', a.bearer).repeat(32))),
  },
  'pipelined: no token': {
    isMany: true,
    act: (a) => a.note(pour(a, get('/v1/whoami', {}).repeat(32))),
  },
  'pipelined: health': {
    isMany: true,
    act: (a) => a.note(pour(a, get('/healthz', {}).repeat(32))),
  },
  'headers: a thousand': {
    isMany: true,
    act: (a) => a.note(pour(a, get('/v1/whoami', { ...many, ...a.bearer }).repeat(4))),
  },
  'headers: one a second': {
    isMany: true,
    act: (a) => a.note(Promise.all(Array.from({ length: 30 }, () => slowHeaders(a))).then(([one]) => one)),
  },
  'chunks of a byte': {
    isMany: true,
    act: (a) => a.note(pour(a, '1\r\nx\r\n'.repeat(1_000), chunked(a))),
  },
  'chunks with extensions': {
    isMany: true,
    act: (a) => a.note(pour(a, 'x'.repeat(8_000), `${chunked(a)}1;`)),
  },
};
