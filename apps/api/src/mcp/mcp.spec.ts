import {
  type Artifact,
  type Part,
  ProtocolError,
  Role,
  type SendResult,
  type StreamItem,
  type Task,
  TaskState,
} from '@baton/a2a';
import { agentOf, type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { answerOf, type McpAnswer, McpCaller } from '../../../../test/support/mcp-client/mcp-caller.js';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

let api: FakeApi;
let caller: McpCaller;
beforeAll(async () => {
  api = await startFakeApi({ CORS_ORIGINS: 'https://app.example' });
  caller = new McpCaller(`${api.url}/mcp`, 'caller');
});
afterAll(() => api.close());
beforeEach(() => {
  api.operations.sendMessage = async () => ({ $case: 'task', value: taskIn(TaskState.TASK_STATE_COMPLETED) });
});

const said = (text: string) => ({
  messageId: 'm',
  contextId: 'context-1',
  taskId: 'task-1',
  role: Role.ROLE_AGENT,
  parts: [
    { content: { $case: 'text' as const, value: text }, metadata: undefined, filename: '', mediaType: '' },
  ],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

const taskIn = (state: TaskState, text?: string): Task => ({
  id: 'task-1',
  contextId: 'context-1',
  status: { state, message: text === undefined ? undefined : said(text), timestamp: undefined },
  artifacts: [],
  history: [],
  metadata: undefined,
});

const TASKS = { 'io.modelcontextprotocol/tasks': {} };

/** A request of an earlier revision, whatever it says. */
const legacy = async (body: unknown, headers: Record<string, string> = {}): Promise<McpAnswer> => {
  const all = { authorization: 'Bearer caller', 'content-type': 'application/json', ...headers };
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return answerOf(await fetch(`${api.url}/mcp`, { method: 'POST', headers: all, body: text }));
};
const call = (method: string, params?: object) => ({ jsonrpc: '2.0', id: 1, method, params });

describe('the revision without sessions', () => {
  const VERSION = 'io.modelcontextprotocol/protocolVersion';
  const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';

  it.each([
    ['a version in _meta that is missing', { meta: { [VERSION]: undefined } }, -32602, VERSION],
    ['capabilities that are missing', { meta: { [CAPABILITIES]: undefined } }, -32602, CAPABILITIES],
    ['capabilities that are no object', { meta: { [CAPABILITIES]: [] } }, -32602, CAPABILITIES],
    [
      'a header of the version that is missing',
      { headers: { 'mcp-protocol-version': undefined } },
      -32020,
      'MCP-Protocol-Version',
    ],
    [
      'a header of another version',
      { headers: { 'mcp-protocol-version': '2025-11-25' } },
      -32020,
      'MCP-Protocol-Version',
    ],
    [
      'a header of the method that is missing',
      { headers: { 'mcp-method': undefined } },
      -32020,
      'Mcp-Method',
    ],
    ['a header of another method', { headers: { 'mcp-method': 'tools/list' } }, -32020, 'Mcp-Method'],
    ['a header of the name that is missing', { headers: { 'mcp-name': undefined } }, -32020, 'Mcp-Name'],
    ['a header of another name', { headers: { 'mcp-name': 'index' } }, -32020, 'Mcp-Name'],
  ])('refuses %s', async (_what, options, code, named) => {
    const { status, error } = await caller.tool('echo', { message: 'x' }, options);
    expect([status, error!.code]).toEqual([400, code]);
    expect(error!.message).toContain(named);
  });

  it('refuses an unknown version, and names the supported ones', async () => {
    const asked = { meta: { [VERSION]: '1900-01-01' }, headers: { 'mcp-protocol-version': '1900-01-01' } };
    const { status, error } = await caller.call('tools/list', {}, asked);
    expect([status, error!.code]).toEqual([400, -32022]);
    expect(error!.data).toEqual({
      supported: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26'],
      requested: '1900-01-01',
    });
  });

  it.each(['ping', 'initialize', 'prompts/list', 'toString', '__proto__'])(
    'has no method %s',
    async (method) => {
      const { status, error } = await caller.call(method);
      expect([status, error!.code]).toEqual([404, -32601]);
    },
  );

  it('decodes an encoded name in the header', async () => {
    const name = Buffer.from('echo').toString('base64');
    const headers = { 'mcp-name': `=?base64?${name}?=` };
    const { result } = await caller.tool('echo', { message: 'x' }, { headers, accept: 'application/json' });
    expect(result!.resultType).toBe('complete');
  });

  it('has the type of the result, and how long a list may be cached', async () => {
    const { result } = await caller.call('tools/list');
    expect(result).toMatchObject({ resultType: 'complete', ttlMs: 30_000, cacheScope: 'private' });
    const called = await caller.tool('echo', { message: 'x' }, { accept: 'application/json' });
    expect(called.result!.resultType).toBe('complete');
  });
});

describe('earlier revisions', () => {
  it.each([
    ['2025-11-25', '2025-11-25'],
    ['2025-06-18', '2025-06-18'],
    ['2024-11-05', '2025-11-25'],
    ['2026-07-28', '2025-11-25'],
  ])('answer initialize of %s with %s, and begin no session', async (asked, answered) => {
    const params = { protocolVersion: asked, capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    const { status, result, headers } = await legacy(call('initialize', params));
    expect([status, result!.protocolVersion]).toEqual([200, answered]);
    expect(headers.has('mcp-session-id')).toBe(false);
  });

  it('accept notifications, answer pings, and have no resultType', async () => {
    expect((await legacy({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202);
    expect((await legacy(call('ping'))).result).toEqual({});
    expect((await legacy(call('tools/list'))).result).not.toHaveProperty('resultType');
  });

  it('answer errors of the protocol with HTTP 200', async () => {
    const unknown = await legacy(call('prompts/list'), { 'mcp-protocol-version': '2025-06-18' });
    expect([unknown.status, unknown.error!.code]).toEqual([200, -32601]);
    const tool = await legacy(call('tools/call', { name: 'nobody', arguments: { message: 'x' } }));
    expect([tool.status, tool.error!.code]).toEqual([200, -32602]);
  });

  it('name an unknown tool also if its arguments are wrong', async () => {
    const { error } = await legacy(call('tools/call', { name: 'nobody', arguments: {} }));
    expect([error!.code, error!.message]).toEqual([-32602, expect.stringContaining('nobody')]);
  });

  it('refuse a header of an unknown version', async () => {
    const { status, error } = await legacy(call('tools/list'), { 'mcp-protocol-version': '2024-01-01' });
    expect([status, error!.code]).toEqual([400, -32022]);
  });
});

describe('a request that is wrong', () => {
  it.each([
    ['no JSON', '{', -32700],
    ['nothing', '', -32700],
    ['a batch', [call('ping'), call('ping')], -32600],
    ['an answer', { jsonrpc: '2.0', id: 1, result: {} }, -32600],
    ['a request without an id', { jsonrpc: '2.0', method: 'tools/list' }, -32600],
    ['an id that is null', { jsonrpc: '2.0', id: null, method: 'ping' }, -32600],
    ['params that are a list', { ...call('ping'), params: [1] }, -32602],
    ['_meta that is a text', call('ping', { _meta: 'x' }), -32602],
  ])('is refused with HTTP 400: %s', async (_what, body, code) => {
    const { status, error } = await legacy(body);
    expect([status, error!.code]).toEqual([400, code]);
    expect(JSON.stringify(error)).not.toMatch(/\.ts|\.js|node_modules/);
  });

  it('names the argument of a tool that is wrong, for the model to read', async () => {
    const wrong: [object, string][] = [
      [{}, 'send a message, files or data'],
      [{ message: 1 }, 'arguments.message'],
      [{ mesage: 'x' }, 'mesage'],
      [{ files: [{ name: 'x' }] }, 'arguments.files[0]'],
      [{ message: 'x', files: [{ bytes: '%' }] }, 'arguments.files[0].bytes'],
      [{ message: 'x', taskId: 'x'.repeat(300) }, 'arguments.taskId'],
    ];
    for (const [args, named] of wrong) {
      const { status, result } = await caller.tool('echo', args);
      expect([status, result!.isError]).toEqual([200, true]);
      expect(result!.content[0].text).toContain(named);
    }
  });

  it('is refused with HTTP 403 if a web page of another origin sends it', async () => {
    const from = (origin: string) => legacy(call('ping'), { origin });
    expect([(await from('https://evil.example')).status, (await from('null')).status]).toEqual([403, 403]);
    expect((await from('https://evil.example')).error!.message).toContain('CORS_ORIGINS');
    expect((await from('https://app.example')).status).toBe(200);
    expect((await from(new URL(api.url).origin.replace('127.0.0.1', 'localhost'))).status).toBe(200);
  });

  it('is refused with HTTP 401 without a token, and with 405 by another HTTP method', async () => {
    const { status, error, headers } = await legacy(call('ping'), { authorization: 'Bearer nobody-has-it' });
    expect([status, error!.code, headers.get('www-authenticate')]).toEqual([
      401,
      401,
      expect.stringMatching(/^Bearer/),
    ]);
    for (const method of ['GET', 'DELETE']) {
      const answer = await fetch(`${api.url}/mcp`, { method, headers: { authorization: 'Bearer caller' } });
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'POST, OPTIONS']);
    }
  });

  it('is refused with HTTP 404 at the path of an agent that there is not', async () => {
    const { status, error } = await caller.at(`${api.url}/agents/nobody/mcp`).call('tools/list');
    expect([status, error!.code]).toEqual([404, -32602]);
  });
});

describe('tools', () => {
  afterEach(() => {
    api.agents.splice(0, api.agents.length, agentOf(), agentOf({}, 'index'));
  });

  it('come by name, a page at a time', async () => {
    const slugs = Array.from({ length: 250 }, (_, i) => `agent-${String(i).padStart(3, '0')}`);
    api.agents.push(...slugs.toReversed().map((slug) => agentOf({}, slug)));
    const found: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      const { result } = await caller.call('tools/list', { cursor });
      found.push(...(result!.tools as { name: string }[]).map(({ name }) => name));
      cursor = result!.nextCursor as string | undefined;
      pages += 1;
    } while (cursor !== undefined);
    expect(pages).toBe(3);
    expect(found).toEqual(['task_status', 'task_cancel', ...slugs, 'echo', 'index']);
    const { error } = await caller.call('tools/list', { cursor: '%' });
    expect(error).toMatchObject({
      code: -32602,
      message: expect.stringContaining('params.cursor') as string,
    });
  });

  it('have the texts of the card, and leave out agents that take no messages', async () => {
    const skill = {
      id: 's',
      name: 'Invoices',
      description: 'Reads invoices',
      tags: [],
      examples: [],
      inputModes: [],
      outputModes: [],
      securityRequirements: [],
    };
    api.agents.push(agentOf({ name: 'The clerk', description: 'Knows all', skills: [skill] }, 'clerk'));
    api.agents.push({ ...agentOf({}, 'off'), status: 'disabled' });
    const { result } = await caller.call('tools/list');
    const tools = result!.tools as {
      name: string;
      title: string;
      description: string;
      inputSchema: object;
    }[];
    expect(tools.map(({ name }) => name)).toEqual(['task_status', 'task_cancel', 'clerk', 'echo', 'index']);
    expect(tools[2]).toMatchObject({
      title: 'The clerk',
      description: 'Knows all\n\nSkills:\n- Invoices: Reads invoices',
      inputSchema: { type: 'object', properties: { message: { type: 'string' } } },
    });
  });

  it('say what data an agent answers with, or that a task is returned', async () => {
    const schema = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { total: { $ref: '#/definitions/money' }, $ref: { type: 'string' } },
      definitions: { money: { type: 'number' } },
    };
    api.agents.push(
      agentOf({ runtime: 'llm', config: { output: { schema } } }, 'clerk'),
      agentOf(
        { runtime: 'llm', config: { output: { schema: { ...schema, description: 'x'.repeat(20_000) } } } },
        'long',
      ),
    );
    const { result } = await caller.call('tools/list');
    const byName = new Map(
      (result!.tools as Json[]).map((tool) => [tool.name as string, tool.outputSchema as Json]),
    );
    expect(byName.get('echo')).toBeUndefined();
    expect(byName.get('long')).toBeUndefined();
    const { type, anyOf } = byName.get('clerk')!;
    expect(type).toBe('object');
    expect(anyOf[0]).toEqual({
      type: 'object',
      properties: { total: { $ref: '#/anyOf/0/definitions/money' }, $ref: { type: 'string' } },
      definitions: { money: { type: 'number' } },
    });
    expect(anyOf[1].required).toEqual(['taskId', 'contextId', 'state']);
  });

  it('are those that the token may call', async () => {
    api.agents.push(agentOf({}, 'clerk'));
    api.rights.caller = { agents: { slugs: ['clerk'], ids: ['clerk'] } };
    const { result } = await caller.call('tools/list');
    delete api.rights.caller;
    expect(result!.tools.map(({ name }: { name: string }) => name)).toEqual([
      'task_status',
      'task_cancel',
      'clerk',
    ]);
    const reader = await new McpCaller(`${api.url}/mcp`, 'reader').call('tools/list');
    expect(reader.result!.tools.map(({ name }: { name: string }) => name)).toEqual(['task_status']);
    const refused = await new McpCaller(`${api.url}/mcp`, 'reader').tool('echo', { message: 'x' });
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([
      403,
      'Bearer realm="baton", error="insufficient_scope", scope="agents:call"',
    ]);
  });
});

describe('the result of a call', () => {
  const resultOf = async (task: Task) => {
    api.operations.sendMessage = async (): Promise<SendResult> => ({ $case: 'task', value: task });
    return (await caller.tool('echo', { message: 'x' }, { accept: 'application/json' })).result!;
  };

  it.each([
    ['completed', TaskState.TASK_STATE_COMPLETED, undefined],
    ['failed', TaskState.TASK_STATE_FAILED, true],
    ['rejected', TaskState.TASK_STATE_REJECTED, true],
    ['canceled', TaskState.TASK_STATE_CANCELED, true],
    ['input-required', TaskState.TASK_STATE_INPUT_REQUIRED, undefined],
    ['auth-required', TaskState.TASK_STATE_AUTH_REQUIRED, undefined],
    ['working', TaskState.TASK_STATE_WORKING, undefined],
  ])('of a task that is %s says so', async (name, state, isError) => {
    const result = await resultOf(taskIn(state, 'what it says'));
    expect(result.isError).toBe(isError);
    expect(result._meta).toEqual({
      'baton/taskId': 'task-1',
      'baton/contextId': 'context-1',
      'baton/state': name,
    });
    const isHandle = ['input-required', 'auth-required', 'working'].includes(name);
    const structured = isHandle ? { taskId: 'task-1', contextId: 'context-1', state: name } : undefined;
    expect(result.structuredContent).toEqual(structured);
  });

  const artifact = (
    artifactId: string,
    content: Part['content'],
    more: Partial<Artifact> = {},
  ): Artifact => ({
    artifactId,
    name: `name of ${artifactId}`,
    description: '',
    parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    ...more,
  });

  it('has small artifacts, and the addresses of large ones', async () => {
    const task = taskIn(TaskState.TASK_STATE_COMPLETED);
    const text = (bytes: number) => ({ $case: 'text' as const, value: 'x'.repeat(bytes) });
    task.artifacts.push(
      artifact('small', text(10)),
      artifact('l/arge', text(300 * 1024), { description: 'All of it' }),
      ...['a', 'b', 'c', 'd', 'e'].map((id) => artifact(id, text(250 * 1024))),
    );
    const { content } = await resultOf(task);
    const shown = (content as Json[]).map((block) => (block.type === 'text' ? block.text.length : block));
    const kib = 250 * 1024;
    expect(shown).toEqual([
      10,
      {
        type: 'resource_link',
        uri: 'baton://tasks/task-1/artifacts/l%2Farge',
        name: 'name of l/arge',
        description: 'All of it',
        size: 300 * 1024,
      },
      kib,
      kib,
      kib,
      kib,
      { type: 'resource_link', uri: 'baton://tasks/task-1/artifacts/e', name: 'name of e', size: kib },
    ]);
  });

  it('has the reply alone: no reasoning, and no calls of tools', async () => {
    const task = taskIn(TaskState.TASK_STATE_COMPLETED);
    task.artifacts.push(
      artifact('r', { $case: 'text', value: 'Hm' }, { metadata: { 'baton.event': 'reasoning' } }),
      artifact('t', { $case: 'data', value: { tool: 'x' } }, { metadata: { 'baton.event': 'tool-call' } }),
      artifact('output-1', { $case: 'data', value: { total: 1 } }),
    );
    expect(await resultOf(task)).toMatchObject({
      content: [{ type: 'text', text: '{"total":1}' }],
      structuredContent: { total: 1 },
    });
  });

  it('that waits for approval sends a person to the console, and no model can answer', async () => {
    const task = taskIn(TaskState.TASK_STATE_INPUT_REQUIRED, 'May I?');
    const approval = { callId: 'call-1', tool: 'pay', description: 'Pays', input: {} };
    task.status!.message!.parts.push({
      content: { $case: 'data', value: { approval } },
      metadata: undefined,
      filename: '',
      mediaType: '',
    });
    const { content } = await resultOf(task);
    const texts = (content as { text: string }[]).map(({ text }) => text).join('\n');
    expect(texts).toContain('waits until a person approves it');
    expect(texts).toMatch(/http:\/\/\S+\/console\/tasks\/task-1/);
    expect(texts).not.toContain('call this tool again');
  });
});

describe('a stream', () => {
  const item = (sequence: number, state: TaskState, text?: string): StreamItem => ({
    sequence,
    payload: {
      $case: 'statusUpdate',
      value: {
        taskId: 'task-1',
        contextId: 'context-1',
        status: { state, message: text === undefined ? undefined : said(text), timestamp: undefined },
        metadata: undefined,
      },
    },
  });

  it('has progress that only grows, and ends with the one answer', async () => {
    api.operations.sendStreamingMessage = async function* () {
      yield [{ sequence: 1, payload: { $case: 'task', value: taskIn(TaskState.TASK_STATE_SUBMITTED) } }];
      yield [
        item(2, TaskState.TASK_STATE_WORKING, 'thinking'),
        item(3, TaskState.TASK_STATE_COMPLETED, 'done'),
      ];
    };
    api.operations.getTask = async () => taskIn(TaskState.TASK_STATE_COMPLETED, 'done');
    api.agentOfTask['task-1'] = 'echo';
    const { result, notifications } = await caller.tool(
      'echo',
      { message: 'x' },
      { meta: { progressToken: 7 } },
    );
    expect(result!.content).toEqual([{ type: 'text', text: 'done' }]);
    expect(
      notifications.map(({ params }) => [params.progressToken, params.progress, params.message]),
    ).toEqual([
      [7, 1, 'accepted'],
      [7, 2, 'thinking'],
      [7, 3, 'done'],
    ]);
  });

  it('that fails ends with the error, in the form of MCP', async () => {
    api.operations.sendStreamingMessage = async function* () {
      yield [{ sequence: 1, payload: { $case: 'task', value: taskIn(TaskState.TASK_STATE_SUBMITTED) } }];
      throw new ProtocolError('unavailable', 'The database is away');
    };
    const { status, error } = await caller.tool('echo', { message: 'x' });
    expect([status, error]).toEqual([
      200,
      expect.objectContaining({ code: 503, message: 'The database is away' }),
    ]);
  });
});

describe('the artifacts of a task', () => {
  const client = () => new McpCaller(`${api.url}/mcp`, 'caller', { capabilities: { extensions: TASKS } });
  let read: string[];
  let followed: string[];
  /** The task is always in this state. */
  const atOnce = (state: TaskState): void => {
    [read, followed] = [[], []];
    api.agentOfTask['task-1'] = 'echo';
    api.operations.getTask = async ({ rules }) => {
      read.push(rules.artifacts);
      return taskIn(state);
    };
    api.operations.subscribeToTask = async function* ({ rules }) {
      followed.push(rules.artifacts);
      yield [{ sequence: 1, payload: { $case: 'task', value: taskIn(state) } }];
    };
  };
  const listen = () => client().call('subscriptions/listen', { notifications: { taskIds: ['task-1'] } });

  it('are not read while it is at work: nothing shows them', async () => {
    atOnce(TaskState.TASK_STATE_WORKING);
    expect((await client().call('tasks/get', { taskId: 'task-1' })).result).toMatchObject({
      status: 'working',
    });
    expect(read).toEqual(['left-out']);
    const { notifications } = await listen();
    expect(notifications.map(({ params }) => params.status as unknown)).toEqual([undefined, 'working']);
    expect(new Set([...read, ...followed])).toEqual(new Set(['left-out']));
  });

  it('are read once it has ended', async () => {
    atOnce(TaskState.TASK_STATE_COMPLETED);
    await client().call('tasks/get', { taskId: 'task-1' });
    expect(read).toEqual(['left-out', 'read']);
    read = [];
    const { notifications } = await listen();
    expect(notifications.at(-1)!.params.status).toBe('completed');
    expect([read.filter((rule) => rule === 'read'), followed]).toEqual([['read'], []]);
  });
});

describe('what a task asks of a person', () => {
  const waiting = (data: object, state = TaskState.TASK_STATE_INPUT_REQUIRED): Task => {
    const task = taskIn(state, 'May I?');
    task.status!.message!.parts.push({
      content: { $case: 'data', value: data },
      metadata: undefined,
      filename: '',
      mediaType: '',
    });
    return task;
  };
  const approvals = (...more: object[]): Task => {
    const calls = [{ callId: 'call-1', tool: 'pay', description: 'Pays', input: { amount: 3 } }, ...more];
    const [first, ...others] = calls.map((approval) => waiting({ approval }));
    for (const other of others) first!.status!.message!.parts.push(other.status!.message!.parts[1]!);
    return first!;
  };
  const at = (token: string, elicitation: object = {}) =>
    new McpCaller(`${api.url}/mcp`, token, {
      capabilities: { extensions: TASKS, elicitation },
    });
  const asked = async (task: Task, token = 'admin', elicitation?: object): Promise<Json> => {
    api.agentOfTask['task-1'] = 'echo';
    api.operations.getTask = async () => task;
    return (await at(token, elicitation).call('tasks/get', { taskId: 'task-1' })).result!;
  };

  it('is a form with the fields that its agent has declared', async () => {
    const requestedSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const { inputRequests } = await asked(waiting({ requestedSchema }));
    expect(inputRequests).toEqual({
      'question/m': {
        method: 'elicitation/create',
        params: { mode: 'form', message: 'May I?', requestedSchema },
      },
    });
  });

  it('is a plain answer if no client can show its form', async () => {
    for (const properties of [{ a: { type: 'object' } }, { a: { $ref: 'https://example.com' } }, { a: 1 }]) {
      const { inputRequests } = await asked(waiting({ requestedSchema: { type: 'object', properties } }));
      expect(inputRequests['question/m'].params.requestedSchema.properties).toHaveProperty('answer');
    }
  });

  it('is a question for each call that waits for approval, to who may approve', async () => {
    const task = approvals({ callId: 'call-2', tool: 'refund', description: '', input: {} });
    const { inputRequests } = await asked(task);
    expect(Object.keys(inputRequests as object)).toEqual(['approval/call-1', 'approval/call-2']);
    expect(inputRequests['approval/call-1'].params).toMatchObject({
      message: 'Approve a call of pay?\nPays\nInput: {"amount":3}',
      requestedSchema: { properties: { approved: { type: 'boolean' } }, required: ['approved'] },
    });
    expect((await asked(task, 'caller')).inputRequests).toEqual({});
    expect(
      (await asked(approvals({ callId: 'c', tool: 't', description: '', input: {}, by: 'other' })))
        .inputRequests,
    ).toEqual({});
  });

  describe('of a tool', () => {
    const requestedSchema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
    const asks = (question: object): Task =>
      waiting({
        approval: {
          callId: 'call-1/q',
          tool: 'book',
          server: 'desk',
          description: 'Which city?',
          input: {},
          question,
        },
      });
    const message = 'book (server desk) asks:\nWhich city?';
    const decisionOf = async (task: Task, response: object): Promise<unknown> => {
      const { inputRequests } = await asked(task, 'admin', { form: {}, url: {} });
      const [key] = Object.keys(inputRequests as object) as [string];
      let said: unknown;
      api.operations.sendMessage = async (_context, sent) => {
        said = sent.message!.parts.map(({ content }) => content?.value);
        return { $case: 'task', value: taskIn(TaskState.TASK_STATE_WORKING) };
      };
      await at('admin').call('tasks/update', { taskId: 'task-1', inputResponses: { [key]: response } });
      return said;
    };

    it('is the form of the tool, and its answer is the input', async () => {
      const { inputRequests } = await asked(asks({ requestedSchema }));
      expect(inputRequests).toEqual({
        'approval/call-1/q/m': {
          method: 'elicitation/create',
          params: { mode: 'form', message, requestedSchema },
        },
      });
      expect(
        await decisionOf(asks({ requestedSchema }), { action: 'accept', content: { city: 'Ulm' } }),
      ).toEqual([{ approval: { callId: 'call-1/q', approved: true, input: { city: 'Ulm' } } }]);
      expect(await decisionOf(asks({ requestedSchema }), { action: 'decline' })).toEqual([
        { approval: { callId: 'call-1/q', approved: false, reason: 'the person chose to decline' } },
      ]);
    });

    it('is the address of the tool, to a client that can open one', async () => {
      const task = asks({ url: 'https://pay.example/1' });
      const { inputRequests } = await asked(task, 'admin', { url: {} });
      expect(Object.values(inputRequests as object)).toEqual([
        { method: 'elicitation/create', params: { mode: 'url', message, url: 'https://pay.example/1' } },
      ]);
      expect((await asked(task, 'admin', { form: {} })).inputRequests).toEqual({});
      expect(await decisionOf(task, { action: 'accept' })).toEqual([
        { approval: { callId: 'call-1/q', approved: true } },
      ]);
    });

    it('is left to the console if no client can show its form', async () => {
      const nested = { type: 'object', properties: { a: { type: 'object' } } };
      expect((await asked(asks({ requestedSchema: nested }))).inputRequests).toEqual({});
    });
  });

  it('is another question each time that the outcome of a call is not known', async () => {
    const task = waiting({
      approval: { callId: 'call-1', tool: 'pay', description: '', input: {}, unknownOutcome: true },
    });
    expect(Object.keys((await asked(task)).inputRequests as object)).toEqual(['approval/call-1/m']);
  });

  it('is an address of the console where a person must sign in', async () => {
    const task = taskIn(TaskState.TASK_STATE_AUTH_REQUIRED, 'Sign in to the desk');
    const { inputRequests, status } = await asked(task, 'admin', { url: {} });
    expect(status).toBe('input_required');
    expect(inputRequests).toEqual({
      'sign-in/m': {
        method: 'elicitation/create',
        params: {
          mode: 'url',
          message: 'Sign in to the desk',
          url: expect.stringMatching(/\/console\/tasks\/task-1$/) as string,
        },
      },
    });
    expect((await asked(task, 'admin', { form: {} })).inputRequests).toEqual({});
  });

  it.each([
    ['accept', { approved: true }, { approved: true }],
    ['accept', { approved: false, reason: 'a draft' }, { approved: false, reason: 'a draft' }],
    ['accept', {}, { approved: false }],
    ['accept', { approved: 'true' }, { approved: false }],
    ['decline', { approved: true }, { approved: false, reason: 'the person chose to decline' }],
    ['cancel', { approved: true }, { approved: false, reason: 'the person chose to cancel' }],
  ])('is answered by %s with %j', async (action, content, decision) => {
    await asked(approvals());
    const sent: unknown[] = [];
    api.operations.sendMessage = async ({ rules }, { message }) => {
      sent.push(
        rules.approvals,
        message!.taskId,
        message!.parts.map((part) => part.content),
      );
      return { $case: 'task', value: taskIn(TaskState.TASK_STATE_WORKING) };
    };
    const inputResponses = { 'approval/call-1': { action, content } };
    const { result } = await at('admin').call('tasks/update', { taskId: 'task-1', inputResponses });
    expect(result).toEqual({ resultType: 'complete' });
    const value = { approval: { callId: 'call-1', ...decision } };
    expect(sent).toEqual(['by-message', 'task-1', [{ $case: 'data', value }]]);
  });

  it('ignores responses to other questions, and names an invalid one', async () => {
    await asked(approvals());
    const sent: string[] = [];
    api.operations.sendMessage = async (_context, { message }) => {
      sent.push(message!.taskId);
      return { $case: 'task', value: taskIn(TaskState.TASK_STATE_WORKING) };
    };
    const accepted = { action: 'accept', content: { approved: true } };
    const update = (inputResponses: object) =>
      at('admin').call('tasks/update', { taskId: 'task-1', inputResponses });
    const others = { roots: { roots: [] }, other: 'text' };
    expect((await update(others)).result).toEqual({ resultType: 'complete' });
    expect(sent).toEqual([]);
    await update({ ...others, 'approval/call-1': accepted });
    expect(sent).toEqual(['task-1']);
    const { status, error } = await update({ 'approval/call-1': { approved: true } });
    expect([status, error!.code]).toEqual([400, -32602]);
    expect(error!.message).toContain('params.inputResponses["approval/call-1"]: must have an action');
  });

  it('is not answered by a tool: an approval through one is refused where it is accepted', async () => {
    const rules: unknown[] = [];
    api.operations.sendMessage = async (context) => {
      rules.push(context.rules.approvals);
      return { $case: 'task', value: taskIn(TaskState.TASK_STATE_WORKING) };
    };
    const data = { approval: { callId: 'call-1', approved: true } };
    await at('admin').tool('echo', { data, taskId: 'task-1' });
    expect(rules).toEqual(['refused']);
  });
});

describe('resources', () => {
  it('are none in lists, and have a template of addresses', async () => {
    const [list, templates] = [
      await caller.call('resources/list'),
      await caller.call('resources/templates/list'),
    ];
    expect(list.result).toEqual({
      resultType: 'complete',
      ttlMs: 30_000,
      cacheScope: 'private',
      resources: [],
    });
    const [template] = templates.result!.resourceTemplates as Json[];
    expect(template!.uriTemplate).toBe('baton://tasks/{taskId}/artifacts/{artifactId}');
  });

  it.each([
    'baton://tasks/task-1/artifacts/a',
    'baton://tasks/01a21b66-8ce5-725d-81df-544d3879a4c2/artifacts/%',
    'baton://tasks/01a21b66-8ce5-725d-81df-544d3879a4c2/artifacts/a/b',
    'baton://tasks/01a21b66-8ce5-725d-81df-544d3879a4c2/artifacts/a?head=1',
    'baton://tasks/01a21b66-8ce5-725d-81df-544d3879a4c2/message',
    'file:///etc/passwd',
    'https://example.com',
    '',
    `baton://tasks/${'x'.repeat(5_000)}`,
  ])('are not found at %.60s', async (uri) => {
    const { error } = await caller.call('resources/read', { uri });
    expect(error!.code).toBe(-32602);
    expect(uri.startsWith((error!.data.uri as string).slice(0, 2_000))).toBe(true);
    expect(error!.data.uri.length).toBeLessThan(2_100);
    const older = await legacy(call('resources/read', { uri }));
    expect(older.error!.code).toBe(-32002);
  });

  it('need an address', async () => {
    const { error } = await caller.call('resources/read', {});
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('params.uri') as string });
  });
});
