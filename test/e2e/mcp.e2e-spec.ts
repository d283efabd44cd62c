import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { randomUUID } from 'node:crypto';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { DRIVERS } from '../support/index.js';
import {
  answerOf,
  McpCaller,
  type McpOptions,
  messagesIn,
  textsOf,
} from '../support/mcp-client/mcp-caller.js';
import { RawCaller } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';
import { until as untilSeen } from '../support/until.js';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

const ENV = {
  ...CRASH_SETTINGS,
  SEND_WAIT_MS: '2000',
  BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
};

let stack: Stack;
let tenant: TestTenant;
let stranger: TestTenant;

beforeAll(async () => {
  stack = await Stack.start({ driver: DRIVERS[0]!, apis: 2, workers: 1, env: ENV });
  [tenant, stranger] = [await stack.createTenant(), await stack.createTenant()];
});
afterAll(() => stack.stop());

const urlOf = (api: number, path = '/mcp'): string => `${stack.apis[api]!.url}${path}`;
const callerAt = (api = 0, { token } = tenant): McpCaller => new McpCaller(urlOf(api), token);
/** What the agent echo does with a call. */
const echo = (options: object) => ({ meta: { 'baton/metadata': { echo: options } } });

/** A client as hosts have it, without a session. */
async function sdkClient(api = 0, path?: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' });
  const headers = { authorization: `Bearer ${tenant.token}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(urlOf(api, path)), { requestInit: { headers } }),
  );
  return client;
}

/** The result of a call, however long its task takes. */
async function wholeResult({ result }: Awaited<ReturnType<McpCaller['tool']>>): Promise<Json> {
  const { taskId, state } = (result!.structuredContent ?? {}) as Json;
  return state === 'working' ? wholeResult(await callerAt().tool('task_status', { taskId })) : result!;
}

/** The task over A2A, on the other process. */
const overA2A = async (id: string): Promise<Json> =>
  (await new RawCaller(stack.url(1), tenant.token).call('GetTask', { id })).result as Json;

describe('a client of an earlier revision', () => {
  it('finds the agents as tools and calls one', async () => {
    const client = await sdkClient();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['task_status', 'task_cancel', 'echo', 'index']);
    const { content, isError, _meta } = await client.callTool({
      name: 'echo',
      arguments: { message: 'hello' },
    });
    expect(content).toEqual([{ type: 'text', text: 'hello' }]);
    expect(isError).toBeUndefined();
    const { status, contextId } = await overA2A(_meta!['baton/taskId'] as string);
    expect(status.state).toBe('TASK_STATE_COMPLETED');
    expect(contextId).toBe(_meta!['baton/contextId']);
    await client.close();
  });

  it('has one agent as its only tool at the path of the agent', async () => {
    const client = await sdkClient(1, '/agents/echo/mcp');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['task_status', 'task_cancel', 'echo']);
    await expect(client.callTool({ name: 'index', arguments: { message: 'x' } })).rejects.toMatchObject({
      code: -32602,
      message: expect.stringContaining('Unknown tool: index') as string,
    });
    await client.close();
  });

  it('sees the progress of a call', async () => {
    const client = await sdkClient();
    const seen: number[] = [];
    const { content } = await client.callTool(
      { name: 'echo', arguments: { message: 'ab' }, _meta: { 'baton/metadata': { echo: { chunks: 3 } } } },
      undefined,
      { onprogress: ({ progress }) => seen.push(progress) },
    );
    expect(content).toEqual([{ type: 'text', text: 'ababab' }]);
    expect(seen.length).toBeGreaterThan(1);
    expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b));
    await client.close();
  });

  it('gets the id of a task that takes long, and reads and cancels it on another process', async () => {
    const [one, other] = [await sdkClient(0), await sdkClient(1)];
    const _meta = { 'baton/metadata': { echo: { delayMs: 600_000 } } };
    const early = await one.callTool({ name: 'echo', arguments: { message: 'x' }, _meta });
    const { structuredContent, content } = early;
    const { taskId, contextId, state } = structuredContent as Json;
    expect(state).toBe('working');
    expect(early._meta).toMatchObject({
      'baton/taskId': taskId,
      'baton/contextId': contextId,
      'baton/state': 'working',
    });
    expect(JSON.stringify(content)).toContain('task_status');
    const status = await other.callTool({ name: 'task_status', arguments: { taskId } });
    expect(status.structuredContent).toMatchObject({ taskId, state: 'working' });
    const canceled = await other.callTool({ name: 'task_cancel', arguments: { taskId } });
    expect(canceled.content).toEqual([{ type: 'text', text: 'The task was canceled.' }]);
    expect(canceled.isError).toBeUndefined();
    const after = await one.callTool({ name: 'task_status', arguments: { taskId } });
    expect(after.isError).toBe(true);
    await Promise.all([one.close(), other.close()]);
  });

  it('answers a question by a call with the id of the task', async () => {
    const client = await sdkClient();
    const _meta = { 'baton/metadata': { echo: { askInput: true } } };
    const asked = await client.callTool({ name: 'echo', arguments: { message: 'x' }, _meta });
    const { taskId, state } = asked.structuredContent as Json;
    expect(state).toBe('input-required');
    expect(JSON.stringify(asked.content)).toContain(taskId);
    const { content } = await client.callTool({ name: 'echo', arguments: { message: 'the answer', taskId } });
    expect(content).toEqual([{ type: 'text', text: 'the answer' }]);
    const late = await client.callTool({ name: 'echo', arguments: { message: 'again', taskId } });
    expect(late).toMatchObject({ isError: true });
    expect(JSON.stringify(late.content)).toContain('arguments.taskId: the task has ended');
    await client.close();
  });

  it('may leave: its call goes on', async () => {
    const leaving = new AbortController();
    const messageId = randomUUID();
    const body = {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'echo',
        arguments: { message: 'x', contextId: messageId },
        _meta: { progressToken: 1, 'baton/metadata': { echo: { delayMs: 1_500 } } },
      },
    };
    const headers = {
      authorization: `Bearer ${tenant.token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2025-11-25',
    };
    const response = await fetch(urlOf(0), {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
      signal: leaving.signal,
    });
    await response.body!.getReader().read();
    leaving.abort();
    const id = await taskIn(messageId);
    const ended = await callerAt(1).tool('task_status', { taskId: id });
    expect(ended.result!.structuredContent.state).toBe('working');
    await expect(endOf(id)).resolves.toBe('TASK_STATE_COMPLETED');
  });
});

describe('a client that has tasks', () => {
  const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: {} };
  const taskCaller = (api = 0, tenantOf = tenant) => callerAt(api, tenantOf).with({ capabilities: TASKS });
  const made = async (args: object, options: object = {}): Promise<Json> =>
    (await taskCaller(0).tool('echo', args, echo(options))).result!;
  const until = async (taskId: string, status: string, api = 1): Promise<Json> => {
    let seen: Json = {};
    for (let look = 0; look < 20 && seen.status !== status; look += 1) {
      if (look > 0) await endOf(taskId);
      const { result, error } = await taskCaller(api).call('tasks/get', { taskId });
      seen = result ?? { error };
    }
    expect(seen).toMatchObject({ status });
    return seen;
  };

  it('always gets a task, which any process shows until it has the result', async () => {
    const task = await made({ message: 'hello' });
    expect(task).toMatchObject({ resultType: 'task', status: 'working', ttlMs: null, pollIntervalMs: 1_000 });
    expect(Math.abs(Date.parse(task.createdAt as string) - Date.now())).toBeLessThan(60_000);
    const done = await until(task.taskId as string, 'completed');
    expect(done).toMatchObject({
      resultType: 'complete',
      taskId: task.taskId,
      createdAt: task.createdAt,
      result: { content: [{ type: 'text', text: 'hello' }] },
    });
    // It goes a while after it has ended.
    expect(done.ttlMs).toBeGreaterThan(86_400_000);
  });

  it('gets the failure of an agent as a result of a completed task', async () => {
    const { taskId } = await made({ message: 'x' }, { fail: 'throw' });
    expect((await until(taskId as string, 'completed')).result.isError).toBe(true);
  });

  it('cancels a task, and gets the same answer if it has ended', async () => {
    const { taskId } = await made({ message: 'x' }, { delayMs: 600_000 });
    for (const api of [1, 0]) {
      const { result } = await taskCaller(api).call('tasks/cancel', { taskId });
      expect(result).toEqual({ resultType: 'complete' });
    }
    expect((await until(taskId as string, 'cancelled')).result).toBeUndefined();
    const { taskId: ended } = await made({ message: 'x' });
    await until(ended as string, 'completed');
    expect((await taskCaller().call('tasks/cancel', { taskId: ended })).result).toEqual({
      resultType: 'complete',
    });
  });

  it('answers a question by the key under which it is asked, once', async () => {
    const { taskId } = await made({ message: 'x' }, { askInput: true });
    const { inputRequests, pollIntervalMs } = await until(taskId as string, 'input_required');
    expect(pollIntervalMs).toBe(5_000);
    const [[key, request]] = Object.entries(inputRequests as Json) as [[string, Json]];
    expect(request).toMatchObject({
      method: 'elicitation/create',
      params: { mode: 'form', requestedSchema: { properties: { answer: { type: 'string' } } } },
    });
    expect(request.params.message).toContain('What shall I echo?');
    const ignored = { other: { action: 'accept', content: { answer: 'no' } } };
    await taskCaller(0).call('tasks/update', { taskId, inputResponses: ignored });
    expect((await taskCaller(1).call('tasks/get', { taskId })).result!.status).toBe('input_required');
    const inputResponses = { [key]: { action: 'accept', content: { answer: 'the answer' } } };
    const updates = [0, 1].map((api) => taskCaller(api).call('tasks/update', { taskId, inputResponses }));
    for (const { result } of await Promise.all(updates)) expect(result).toEqual({ resultType: 'complete' });
    const { result } = await until(taskId as string, 'completed');
    expect(result.content).toEqual([{ type: 'text', text: 'the answer' }]);
  });

  it('is not asked without the capability for it', async () => {
    const { taskId } = await made({ message: 'x' }, { askInput: true });
    await until(taskId as string, 'input_required');
    const mute = { capabilities: { extensions: TASKS.extensions } };
    const { result } = await taskCaller().call('tasks/get', { taskId }, mute);
    expect(result).toMatchObject({ status: 'input_required', inputRequests: {} });
  });

  /** Listens to tasks. @returns all messages, once `until` holds for those that have come */
  async function* listen(taskIds: unknown[], options: McpOptions = {}): AsyncGenerator<Json[]> {
    const notifications = { taskIds, toolsListChanged: true };
    const response = await taskCaller(1).post('subscriptions/listen', { notifications }, options);
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      yield messagesIn(text.slice(0, text.lastIndexOf('\n\n') + 2));
    }
  }
  const statusesOf = (messages: Json[], taskId: unknown): string[] =>
    messages.flatMap(({ method, params }) =>
      method === 'notifications/tasks' && params.taskId === taskId ? [params.status as string] : [],
    );

  it('is notified of its tasks until all have ended, at a process that had nothing to do with them', async () => {
    const { taskId: asking } = await made({ message: 'x' }, { askInput: true });
    const { taskId: short } = await made({ message: 'y' });
    let messages: Json[] = [];
    let isAnswered = false;
    for await (messages of listen([asking, short, asking], { id: 'sub-1' })) {
      if (isAnswered || !statusesOf(messages, asking).includes('input_required')) continue;
      isAnswered = true;
      const { params } = messages.findLast(({ params }) => params?.inputRequests)!;
      const inputResponses = {
        [Object.keys(params.inputRequests as Json)[0]!]: { action: 'accept', content: { answer: 'a' } },
      };
      await taskCaller(0).call('tasks/update', { taskId: asking, inputResponses });
    }
    const [first] = messages;
    expect(first).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { taskIds: [asking, short] } },
    });
    for (const { params, result } of messages)
      expect((params ?? result)._meta['io.modelcontextprotocol/subscriptionId']).toBe('sub-1');
    expect(messages.at(-1)).toMatchObject({ id: 'sub-1', result: { resultType: 'complete' } });
    const seen = statusesOf(messages, asking);
    expect(seen.slice(seen.indexOf('input_required')).filter((status) => status !== 'working')).toEqual([
      'input_required',
      'completed',
    ]);
    expect(statusesOf(messages, short).at(-1)).toBe('completed');
    const done = messages.findLast(({ params }) => params?.taskId === asking)!;
    expect(done.params.result.content).toEqual([{ type: 'text', text: 'a' }]);
  });

  it('is notified of a cancel, of nothing that it has not asked for, and of no task that is not its own', async () => {
    const { taskId } = await made({ message: 'x' }, { delayMs: 600_000 });
    const listening = listen([taskId]);
    // The first state of the task.
    while (statusesOf((await listening.next()).value as Json[], taskId).length === 0);
    await taskCaller(0).call('tasks/cancel', { taskId });
    let messages: Json[] = [];
    for await (messages of listening);
    expect(statusesOf(messages, taskId).at(-1)).toBe('cancelled');
    const none = await taskCaller().call('subscriptions/listen', {
      notifications: { toolsListChanged: true },
    });
    expect(none.notifications.map(({ params }) => params.notifications as Json)).toEqual([{}]);
    const params = { notifications: { taskIds: [taskId] } };
    const foreign = await taskCaller(0, stranger).call('subscriptions/listen', params);
    expect(foreign.error!.code).toBe(-32602);
    expect((await callerAt().call('subscriptions/listen', params)).error!.code).toBe(-32021);
    for (const taskIds of ['x', [7], Array.from({ length: 65 }, String)]) {
      const { error } = await taskCaller().call('subscriptions/listen', { notifications: { taskIds } });
      expect([error!.code, error!.message]).toEqual([
        -32602,
        expect.stringContaining('params.notifications.taskIds: '),
      ]);
    }
  });

  it('finds no task of another tenant, and nothing without the extension', async () => {
    const { taskId } = await made({ message: 'x' });
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      for (const id of [taskId as string, randomUUID()]) {
        const { status, error } = await taskCaller(0, stranger).call(method, { taskId: id });
        expect([method, status, error!.code]).toEqual([method, 200, -32602]);
      }
      const { status, error } = await callerAt().call(method, { taskId });
      expect([method, status, error!.code]).toEqual([method, 400, -32021]);
      expect(error!.data).toEqual({ requiredCapabilities: { extensions: TASKS.extensions } });
      const other = await taskCaller().call(method, { taskId }, { headers: { 'mcp-name': 'other' } });
      expect([method, other.status, other.error!.code]).toEqual([method, 400, -32020]);
      const nameless = await taskCaller().call(method, { taskId }, { headers: { 'mcp-name': undefined } });
      expect([method, nameless.error]).toEqual([method, undefined]);
    }
    for (const method of ['tasks/list', 'tasks/result']) {
      expect((await taskCaller().call(method, { taskId })).error!.code).toBe(-32601);
    }
  });

  it('finds its task after a kill -9 of the processes that had it', async () => {
    const api = await stack.addApi();
    stack.apis.pop();
    const doomed = new McpCaller(`${api.url}/mcp`, tenant.token, { capabilities: TASKS });
    const { result } = await doomed.tool('echo', { message: 'x' }, echo({ delayMs: 3_000 }));
    await Promise.all([api.kill(), stack.killWorkers()]);
    await stack.addWorker();
    const done = await until(result!.taskId as string, 'completed');
    expect(done.result.content).toEqual([{ type: 'text', text: 'x' }]);
  });
});

describe('a client that asks a person in the middle of a call', () => {
  const asking = (api = 0, tenantOf = tenant) =>
    callerAt(api, tenantOf).with({ capabilities: { elicitation: {} } });
  const ask = async (): Promise<Json> =>
    (await asking().tool('echo', { message: 'x' }, echo({ askInput: true }))).result!;
  const again = (requestState: unknown, inputResponses: object, caller: McpCaller, name = 'echo') =>
    caller.call('tools/call', { name, arguments: { message: 'x' }, requestState, inputResponses });

  it('calls again with the answer, at any process', async () => {
    const { resultType, inputRequests, requestState } = await ask();
    expect(resultType).toBe('input_required');
    const [key] = Object.keys(inputRequests as Json) as [string];
    const missing = await again(requestState, {}, asking(1));
    expect(missing.result).toMatchObject({ resultType: 'input_required', inputRequests });
    const inputResponses = { [key]: { action: 'accept', content: { answer: 'the answer' } } };
    const { result } = await again(requestState, inputResponses, asking(1));
    expect(result).toMatchObject({ resultType: 'complete', content: [{ type: 'text', text: 'the answer' }] });
  });

  it('may decline', async () => {
    const { inputRequests, requestState } = await ask();
    const [key] = Object.keys(inputRequests as Json) as [string];
    const { result } = await again(requestState, { [key]: { action: 'decline' } }, asking(1));
    expect(textsOf({ result })).toEqual(['The person has declined to answer.']);
  });

  it('is refused with the state of another caller, of another tool, or a forged one', async () => {
    const { requestState } = await ask();
    const colleague = { slug: tenant.slug, token: await stack.createToken(tenant.slug, 'agents:call') };
    const [body, signature] = (requestState as string).split('.') as [string, string];
    const forged = Buffer.from(Buffer.from(body, 'base64url').toString().replace('echo', 'eche')).toString(
      'base64url',
    );
    const refused = await Promise.all([
      again(requestState, {}, asking(0, stranger)),
      again(requestState, {}, asking(0, colleague)),
      again(requestState, {}, asking(), 'index'),
      again(`${forged}.${signature}`, {}, asking()),
      again('x', {}, asking()),
    ]);
    for (const { status, error } of refused) expect([status, error!.code]).toEqual([400, -32602]);
  });
});

/** The only task of a context. */
async function taskIn(contextId: string): Promise<string> {
  const ids = await tasksIn(contextId);
  expect(ids).toHaveLength(1);
  return ids[0]!;
}

async function tasksIn(contextId: string): Promise<string[]> {
  const { result } = await new RawCaller(stack.url(1), tenant.token).call('ListTasks', { contextId });
  return (result!.tasks as Json[]).map(({ id }) => id as string);
}

/** The state in which a task ends. */
async function endOf(id: string): Promise<string> {
  const goesOn = (state: string): boolean =>
    state === 'TASK_STATE_WORKING' || state === 'TASK_STATE_SUBMITTED';
  const { state: now } = (await overA2A(id)).status as { state: string };
  if (!goesOn(now)) return now;
  const events = new RawCaller(stack.url(1), tenant.token).stream('SubscribeToTask', { id });
  try {
    for await (const { data } of events) {
      // A question that was asked meanwhile is in the first frame: nothing comes after it.
      const { statusUpdate, task } = (data.result ?? {}) as Record<string, { status?: { state?: string } }>;
      const state = (statusUpdate ?? task)?.status?.state;
      if (state !== undefined && !goesOn(state)) return state;
    }
  } catch (error) {
    // It has ended since it was read.
    if (!String(error).includes('The task has ended')) throw error;
  }
  return (await overA2A(id)).status.state as string;
}

describe('a client of the revision without sessions', () => {
  it('discovers the server', async () => {
    const { status, result } = await callerAt().call('server/discover');
    expect(status).toBe(200);
    expect(result).toMatchObject({
      resultType: 'complete',
      supportedVersions: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'],
      capabilities: { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
      cacheScope: 'private',
    });
  });

  it('calls an agent, and gets the answer at the end of a stream', async () => {
    const { status, headers, result, notifications } = await callerAt().tool(
      'echo',
      { message: 'hello' },
      { meta: { progressToken: 'p' } },
    );
    expect(status).toBe(200);
    expect(headers.get('content-type')).toBe('text/event-stream');
    expect(result).toMatchObject({ resultType: 'complete', content: [{ type: 'text', text: 'hello' }] });
    expect(notifications.length).toBeGreaterThan(0);
    expect(
      notifications.every(
        ({ method, params }) => method === 'notifications/progress' && params.progressToken === 'p',
      ),
    ).toBe(true);
  });

  it('sends files and data', async () => {
    const files = [
      { name: 'a.png', mediaType: 'image/png', bytes: Buffer.from('png').toString('base64') },
      { name: 'a.pdf', mediaType: 'application/pdf', bytes: Buffer.from('pdf').toString('base64') },
      { url: 'https://example.com/b.txt', mediaType: 'text/plain' },
    ];
    const { result } = await callerAt().tool('echo', { message: 'm', files, data: { a: 1 } });
    expect(result!.content).toEqual([
      { type: 'text', text: 'm' },
      { type: 'image', data: files[0]!.bytes, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: {
          uri: expect.stringMatching(/^baton:\/\/tasks\//) as string,
          mimeType: 'application/pdf',
          blob: files[1]!.bytes,
        },
      },
      {
        type: 'resource_link',
        uri: 'https://example.com/b.txt',
        name: expect.any(String) as string,
        mimeType: 'text/plain',
      },
      { type: 'text', text: '{"a":1}' },
    ]);
  });

  it('gets data alone as structured content', async () => {
    const { result } = await callerAt().tool('echo', { data: { a: 1 } });
    expect(result).toMatchObject({
      structuredContent: { a: 1 },
      content: [{ type: 'text', text: '{"a":1}' }],
    });
  });

  it('gets the failure of an agent as an error of the tool', async () => {
    for (const fail of ['throw', 'failed']) {
      const { status, result } = await callerAt().tool('echo', { message: 'x' }, echo({ fail }));
      expect([fail, status, result!.isError]).toEqual([fail, 200, true]);
      expect(JSON.stringify(result)).not.toContain('.ts:');
    }
  });

  it('makes one task of a call that it sends again', async () => {
    const contextId = randomUUID();
    const meta = { 'claudecode/toolUseId': `toolu_${randomUUID()}` };
    const again = [0, 1, 0, 1].map((api) =>
      callerAt(api).tool('echo', { message: 'x', contextId }, { meta }),
    );
    const ids = (await Promise.all(again)).map(({ result }) => result!._meta['baton/taskId'] as string);
    expect(new Set(ids).size).toBe(1);
    expect(await taskIn(contextId)).toBe(ids[0]);
    const key = { headers: { 'idempotency-key': randomUUID() } };
    const first = await callerAt(0).tool('echo', { message: 'k' }, key);
    const second = await callerAt(1).tool('echo', { message: 'k' }, key);
    expect(second.result!._meta['baton/taskId']).toBe(first.result!._meta['baton/taskId']);
    const other = await callerAt(1).tool('echo', { message: 'other' }, key);
    expect(other.result).toMatchObject({ isError: true });
  });

  it('cancels the task of a call by closing its stream', async () => {
    const leaving = new AbortController();
    const contextId = randomUUID();
    const response = await callerAt().post(
      'tools/call',
      { name: 'echo', arguments: { message: 'x', contextId } },
      { ...echo({ delayMs: 600_000 }), signal: leaving.signal },
    );
    const id = await taskIn(contextId);
    leaving.abort();
    await response.text().catch(() => undefined);
    await expect(endOf(id)).resolves.toBe('TASK_STATE_CANCELED');
  });

  it.each([
    ['toolUseId', () => ({ meta: { 'claudecode/toolUseId': `toolu_${randomUUID()}` } })],
    ['Idempotency-Key', () => ({ headers: { 'idempotency-key': randomUUID() } })],
  ])('gets its answer by a call with the same %s after it has closed the stream', async (_what, keyed) => {
    const key: McpOptions = keyed();
    const contextId = randomUUID();
    const { meta } = echo({ delayMs: 3_000 });
    const asked = { message: 'x', contextId };
    const options = { ...key, meta: { ...key.meta, ...meta } };
    const ids: string[] = [];
    for (let left = 0; left < 2; left += 1) {
      const leaving = new AbortController();
      const params = { name: 'echo', arguments: asked };
      const response = await callerAt(left).post('tools/call', params, {
        ...options,
        signal: leaving.signal,
      });
      const id = await untilSeen(async () => (await tasksIn(contextId)).find((each) => !ids.includes(each)));
      leaving.abort();
      await response.text().catch(() => undefined);
      await expect(endOf(id)).resolves.toBe('TASK_STATE_CANCELED');
      ids.push(id);
    }
    const again = () => callerAt(1).tool('echo', asked, options);
    const answers = await Promise.all([again(), again()]);
    const made = answers.map(({ result }) => result!._meta['baton/taskId'] as string);
    expect(new Set([...made, ...ids]).size).toBe(3);
  });

  it('does not undo a cancel that a caller has asked for', async () => {
    const meta = { 'claudecode/toolUseId': `toolu_${randomUUID()}`, ...echo({ delayMs: 600_000 }).meta };
    const first = await callerAt().tool('echo', { message: 'x' }, { meta });
    const taskId = first.result!.structuredContent.taskId as string;
    await callerAt().tool('task_cancel', { taskId });
    const again = await callerAt(1).tool('echo', { message: 'x' }, { meta });
    expect(again.result).toMatchObject({ isError: true, _meta: { 'baton/taskId': taskId } });
  });

  it('does not cancel a task that another call has made', async () => {
    const contextId = randomUUID();
    const asked = await callerAt().tool(
      'echo',
      { message: 'x', contextId },
      echo({ askInput: true, delayMs: 1_500 }),
    );
    const taskId = asked.result!.structuredContent.taskId as string;
    const leaving = new AbortController();
    const response = await callerAt().post(
      'tools/call',
      { name: 'echo', arguments: { message: 'y', taskId } },
      { signal: leaving.signal, ...echo({ delayMs: 1_000 }) },
    );
    leaving.abort();
    await response.text().catch(() => undefined);
    await expect(endOf(taskId)).resolves.toBe('TASK_STATE_COMPLETED');
  });

  it('gets the id of its task when the server shuts down', async () => {
    const api = await stack.addApi();
    stack.apis.pop();
    const caller = new McpCaller(`${api.url}/mcp`, tenant.token);
    const contextId = randomUUID();
    const params = { name: 'echo', arguments: { message: 'x', contextId } };
    const response = await caller.post('tools/call', params, echo({ delayMs: 1_500 }));
    const id = await taskIn(contextId);
    const [{ result }] = await Promise.all([answerOf(response), api.stop()]);
    expect(result!.structuredContent).toMatchObject({ taskId: id, state: 'working' });
    await expect(endOf(id)).resolves.toBe('TASK_STATE_COMPLETED');
  });

  it('reads a large artifact as a resource, a page at a time, at any process', async () => {
    const message = 'ab€'.repeat(100_000);
    const result = await wholeResult(await callerAt().tool('echo', { message }, echo({ chunks: 12 })));
    const links = (result.content as Json[]).filter(({ type }) => type === 'resource_link');
    expect(links).toHaveLength(1);
    const [{ uri, size }] = links as [Json];
    const pages: Json[] = [];
    for (let next: string | undefined = uri as string; next !== undefined;) {
      const page = await callerAt(pages.length % 2).call('resources/read', { uri: next });
      expect(page.result).toMatchObject({ resultType: 'complete', cacheScope: 'private' });
      const [content] = page.result!.contents as [Json];
      expect(content.uri).toBe(next);
      pages.push(content);
      next = content._meta?.['baton/nextUri'] as string | undefined;
    }
    expect(pages.length).toBeGreaterThan(1);
    const whole = pages.map(({ text }) => text as string).join('');
    expect(whole === message.repeat(12)).toBe(true);
    expect(size).toBe(Buffer.byteLength(whole));
    const client = await sdkClient(1);
    const read = await client.readResource({ uri: uri as string });
    expect(read.contents[0]).toMatchObject({ uri, text: pages[0]!.text as string });
    await client.close();
    const foreign = await callerAt(0, stranger).call('resources/read', { uri });
    expect(foreign.error).toMatchObject({ code: -32602, data: { uri } });
    const atOther = callerAt().at(urlOf(0, '/agents/index/mcp'));
    expect((await atOther.call('resources/read', { uri })).error!.code).toBe(-32602);
    const beyond = `${String(uri)}?head=999999&after=1`;
    expect((await callerAt().call('resources/read', { uri: beyond })).error!.code).toBe(-32602);
  });

  it('finds no task and no agent of another tenant', async () => {
    const { result } = await callerAt().tool('echo', { message: 'mine' });
    const taskId = result!._meta['baton/taskId'] as string;
    for (const name of ['task_status', 'task_cancel', 'echo']) {
      const args = name === 'echo' ? { message: 'x', taskId } : { taskId };
      const foreign = await callerAt(0, stranger).tool(name, args);
      const unknown = await callerAt(0, stranger).tool(name, { ...args, taskId: randomUUID() });
      expect(foreign.result).toMatchObject({ isError: true });
      expect(textsOf(foreign)[0]!.replaceAll(taskId, '')).toBe(
        textsOf(unknown)[0]!.replaceAll(/[\da-f-]{36}/g, ''),
      );
    }
  });

  it('is counted among the streams of the tenant, and reads them in pieces', async () => {
    const response = await callerAt().post('tools/call', { name: 'echo', arguments: { message: 'x' } });
    expect(messagesIn(await response.text())).toHaveLength(1);
  });
});
