import { describeContract } from '../support/contract.js';
import { withoutTable } from '../support/database.js';
import { arbiterClient } from './arbiter-client.js';
import { describeArbiterStreams } from './arbiter-streams.js';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';

const prepare = (api: Parameters<typeof arbiterClient>[0]) => api.createAgent('own-echo');

describeContract('arbiter', { prepare, headers: { 'A2A-Version': '1.0' } }, (api) => {
  const { call, send, atWork, message, path } = arbiterClient(api);
  const get = (id: string) => call('tasks/get', { id });
  const codeOf = async (answer: ReturnType<typeof call>): Promise<number | undefined> =>
    (await answer).json.error?.code;

  it('A-1 the method is chosen by the `method` field only', async () => {
    const { id } = (await send('hi')).json.result;
    const answer = await api.post(`${path()}?method=message/send`, {
      jsonrpc: '2.0',
      id: 1,
      method: 'tasks/get',
      params: { id, message: message('hi') },
    });
    expect(answer.json.result.id).toBe(id);
  });

  it('A-2 a unary answer is HTTP 200 and one envelope', async () => {
    const answer = await send('summarize this RFC');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toMatch(/^application\/json/);
    expect(Object.keys(answer.json)).toEqual(['jsonrpc', 'id', 'result']);
    expect(answer.json).toMatchObject({ jsonrpc: '2.0', id: 1 });
    api.expectGolden('message-send', answer);
  });

  it('A-3 protocol errors are HTTP 200 with `error.code`', async () => {
    const answer = await get(UNKNOWN);
    expect([answer.status, answer.json.error.code]).toEqual([200, -32001]);
    api.expectGolden('unknown-task', answer);
  });

  it('A-4 a missing or invalid bearer is 401', async () => {
    for (const authorization of [undefined, 'Bearer nonsense', 'Basic YTpi']) {
      const answer = await call('message/send', { message: message('hi') }, { headers: { authorization } });
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
    }
  });

  it('A-5 `/v1/a2a/foo` is 404', async () => {
    const body = { jsonrpc: '2.0', id: 1, method: 'message/send', params: { message: message('hi') } };
    expect((await api.post('/v1/a2a/foo', body)).status).toBe(404);
    expect((await api.get('/v1/a2a/foo')).status).toBe(404);
  });

  it('A-6 GET on the dispatch URL is 405', async () => {
    expect((await api.get(path())).status).toBe(405);
  });

  it('A-7 the agent is the built-in `index` or one of the caller’s own', async () => {
    const index = await send('which agents?', {}, { agent: 'index' });
    expect(index.json.result.metadata['x-arbiter.agent_id']).toBe('index');
    const own = await send('hi', {}, { agent: 'own-echo' });
    const { 'x-arbiter.agent_id': id } = own.json.result.metadata;
    expect((await send('hi', {}, { agent: id })).json.result.metadata['x-arbiter.agent_id']).toBe(id);
  });

  it('A-8 the card’s URL finds the same agents: 401 without a token, 404 unknown', async () => {
    for (const agent of ['index', 'own-echo']) {
      expect((await api.get(`${path(agent)}/agent-card.json`)).status).toBe(200);
    }
    expect((await api.get(`${path()}/agent-card.json`, { authorization: undefined })).status).toBe(401);
    expect((await api.get(`${path('nobody')}/agent-card.json`)).status).toBe(404);
  });

  it('A-9 another tenant’s agent is unknown', async () => {
    const headers = api.stranger;
    const unknown = await send('hi', {}, { agent: 'nobody', headers });
    const foreign = await send('hi', {}, { agent: 'own-echo', headers });
    expect(foreign.status).toBe(unknown.status);
    expect(foreign.text.replaceAll('own-echo', 'nobody')).toBe(unknown.text);
    expect((await api.get(`${path('own-echo')}/agent-card.json`, headers)).status).toBe(404);
  });

  it('A-10 `A2A-Version` may be absent, empty, `1` or `1.0`', async () => {
    for (const version of [undefined, '', '1', '1.0']) {
      const answer = await send('hi', {}, { headers: { 'A2A-Version': version } });
      expect(answer.json.result.status.state).toBe('completed');
    }
  });

  it('A-11 any other version is -32007 with `id: null`, even when the body is not JSON', async () => {
    for (const version of ['0.3', '2.0', '1.0.0', '1.1', 'latest']) {
      const answer = await api.post(path(), 'no JSON', { 'A2A-Version': version });
      expect(answer.status).toBe(200);
      expect(answer.json).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32007 } });
      expect(JSON.stringify(answer.json.error.data)).toContain('-32009');
      const good = await send('hi', {}, { headers: { 'A2A-Version': version } });
      expect(good.json).toMatchObject({ id: null, error: { code: -32007 } });
    }
    api.expectGolden('version', await api.post(path(), 'no JSON', { 'A2A-Version': '0.3' }));
  });

  it('A-12 `id` is a string, a number or null, and echoed verbatim', async () => {
    for (const id of ['req-1', '', 7, 0, -1, null]) {
      expect((await call('tasks/get', { id: UNKNOWN }, { id })).json.id).toBe(id);
      expect((await send('hi', {}, { id })).json).toMatchObject({ id, result: { kind: 'task' } });
    }
  });

  it('A-13 `message/send` blocks to a terminal state and returns the task', async () => {
    const echo = { chunks: 3, delayMs: 30 };
    const { result } = (await send('hi', { metadata: { echo } })).json;
    expect(result).toMatchObject({ kind: 'task', status: { state: 'completed' } });
    expect(result.status.message.parts).toEqual([{ kind: 'text', text: 'hihihi' }]);
  });

  it('A-14 a message without `messageId` is -32602', async () => {
    const answer = await send('hi', { messageId: undefined });
    expect(answer.json.error.code).toBe(-32602);
    expect(answer.text).toContain('messageId');
  });

  it('A-15 `contextId` is optional, any string, and echoed', async () => {
    for (const contextId of ['c-42', 'a context / with ünicode', 'x'.repeat(200)]) {
      expect((await send('hi', { contextId })).json.result.contextId).toBe(contextId);
    }
    expect((await send('hi', { contextId: undefined })).json.result.contextId).toMatch(/./);
  });

  it('A-17 only text is taken, and a task that asks is returned as it is', async () => {
    for (const part of [
      { kind: 'file', file: { uri: 'https://example.com/a' } },
      { kind: 'data', data: { a: 1 } },
    ]) {
      const answer = await send('hi', { parts: [{ kind: 'text', text: 'x' }, part] });
      expect(answer.json.error.code).toBe(-32005);
    }
    const metadata = { echo: { askInput: true } };
    const asked = (await send('hi', { metadata })).json.result;
    expect(asked.status).toMatchObject({ state: 'input-required', message: { role: 'agent' } });
    const stream = await call('message/stream', { message: message('hi', { metadata }) });
    expect(stream.records.at(-1)!.data.result).toMatchObject({
      status: { state: 'input-required' },
      final: true,
    });
  });

  it('A-19 a completed task has its reply as the message `<taskId>-r`', async () => {
    const { id, status } = (await send('hello')).json.result;
    expect(status).toMatchObject({
      state: 'completed',
      message: { role: 'agent', messageId: `${id}-r`, parts: [{ kind: 'text', text: 'hello' }] },
    });
  });

  it('A-20 `history` is the user’s message and the agent’s reply', async () => {
    const { id, history } = (await send('hello', { messageId: 'm-20' })).json.result;
    expect(history).toHaveLength(2);
    expect(history).toMatchObject([
      { role: 'user', messageId: 'm-20', parts: [{ kind: 'text', text: 'hello' }] },
      { role: 'agent', messageId: `${id}-r`, parts: [{ kind: 'text', text: 'hello' }] },
    ]);
  });

  it('A-21 `metadata` holds the agent and the tokens it took', async () => {
    expect((await send('hi')).json.result.metadata).toMatchObject({
      'x-arbiter.agent_id': 'echo',
      'x-arbiter.input_tokens': 0,
      'x-arbiter.output_tokens': 0,
    });
    const metadata = (await send('hi', {}, { agent: 'teller' })).json.result.metadata;
    expect(metadata).toMatchObject({ 'x-arbiter.input_tokens': 142, 'x-arbiter.output_tokens': 218 });
    expect(metadata['x-arbiter.agent_id']).toMatch(/./);
  });

  it('A-22 a model provider that fails makes a failed task, not an error', async () => {
    const answer = await send('hi', { metadata: { echo: { fail: 'failed' } } });
    expect(answer.json).not.toHaveProperty('error');
    expect(answer.json.result).toMatchObject({ kind: 'task', status: { state: 'failed' } });
  });

  it('A-23 an agent that throws outright is -32006', async () => {
    const answer = await send('hi', { metadata: { echo: { fail: 'throw' } } });
    expect([answer.status, answer.json.error.code]).toEqual([200, -32006]);
    api.expectGolden('agent-threw', answer);
  });

  it('A-24 a run that the platform cannot start is -32603', async () => {
    const answer = await withoutTable(api.stack.database.url, 'runs', () => send('hi'));
    expect([answer.status, answer.json.id, answer.json.error.code]).toEqual([200, 1, -32603]);
    expect(answer.text).not.toMatch(/relation|runs/);
  });

  it('A-25 an unknown agent is -32001', async () => {
    const answer = await send('hi', {}, { agent: 'nobody' });
    expect([answer.status, answer.json.id, answer.json.error.code]).toEqual([200, 1, -32001]);
  });

  describeArbiterStreams(api);

  it('A-33 `tasks/get` is rebuilt from what is stored', async () => {
    const { result } = (await send('hello', {}, { agent: 'teller' })).json;
    expect((await call('tasks/get', { id: result.id }, { agent: 'teller' })).json.result).toEqual(result);
  });

  it('A-34 a task at work has neither `history` nor `status.message`', async () => {
    await atWork(async (id) => {
      const { result } = (await call('tasks/get', { id }, { agent: 'stubborn' })).json;
      expect(result.status.state).toBe('working');
      expect(result.status).not.toHaveProperty('message');
      expect(result).not.toHaveProperty('history');
    });
  });

  it('A-35 an unknown id or another tenant’s is -32001', async () => {
    const { id } = (await send('hi')).json.result;
    expect(await codeOf(get(UNKNOWN))).toBe(-32001);
    expect(await codeOf(get('m-1'))).toBe(-32001);
    expect(await codeOf(call('tasks/get', { id }, { headers: api.stranger }))).toBe(-32001);
  });

  it('A-45 push notification configs are -32004 with a stable message', async () => {
    const params = { taskId: UNKNOWN, id: UNKNOWN, pushNotificationConfig: { url: 'https://example.com' } };
    const answers = await Promise.all(
      ['set', 'get', 'list', 'delete'].map((verb) => call(`tasks/pushNotificationConfig/${verb}`, params)),
    );
    expect(answers.map(({ json }) => json.error.code)).toEqual([-32004, -32004, -32004, -32004]);
    expect(new Set(answers.map(({ json }) => json.error.message)).size).toBe(1);
  });

  it('A-46 invalid JSON, an invalid request, a missing field and an unknown method have a code each', async () => {
    const codeFor = async (body: string | object) => (await api.post(path(), body)).json.error.code;
    expect(await codeFor('{"jsonrpc": ')).toBe(-32700);
    for (const body of ['[]', '7', '{}', { jsonrpc: '1.0', id: 1, method: 'tasks/get' }]) {
      expect(await codeFor(body)).toBe(-32600);
    }
    for (const params of [undefined, {}, { id: 7 }]) {
      expect(await codeFor({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params })).toBe(-32602);
    }
    expect(await codeFor({ jsonrpc: '2.0', id: 1, method: 'tasks/frobnicate', params: {} })).toBe(-32601);
  });

  it('A-47 the card has the fields that Arbiter’s clients read', async () => {
    const answer = await api.get(`${path()}/agent-card.json`);
    expect(answer.json).toMatchObject({
      protocolVersion: expect.any(String),
      name: 'Echo',
      description: expect.any(String),
      url: expect.stringMatching(/\/v1\/a2a\/agents\/echo$/),
      version: expect.any(String),
      preferredTransport: 'JSONRPC',
      defaultInputModes: ['text/plain'],
      defaultOutputModes: ['text/plain', 'application/json'],
      capabilities: { streaming: true, pushNotifications: false },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
      security: [{ bearer: [] }],
    });
    expect(answer.json.skills[0].id).toBe('chat');
    api.expectGolden('card', answer);
  });

  it('A-48 `GET /.well-known/agent-card.json` needs no token', async () => {
    const answer = await api.get('/.well-known/agent-card.json', { authorization: undefined });
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ name: expect.any(String), capabilities: {}, skills: [{}] });
  });
});
