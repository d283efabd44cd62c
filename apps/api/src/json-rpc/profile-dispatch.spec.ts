import { type CallContext, PROFILES, ProtocolError, rulesFor, TaskState } from '@baton/a2a';
import { agentOf, type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { sampleTask, statusItem, taskItem } from '../../../../test/support/api/samples.js';

const MIB = 1_048_576;
let api: FakeApi;
let calls: CallContext[];

beforeAll(async () => {
  api = await startFakeApi();
  api.agents.push(agentOf({ a2aEnabled: false }, 'off'));
  Object.assign(api.agentOfTask, { 'task-1': 'echo', 'task-off': 'off' });
});
afterAll(() => api.close());

beforeEach(() => {
  calls = [];
  api.own.length = 0;
  const task = async (call: CallContext) => {
    calls.push(call);
    return sampleTask();
  };
  api.operations.sendMessage = async (call) => ({ $case: 'task', value: await task(call) });
  api.operations.getTask = task;
  api.operations.cancelTask = task;
  api.operations.sendStreamingMessage = async function* (call) {
    yield [{ ...taskItem(), payload: { $case: 'task', value: await task(call) } }];
    yield [statusItem(2, TaskState.TASK_STATE_WORKING)];
    yield [statusItem(3, TaskState.TASK_STATE_COMPLETED)];
  };
});

const ARBITER = '/v1/a2a/agents/echo';
const LANGSMITH = '/a2a/echo';
const JSON_WANTED = { accept: 'application/json' };

const message = (parts: object[] = [{ kind: 'text', text: 'hi' }]) => ({
  message: { kind: 'message', messageId: 'm-1', role: 'user', parts },
});
const rpc = (method: string, params: object, id: unknown = 7) => ({ jsonrpc: '2.0', id, method, params });
const send = rpc('message/send', message());
const legacySend = (params: object = {}) =>
  rpc('tasks/send', {
    id: 'mine',
    message: { role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    ...params,
  });

interface Answer {
  id: unknown;
  result?: { id?: string };
  error?: { code: number; message: string; data?: unknown };
}

async function ask(path: string, body: unknown, headers: Record<string, string> = {}) {
  const response = await api.rpc(body, headers, path);
  const text = await response.text();
  const { id, result, error } = JSON.parse(text || '{}') as Answer;
  return { http: response.status, id, result, error, code: error?.code };
}

describe('the paths', () => {
  it.each<[string, keyof typeof PROFILES]>([
    ['/agents/echo', 'spec'],
    [ARBITER, 'arbiter'],
    [`${ARBITER}/`, 'arbiter'],
    [LANGSMITH, 'langsmith'],
    ['/v1/agent-systems/echo/a2a', 'orloj'],
    ['/v1/agents/echo/a2a/', 'orloj'],
    ['/', 'capsule'],
  ])('%s speaks %s', async (path, profile) => {
    const answer = await ask(path, send, JSON_WANTED);
    expect(answer).toMatchObject({ http: 200, id: 7, result: { id: 'task-1' } });
    expect(calls[0]).toMatchObject({
      profile,
      version: '0.3',
      agent: { slug: path === '/' ? 'index' : 'echo' },
    });
    const spoken = PROFILES[profile];
    expect(calls[0]?.rules).toEqual(rulesFor(spoken, spoken.codecFor(send.method)!));
  });

  it('S-2 O-3 the 0.1 family brings an id of the caller’s own', async () => {
    expect((await ask('/', legacySend())).result?.id).toBe('mine');
    expect((await ask('/v1/agents/echo/a2a', legacySend())).http).toBe(200);
    expect(calls.map(({ profile, version, clientTaskId }) => [profile, version, clientTaskId])).toEqual([
      ['society', '0.1', 'mine'],
      ['orloj', '0.1', 'mine'],
    ]);
  });

  it.each([ARBITER, LANGSMITH, '/a2a', '/v1/agent-systems/echo/a2a', '/v1/agents/echo/a2a', '/'])(
    'A-6 GET %s is 405, and needs a token for POST',
    async (path) => {
      const response = await fetch(api.url + path);
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
      const refused = await ask(path, send, { authorization: 'Bearer wrong' });
      expect(refused).toMatchObject({ http: 401, id: null, code: -32600 });
    },
  );
});

describe('arbiter', () => {
  it.each(['', '1', '1.0'])('A-10 takes version %j', async (version) => {
    expect((await ask(ARBITER, send, { 'a2a-version': version })).result?.id).toBe('task-1');
  });

  it.each([send, 'no JSON', 'x'.repeat(20)])('A-11 refuses another version before the body', async (body) => {
    const answer = await ask(ARBITER, body, { 'a2a-version': '0.3', 'content-type': 'text/plain' });
    expect(answer).toMatchObject({ http: 200, id: null, code: -32007 });
  });

  it('A-17 takes text only', async () => {
    const parts = [
      { kind: 'text', text: 'x' },
      { kind: 'data', data: {} },
    ];
    expect((await ask(ARBITER, rpc('message/send', message(parts)))).code).toBe(-32005);
  });

  it('A-25 answers for an unknown agent with HTTP 200', async () => {
    expect(await ask('/v1/a2a/agents/theirs', send)).toMatchObject({ http: 200, id: 7, code: -32001 });
  });

  it('A-26 A-27 A-29 streams envelopes under event: message', async () => {
    const submitted = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined };
    api.operations.sendStreamingMessage = async function* () {
      yield [{ sequence: 1, payload: { $case: 'task', value: sampleTask({ status: submitted }) } }];
      yield [statusItem(2, TaskState.TASK_STATE_COMPLETED)];
    };
    const response = await api.rpc(rpc('message/stream', message()), {}, ARBITER);
    const records = (await response.text()).trim().split('\n\n');
    expect(records.every((record) => /^id: \d+\nevent: message\ndata: \{"jsonrpc"/.test(record))).toBe(true);
    expect(records[0]).toContain('"state":"working"');
    expect(records.at(-1)).toContain('"final":true');
  });
});

describe('langsmith', () => {
  it.each([
    ['message/send', 'text/event-stream'],
    ['message/stream', 'application/json'],
    ['message/stream', 'text/event-stream;q=0'],
  ])('L-2 refuses %s with Accept: %s', async (method, accept) => {
    expect(await ask(LANGSMITH, rpc(method, message()), { accept })).toMatchObject({ http: 400, id: 7 });
    expect(calls).toEqual([]);
  });

  it.each([
    ['message/send', 'application/json, text/event-stream'],
    ['message/stream', '*/*'],
  ])('L-2 answers %s with Accept: %s', async (method, accept) => {
    expect((await api.rpc(rpc(method, message()), { accept }, LANGSMITH)).status).toBe(200);
  });

  it('L-4 refuses what has no id', async () => {
    const { id: _, ...notification } = send;
    expect(await ask(LANGSMITH, notification, JSON_WANTED)).toMatchObject({
      http: 400,
      code: -32600,
      id: null,
    });
  });

  it('L-10 L-11 takes data, and files only where the agent declares them', async () => {
    const file = { kind: 'file', file: { uri: 'https://x/y.png', mimeType: 'image/png' } };
    const withParts = (...parts: object[]) =>
      ask(LANGSMITH, rpc('message/send', message(parts)), JSON_WANTED);
    expect((await withParts({ kind: 'data', data: {} })).code).toBeUndefined();
    expect((await withParts(file)).code).toBe(-32005);
  });

  it('L-16 answers for an unknown assistant with HTTP 404', async () => {
    expect(await ask('/a2a/theirs', send, JSON_WANTED)).toMatchObject({ http: 404, id: 7, code: -32001 });
  });
});

describe('orloj', () => {
  const named = (metadata: object) => ask('/a2a', legacySend({ metadata }));

  it('O-1 finds the agent that the metadata names, by agent before target', async () => {
    await named({ agent: 'index', target: 'echo' });
    await named({ target: 'echo' });
    expect(calls.map(({ agent }) => agent.slug)).toEqual(['index', 'echo']);
  });

  it('O-1 finds the tenant’s only enabled agent, or its default agent', async () => {
    await ask('/a2a', legacySend());
    api.own.push(agentOf({}, 'echo'), agentOf({ a2aEnabled: false }, 'off'));
    await ask('/a2a', legacySend());
    expect(calls.map(({ agent }) => agent.slug)).toEqual(['index', 'echo']);
    api.own.push(agentOf({}, 'other'));
    expect((await ask('/a2a', legacySend())).code).toBe(-32602);
  });

  it('O-1 finds the agent of a task by the task’s id alone', async () => {
    for (const method of ['tasks/get', 'tasks/cancel']) await ask('/a2a', rpc(method, { id: 'task-1' }));
    expect(calls.map(({ agent }) => agent.slug)).toEqual(['echo', 'echo']);
    const unknown = await ask('/a2a', rpc('tasks/get', { id: 'theirs' }));
    expect(unknown.error).toEqual({ code: -32001, message: 'task not found', data: { task_id: 'theirs' } });
  });

  it('O-2 carries out a notification, with 204', async () => {
    const { id: _, ...notification } = legacySend();
    expect((await ask('/v1/agents/echo/a2a', notification)).http).toBe(204);
    expect(calls).toHaveLength(1);
  });

  it('O-10 streams bare tasks under event: status', async () => {
    const body = { ...legacySend(), method: 'tasks/sendSubscribe' };
    const records = (await (await api.rpc(body, {}, '/v1/agents/echo/a2a')).text()).trim().split('\n\n');
    expect(records.at(-1)).toMatch(
      /^id: 3\nevent: status\ndata: \{"id":"[^"]+","status":\{"state":"completed"/,
    );
  });

  it('O-10 reports a stream that fails as event: error', async () => {
    api.operations.sendStreamingMessage = async function* () {
      yield [taskItem()];
      throw new Error('no more');
    };
    const body = { ...legacySend(), method: 'tasks/sendSubscribe' };
    const text = await (await api.rpc(body, {}, '/v1/agents/echo/a2a')).text();
    expect(text).toMatch(/\n\nevent: error\ndata: \{"jsonrpc":"2.0","id":7,"error":\{"code":-32603/);
  });

  it('O-13 answers -32003 for an agent that is unknown, or not enabled', async () => {
    for (const agent of ['theirs', 'off']) {
      expect(await ask(`/v1/agents/${agent}/a2a`, legacySend())).toMatchObject({ http: 200, code: -32003 });
      expect(await named({ agent })).toMatchObject({ http: 200, code: -32003 });
    }
  });

  it('O-13 a task can be read and stopped when its agent is off, but not answered', async () => {
    for (const method of ['tasks/get', 'tasks/cancel']) {
      expect((await ask('/a2a', rpc(method, { id: 'task-off' }))).code).toBeUndefined();
    }
    const { message: answered } = message();
    const params = { message: { ...answered, taskId: 'task-off' } };
    expect((await ask('/a2a', rpc('message/send', params))).code).toBe(-32003);
  });
});

describe('the root', () => {
  it('S-7 names a method that is not known', async () => {
    const { error } = await ask('/', rpc('unknown/method', {}));
    expect(error).toMatchObject({ code: -32601, message: 'method not found: unknown/method' });
  });

  it('C-8 answers only Internal error for an agent that threw', async () => {
    api.operations.sendMessage = async () => {
      throw new ProtocolError('agent-threw', 'the agent failed: secret');
    };
    expect((await ask('/', send)).error).toMatchObject({ code: -32603, message: 'Internal error' });
    expect((await ask(ARBITER, send)).code).toBe(-32006);
  });

  it('S-6 refuses other part types', async () => {
    const parts = [{ type: 'data', data: {} }];
    expect((await ask('/', legacySend({ message: { role: 'user', parts } }))).code).toBe(-32602);
  });

  it('C-5 stream frames have the wrapper and the flat fields', async () => {
    const text = await (await api.rpc(rpc('message/stream', message()), {}, '/')).text();
    const last = JSON.parse(text.trim().split('\n\n').at(-1)!.split('data: ')[1]!) as { result: object };
    const flat = { kind: 'status-update', final: true };
    expect(last.result).toMatchObject({ ...flat, statusUpdate: flat });
  });

  it.each(['/', '/a2a', '/v1/agents/echo/a2a'])('S-8 %s takes 1 MiB and not a byte more', async (path) => {
    const filled = (bytes: number): string => {
      const text = (filling: string) =>
        JSON.stringify(legacySend({ message: { role: 'user', parts: [{ type: 'text', text: filling }] } }));
      return text('a'.repeat(bytes - text('').length));
    };
    expect((await ask(path, filled(MIB))).http).toBe(200);
    expect(await ask(path, filled(MIB + 1))).toMatchObject({ http: 413, id: null });
    expect((await ask(ARBITER, filled(MIB + 1))).http).toBe(200);
  });
});
