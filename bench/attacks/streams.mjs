// Attacks of bench/neighbours.mjs with streams of tasks that are at work: idle ones, and ones without a reader.
import { once } from 'node:events';
import { sendBody } from './attacker.mjs';
import { grpcCalls, open, over, post, unread } from './socket-attacks.mjs';

const MIB = 1_048_576;
const MCP = '2026-07-28';

const rpc = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });

/** The bytes of a call over MCP. */
function mcp(a, method, params, name) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': MCP,
    'io.modelcontextprotocol/clientCapabilities': {
      extensions: { 'io.modelcontextprotocol/tasks': {} },
      elicitation: { form: {} },
    },
    progressToken: 1,
  };
  const headers = {
    ...a.bearer,
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MCP,
    'mcp-method': method,
    ...(name && { 'mcp-name': name }),
  };
  return post('/mcp', headers, rpc(method, { ...params, _meta }));
}

/** Opens a stream and reads it until it ends. */
async function hold(a, bytes) {
  const socket = await open(a.url);
  if (!socket) return 'refused';
  socket.on('error', () => undefined).resume();
  let answer = 'unanswered';
  socket.once('data', (data) => (answer = String(data).slice(9, 12)));
  socket.write(bytes);
  await Promise.race([once(socket, 'close').catch(() => undefined), over(a.signal)]);
  const outcome = `${answer} ${socket.destroyed ? 'closed' : 'open'}`;
  socket.destroy();
  return outcome;
}

const stream = (a, text, echo) =>
  post('/agents/echo', a.a2aHeaders, sendBody([{ text }], {}, { echo }, 'SendStreamingMessage'));
const subscribe = (a) => post('/agents/echo', a.a2aHeaders, rpc('SubscribeToTask', { id: a.large }));

/** Of 3.5 MiB: what JSON makes 4 MiB of is too large. */
const large = 'x'.repeat(3.5 * MIB);

export const STREAM_ATTACKS = {
  'idle streams of one task': {
    isMany: true,
    prepare: (a) => a.startTask('late', { delayMs: 600_000 }),
    act: (a) =>
      a.note(Promise.all(Array.from({ length: 18 }, () => hold(a, subscribe(a)))).then(([one]) => one)),
  },
  'idle streams of a task each': {
    isMany: true,
    act: (a) =>
      a.note(
        Promise.all(Array.from({ length: 18 }, () => hold(a, stream(a, 'late', { delayMs: 600_000 })))).then(
          ([one]) => one,
        ),
      ),
  },
  'subscribe and leave': {
    isMany: true,
    prepare: (a) => a.startTask('late', { delayMs: 600_000 }),
    act: async (a) => {
      const socket = await open(a.url);
      if (!socket) return a.note('refused');
      socket.on('error', () => undefined);
      socket.write(subscribe(a));
      await Promise.race([once(socket, 'data').catch(() => undefined), over(a.signal)]);
      socket.destroy();
      return a.note('left');
    },
  },
  'unread live streams': {
    isMany: true,
    act: (a) => a.note(unread(a.url, stream(a, large, { chunks: 8, delayMs: 500 }), a.signal)),
  },
  'unread live stream of one task': {
    isMany: true,
    prepare: (a) => a.startTask(large, { chunks: 16, delayMs: 1_000 }),
    act: (a) => a.note(unread(a.url, subscribe(a), a.signal)),
  },
  'unread MCP streams': {
    isMany: true,
    act: (a) =>
      a.note(
        unread(
          a.url,
          mcp(a, 'tools/call', { name: 'echo', arguments: { message: large } }, 'echo'),
          a.signal,
        ),
      ),
  },
  'unread MCP subscriptions': {
    isMany: true,
    prepare: (a) => a.startTask(large, { askInput: true, chunks: 4 }),
    act: (a) =>
      a.note(
        unread(a.url, mcp(a, 'subscriptions/listen', { notifications: { taskIds: [a.large] } }), a.signal),
      ),
  },
  'unread MCP reads of a large task': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) => a.note(unread(a.url, mcp(a, 'tasks/get', { taskId: a.large }, a.large).repeat(10), a.signal)),
  },
  'unread live streams of gRPC': {
    isMany: true,
    prepare: (a) => a.startTask(large, { chunks: 16, delayMs: 1_000 }),
    act: (a) =>
      a.note(
        grpcCalls(
          a.grpc,
          {
            path: '/lf.a2a.v1.A2AService/SubscribeToTask',
            headers: { ...a.bearer, 'baton-agent': 'echo' },
            message: a.largeId(),
            isUnread: true,
          },
          // Of a tenant 64 calls may wait for the memory of large tasks. More would be refused in place of streaming.
          1,
          a.signal,
        ),
      ),
  },
};
