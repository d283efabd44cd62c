// The servers that attackers own, for bench/neighbours.mjs.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import { cardOf, completedTask } from './friend.mjs';

const MIB = 1_048_576;

/** Model providers, MCP servers, remote agents and receivers that do what hostile ones would. */
export async function startPeer() {
  const page = 'x'.repeat(15 * MIB);
  let isResting = false;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    if (isResting) return response.writeHead(503).end();
    const [, kind, how] = /^\/(hook|remote|mcp|model)[/-]([a-z-]+)/.exec(request.url) ?? [];
    if (kind === 'hook') return answerHook(how, body, response);
    if (kind === 'remote' && request.method === 'GET') return answerCard(request, response);
    if (kind !== undefined) return misbehave(how, response, body);
    if (request.url.startsWith('/mcp')) return answerMcp(body, response, page);
    const said = body.includes('newlines') ? '```' + '\n'.repeat(100_000) + 'x' : '{}';
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const say = (delta, finish_reason = null) =>
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
      );
    if (body.includes('endless')) {
      const large = 'y'.repeat(MIB);
      while (!response.destroyed) {
        if (!say({ role: 'assistant', content: large })) await isRead(response);
      }
      return;
    }
    say({ role: 'assistant', content: said });
    say({}, 'stop');
    response.end('data: [DONE]\n\n');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Answers by the rules of each attack, until `rest`. */
    begin: () => (isResting = false),
    /** Ends all connections, and refuses each request. */
    rest: () => {
      isResting = true;
      server.closeAllConnections();
    },
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Takes the challenge, and misbehaves with each delivery. */
function answerHook(how, body, response) {
  const { challenge } = JSON.parse(body);
  if (!challenge) return misbehave(how, response);
  if (how === 'no-challenge') return;
  if (how === 'hints-challenge') return misbehave('hints', response);
  response.end(challenge);
}

const XS = Buffer.alloc(65_536, 'x');

/** What a hostile server does with a request, and what an honest one does. Each hostile one continues until the caller has left. */
function misbehave(how, response, body = '') {
  const { socket } = response;
  const stream = (type, more = {}) => response.writeHead(200, { 'content-type': type, ...more });
  switch (how) {
    case 'honest':
      response.writeHead(200, { 'content-type': 'application/json' });
      return void response.end(completedTask(body));
    case 'silent':
      return;
    case 'drip':
      stream('application/json');
      return drip(response);
    case 'headers':
      socket.write('HTTP/1.1 200 OK\r\n');
      return void pour(socket, Buffer.from(`x-header: ${'y'.repeat(1_000)}\r\n`));
    case 'hints':
      return void pour(socket, Buffer.from('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'.repeat(20)));
    case 'trailers':
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n');
      return void pour(socket, Buffer.from(`x-trailer: ${'y'.repeat(1_000)}\r\n`));
    case 'huge':
      stream('application/json', { 'content-length': 10_000_000_000 });
      return void pour(response, XS);
    case 'redirect':
      return void response.writeHead(307, { location: 'http://169.254.169.254/latest/meta-data/' }).end();
    case 'idle-stream':
      stream('text/event-stream');
      return void response.write(': hello\n\n');
    case 'words':
      stream('text/event-stream');
      return void pour(response, Buffer.from(WORD.repeat(100)));
    case 'updates':
      stream('text/event-stream');
      return void pour(response, Buffer.from(updateOf(body).repeat(100)));
    case 'tiny-events':
      stream('text/event-stream');
      return void pour(response, Buffer.from('data: {}\n\n'.repeat(100)));
    case 'comments':
      stream('text/event-stream');
      return void pour(response, Buffer.from(':\n\n'.repeat(1_000)));
    case 'tiny-chunks':
      socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n');
      return void pour(socket, Buffer.from('1\r\n \r\n'.repeat(1_000)));
    case 'gzip-bomb':
    case 'gzip-events': {
      const isJson = how === 'gzip-bomb';
      stream(isJson ? 'application/json' : 'text/event-stream', { 'content-encoding': 'gzip' });
      return void pour(response, isJson ? BOMB : BOMB_OF_EVENTS);
    }
    default:
      throw new Error(`How is ${how}?`);
  }
}

/** An event of a model's answer. */
const WORD = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [{ index: 0, delta: { role: 'assistant', content: 'x' }, finish_reason: null }] })}\n\n`;

/** An event of a remote agent's answer: a chunk of an artifact. @param request a JSON-RPC request */
function updateOf(request) {
  const artifact = { artifactId: 'a', parts: [{ text: 'x' }] };
  const artifactUpdate = { taskId: 't', contextId: 'c', artifact, append: true };
  return `data: ${JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(request).id, result: { artifactUpdate } })}\n\n`;
}

/** Each member of gzip stands for 64 MiB. A file of gzip may have any number of them. */
const BOMB = gzipSync(Buffer.alloc(64 * MIB, ' '));
const BOMB_OF_EVENTS = gzipSync(Buffer.from(':\n\n'.repeat(20 * MIB)));

/** Writes a byte a second. */
function drip(response) {
  const timer = setInterval(() => response.write(' '), 1_000);
  response.once('close', () => clearInterval(timer));
}

/** Writes bytes again and again until the reader has left. */
async function pour(stream, bytes) {
  stream.on('error', () => undefined);
  while (!stream.destroyed) {
    if (!stream.write(bytes)) await isRead(stream);
    else await new Promise((resolve) => setImmediate(resolve));
  }
}

/** The card of an agent below the path of the request. */
function answerCard({ url, headers: { host } }, response) {
  const path = url.replace(/\/\.well-known.*/, '');
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(cardOf(`http://${host}${path}/rpc`, true)));
}

/** Until the reader has taken what was written, or has left. */
async function isRead(response) {
  const left = new AbortController();
  const leave = () => left.abort();
  response.once('close', leave);
  await once(response, 'drain', { signal: left.signal }).catch(() => undefined);
  response.off('close', leave);
}

function answerMcp(body, response, page) {
  let call = {};
  try {
    call = JSON.parse(body);
  } catch {
    // A GET for a stream.
  }
  if (call.id === undefined) return response.writeHead(call.method ? 202 : 405).end();
  const cursor = Number(call.params?.cursor ?? 0);
  const tool = { name: `tool${cursor}`, description: page, inputSchema: { type: 'object' } };
  const result =
    call.method === 'initialize'
      ? {
          protocolVersion: call.params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'm', version: '1' },
        }
      : { tools: [tool], ...(cursor < 30 && { nextCursor: String(cursor + 1) }) };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result }));
}
