// Calls the agent echo with the TypeScript SDK v2 of MCP, in both eras, and with the tasks of ext-tasks. Prints a line for each check:
// client.mjs URL TOKEN
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  resultFromTaskOutcome,
} from '@modelcontextprotocol/ext-tasks/client';

const [url, token] = process.argv.slice(2);
const FILE = { name: 'a.bin', mediaType: 'application/octet-stream', bytes: 'AP8=' };
const CLIENT = { name: 'interop', version: '1' };
const ANSWER = { action: 'accept', content: { answer: 'from a person' } };
const MODERN = '2026-07-28';
const ERAS = { [MODERN]: 'auto', '2025-11-25': 'legacy' };

const echo = (options) => ({ 'baton/metadata': { echo: options } });
const textOf = ({ content }) => content.map(({ text }) => text ?? '').join('');

/** Runs `use` with a connection of its own. */
async function connected(mode, use, bearer = token) {
  const client = new Client(CLIENT, {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode },
  });
  client.setRequestHandler('elicitation/create', ({ params }) => {
    assert.match(params.message, /What shall I echo\?/);
    return ANSWER;
  });
  const requestInit = { headers: { authorization: `Bearer ${bearer}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

const call = (client, args, options, others) =>
  client.callTool({ name: 'echo', arguments: args, ...(options && { _meta: echo(options) }) }, others);
const taskTool = (client, name, taskId) => client.callTool({ name, arguments: { taskId } });

const CHECKS = {
  tools: (mode) =>
    connected(mode, async (client) => {
      assert.equal(client.getNegotiatedProtocolVersion(), mode === 'auto' ? MODERN : '2025-11-25');
      const { tools } = await client.listTools();
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['task_status', 'task_cancel', 'echo', 'index'],
      );
    }),
  call: (mode) =>
    connected(mode, async (client) => {
      const result = await call(client, { message: 'hello' });
      assert.equal(textOf(result), 'hello');
      assert.notEqual(result.isError, true);
    }),
  progress: (mode) =>
    connected(mode, async (client) => {
      const seen = [];
      const onprogress = ({ progress }) => seen.push(progress);
      assert.equal(textOf(await call(client, { message: 'ab' }, { chunks: 3 }, { onprogress })), 'ababab');
      assert.ok(seen.length > 1, String(seen));
      assert.deepEqual(
        seen,
        [...new Set(seen)].sort((a, b) => a - b),
      );
    }),
  files: (mode) =>
    connected(mode, async (client) => {
      const { content } = await call(client, { message: 'm', files: [FILE], data: { n: [1] } });
      assert.deepEqual(
        content.flatMap(({ resource }) => (resource ? [resource.blob] : [])),
        [FILE.bytes],
      );
      assert.match(textOf({ content }), /"n"/);
    }),
  long: async (mode) => {
    const handed = await connected(mode, (client) => call(client, { message: 'x' }, { delayMs: 600_000 }));
    const { taskId } = handed.structuredContent;
    await connected(mode, async (client) => {
      const status = await taskTool(client, 'task_status', taskId);
      assert.equal(status.structuredContent.state, 'working');
      await taskTool(client, 'task_cancel', taskId);
      assert.equal((await taskTool(client, 'task_status', taskId)).isError, true);
    });
  },
  question: (mode) =>
    connected(mode, async (client) => {
      let result = await call(client, { message: 'x' }, { askInput: true });
      if (mode === 'legacy') {
        const { taskId } = result.structuredContent;
        result = await call(client, { message: 'from a person', taskId });
      }
      assert.equal(textOf(result), 'from a person');
    }),
  errors: (mode) =>
    connected(mode, async (client) => {
      await assert.rejects(client.callTool({ name: 'nothing', arguments: {} }), { code: -32602 });
      const wrong = await call(client, { message: 7 });
      assert.equal(wrong.isError, true);
      assert.match(textOf(wrong), /arguments\.message/);
    }),
  token: (mode) =>
    assert.rejects(
      connected(mode, () => undefined, 'wrong'),
      /401|Unauthorized/i,
    ),
};

/** Runs `use` with the tasks of ext-tasks. The SDK has no path for them, so their requests are sent from here. */
let id = 0;
const withTasks = (use) =>
  connected('auto', async (client) => {
    const framing = {
      protocolVersion: MODERN,
      clientInfo: CLIENT,
      clientCapabilities: {
        elicitation: { form: {} },
        extensions: { 'io.modelcontextprotocol/tasks': {} },
      },
    };
    const session = createTaskSessionFromClient(client, {
      endpointId: 'baton',
      rawDispatch: async (request) => {
        const { method, params } = request;
        const response = await fetch(url, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${token}`,
            'content-type': 'application/json',
            accept: 'application/json',
            'mcp-protocol-version': MODERN,
            'mcp-method': method,
            'mcp-name': params.name ?? params.taskId,
          },
          body: JSON.stringify({ ...request, jsonrpc: '2.0', id: (id += 1) }),
        });
        const { result, error } = await response.json();
        return error ? { kind: 'error', error } : { kind: 'result', result };
      },
      v2RequestFraming: framing,
      onInputRequest: createApplicationInputHandler({
        elicitation: () => ANSWER,
        sampling: () => assert.fail('no model is asked'),
        roots: () => assert.fail('no roots are asked for'),
      }),
    });
    try {
      return await use(session);
    } finally {
      await session.close();
    }
  });

const settled = async (execution) => {
  assert.equal(execution.kind, 'task');
  const { outcome } = await execution.settle();
  return resultFromTaskOutcome(outcome);
};

const TASK_CHECKS = {
  task: () =>
    withTasks(async (session) => {
      const execution = await session.callTool('echo', { message: 'a task' });
      assert.equal(textOf(await settled(execution)), 'a task');
    }),
  'task with a question': () =>
    withTasks(async (session) => {
      const metadata = echo({ askInput: true });
      const execution = await session.callTool('echo', { message: 'x' }, { metadata });
      assert.equal(textOf(await settled(execution)), 'from a person');
    }),
  'canceled task': () =>
    withTasks(async (session) => {
      const execution = await session.callTool(
        'echo',
        { message: 'x' },
        { metadata: echo({ delayMs: 600_000 }) },
      );
      await execution.cancel();
      const { outcome } = await execution.settle();
      assert.equal(outcome.status ?? outcome.kind ?? outcome.state, 'cancelled', JSON.stringify(outcome));
    }),
};

async function run(name, check) {
  try {
    await check();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`failed ${name}: ${JSON.stringify(String(error?.stack ?? error))}`);
  }
}

for (const [era, mode] of Object.entries(ERAS)) {
  for (const [name, check] of Object.entries(CHECKS)) await run(`${era} ${name}`, () => check(mode));
}
for (const [name, check] of Object.entries(TASK_CHECKS)) await run(`${MODERN} ${name}`, check);
