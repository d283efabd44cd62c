// Attacks of bench/neighbours.mjs with HTTP/1.1 requests: pipelines, headers, and what a stranger may ask.
import { randomBytes, randomUUID } from 'node:crypto';
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

/** One request after the other over one connection, until the server closes it. @param request makes the next one */
async function ask(a, request) {
  const socket = await open(a.url);
  if (!socket) return 'refused';
  let status;
  const closed = new Promise((resolve) => socket.once('close', resolve));
  while (!socket.destroyed && !a.signal.aborted) {
    const bytes = request();
    const answered = new Promise((resolve) => socket.once('data', resolve));
    socket.write(bytes);
    a.sent += bytes.length;
    const answer = await Promise.race([answered, closed, over(a.signal)]);
    if (answer) status ??= answer.toString('latin1').slice(9, 12);
  }
  socket.destroy();
  return status ?? 'closed';
}

/** Opens a connection, sends bytes, and leaves. */
async function visit(a, url, bytes) {
  const socket = await open(url);
  if (!socket) return 'refused';
  a.sent += bytes.length;
  const ended = new Promise((resolve) => socket.once('close', resolve));
  socket.resume().end(bytes);
  await Promise.race([ended, over(a.signal)]);
  socket.destroy();
  return 'left';
}

const random = () => randomBytes(24).toString('hex');
/** It names a tenant, a sign-in and its secret. */
const ticket = () => `${randomUUID()}.${randomUUID()}.${random()}`;
const PREFLIGHT = {
  origin: 'https://app.example.com',
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization',
};

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
  ...Object.fromEntries(
    Object.entries({
      'random tokens': () => get('/v1/whoami', { authorization: `Bearer ${random()}` }),
      preflights: () => head('OPTIONS', '/agents/echo', PREFLIGHT),
      cards: () => get(`/agents/${random()}/.well-known/agent-card.json`, {}),
      hosts: () => get('/.well-known/agent-card.json', { host: `${random()}.example.com` }),
      console: () => get('/console', { host: `${random()}.example.com` }),
      'sign-in links': () => get(`/oauth/sign-in?ticket=${ticket()}`, {}),
      callbacks: () => get(`/oauth/callback?state=${ticket()}&code=${random()}`, {}),
    }).map(([what, request]) => [`stranger: ${what}`, { isMany: true, act: (a) => a.note(ask(a, request)) }]),
  ),
  'stranger: connections': {
    isMany: true,
    act: (a) => a.note(visit(a, a.url, '')),
  },
  'stranger: connections of gRPC': {
    isMany: true,
    act: (a) => a.note(visit(a, a.grpc, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')),
  },
  'stranger: bytes that are not HTTP': {
    isMany: true,
    act: (a) => a.note(visit(a, a.url, `\x16\x03\x01${random()}`)),
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
