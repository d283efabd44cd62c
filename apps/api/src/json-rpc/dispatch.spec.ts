import { type CallContext, ProtocolError } from '@baton/a2a';
import { DatabaseUnavailableError } from '@baton/database';
import { agentOf, type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { legacyRequest, request, sampleTask } from '../../../../test/support/api/samples.js';

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi();
});
afterAll(() => api.close());

/** Contexts that operations were called with. */
let calls: CallContext[];

beforeEach(() => {
  calls = [];
  api.operations.sendMessage = async (call) => {
    calls.push(call);
    return { $case: 'task', value: sampleTask() };
  };
  api.operations.getTask = async (call, { id }) => {
    calls.push(call);
    return sampleTask({ id });
  };
});

/** HTTP status, error code and id of an answer. */
async function outcome(response: Response) {
  const body = (await response.json()) as {
    id: unknown;
    error?: { code: number; message: string };
    result?: unknown;
  };
  return { http: response.status, code: body.error?.code, id: body.id, message: body.error?.message };
}

describe('a JSON-RPC call', () => {
  it('answers with the result and the id, in JSON', async () => {
    const response = await api.rpc(request.send);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(await response.json()).toMatchObject({
      jsonrpc: '2.0',
      id: 1,
      result: { task: { id: 'task-1' } },
    });
  });

  it('answers 0.3 methods in 0.3 form', async () => {
    const response = await api.rpc(legacyRequest.send);
    expect(await response.json()).toMatchObject({
      id: 1,
      result: { kind: 'task', status: { state: 'completed' } },
    });
  });

  it.each(['a', '', 7, -1, 0, null, '\u{1f600}'])('echoes the id %j', async (id) => {
    const response = await api.rpc({ ...request.get, id });
    expect(await response.json()).toMatchObject({ id });
  });

  it('takes a slash at the end, doubled slashes and A2A’s own media type', async () => {
    for (const path of ['/agents/echo/', '//agents//echo']) {
      expect((await api.rpc(request.get, {}, path)).status).toBe(200);
    }
    const type = { 'content-type': 'application/a2a+json; charset="UTF-8"' };
    expect((await api.rpc(request.get, type)).status).toBe(200);
  });

  it('passes the caller, the agent and the trace to the operation', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await api.rpc(request.get, { traceparent, 'x-request-id': 'r-1' });
    await api.rpc(request.get, { traceparent: 'nonsense', 'x-request-id': 'a b' });
    expect(calls[0]).toMatchObject({
      tenantId: 'tenant-1',
      principal: { kind: 'token', key: 'token:token-caller' },
      scopes: ['agents:call'],
      requestId: 'r-1',
      agent: { slug: 'echo' },
      profile: 'spec',
      version: '1.0',
      traceparent,
    });
    expect(calls[1]?.traceparent).toBeUndefined();
    expect(calls[1]?.requestId).toMatch(/^[\da-f-]{36}$/);
  });

  it('passes an operation’s error on in the caller’s generation', async () => {
    api.operations.getTask = async () => {
      throw ProtocolError.taskNotFound('task-1');
    };
    const current = (await (await api.rpc(request.get)).json()) as { error: { code: number; data: unknown } };
    expect(current.error).toMatchObject({ code: -32001, data: [{ reason: 'TASK_NOT_FOUND' }] });
    const legacy = (await (await api.rpc(legacyRequest.get)).json()) as {
      error: { code: number; data: unknown };
    };
    expect(legacy.error).toMatchObject({ code: -32001, data: { reason: 'TASK_NOT_FOUND' } });
  });

  it('hides what went wrong inside, and logs it under the request’s id', async () => {
    api.operations.getTask = async () => {
      throw new Error('relation "tasks" does not exist');
    };
    const response = await api.rpc(request.get, { 'x-request-id': 'inside-1' });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(JSON.parse(text)).toMatchObject({ id: 2, error: { code: -32603, message: 'Internal error' } });
    expect(text).toContain('inside-1');
    expect(text).not.toContain('relation');
    const line = api.log.find(({ msg }) => msg === 'request failed');
    expect(line).toMatchObject({ requestId: 'inside-1', tenantId: 'tenant-1' });
    expect(JSON.stringify(line)).toContain('dispatch.spec');
  });

  it('names the missing database, and the remedy', async () => {
    api.operations.getTask = async () => {
      throw new DatabaseUnavailableError('Postgres is not available: connect ECONNREFUSED 10.0.0.1:5432');
    };
    const text = await (await api.rpc(request.get)).text();
    const message = 'The database is not available at the moment: send the request again';
    expect(JSON.parse(text)).toMatchObject({ id: 2, error: { code: -32603, message } });
    expect(text).not.toContain('10.0.0.1');
  });
});

describe('a notification', () => {
  const { id: _, ...notification } = request.send;

  it('is carried out and answered with 204 and nothing', async () => {
    const response = await api.rpc(notification);
    expect(response.status).toBe(204);
    expect(await response.text()).toBe('');
    expect(calls).toHaveLength(1);
  });

  it('gets an error with id null', async () => {
    expect(await outcome(await api.rpc({ ...notification, method: 'Nope' }))).toMatchObject({
      http: 200,
      code: -32601,
      id: null,
    });
  });
});

describe('A2A-Version', () => {
  const legacy = legacyRequest.get;
  it.each([
    [undefined, request.get, undefined],
    ['', request.get, undefined],
    ['1.0', request.get, undefined],
    ['1.0.7', request.get, undefined],
    ['0.3', legacy, undefined],
    ['0.3.0', legacy, undefined],
    ['0.3', request.get, undefined],
    [undefined, legacy, undefined],
    ['0.2', legacy, -32009],
    ['2.0', request.get, -32009],
    ['one', request.get, -32009],
    ['1.0, 0.3', request.get, -32009],
  ])('%j with a method of its family or not', async (version, body, code) => {
    const headers: Record<string, string> = version === undefined ? {} : { 'a2a-version': version };
    const answer = await outcome(await api.rpc(body, headers));
    expect(answer).toMatchObject({ http: 200, code, id: 2 });
    if (code) expect(answer.message).toMatch(/0\.3, 1\.0/);
  });

  it('may be a query parameter', async () => {
    const query = (version: string) => api.rpc(request.get, {}, `/agents/echo?A2A-Version=${version}`);
    expect(await outcome(await query('1.0'))).toMatchObject({ code: undefined });
    expect(await outcome(await query('3.1'))).toMatchObject({ code: -32009 });
  });
});

describe('tokens and scopes', () => {
  it.each([
    [{}, 'bearer token is required'],
    [{ authorization: 'Bearer wrong' }, 'not known'],
    [{ authorization: 'Basic Y2FsbGVyOg==' }, 'bearer token is required'],
    [{ authorization: 'caller' }, 'Authorization header'],
  ])('refuses %j with 401, a challenge and id null', async (headers, reason) => {
    const response = await fetch(`${api.url}/agents/echo`, { method: 'POST', headers, body: '{}' });
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer realm="baton"/);
    const answer = await outcome(response);
    expect(answer).toMatchObject({ http: 401, code: -32600, id: null });
    expect(answer.message).toContain(reason);
    expect(calls).toEqual([]);
  });

  it.each([
    ['reader', request.send, 403],
    ['reader', request.cancel, 403],
    ['reader', request.stream, 403],
    ['reader', request.get, 200],
    ['nobody', request.get, 403],
    ['nobody', request.subscribe, 403],
    ['caller', request.get, 200],
    ['admin', request.send, 200],
  ])('%s calling %j', async (token, body, status) => {
    const response = await api.rpc(body, { authorization: `Bearer ${token}` });
    expect(response.status).toBe(status);
    if (status === 200) return;
    expect(response.headers.get('www-authenticate')).toMatch(/error="insufficient_scope", scope="/);
    expect((await outcome(response)).message).toMatch(/lacks the scope (tasks:read or )?agents:call/);
  });

  it('looks at the scope before the agent, so that a token without it learns of none', async () => {
    const reader = { authorization: 'Bearer reader' };
    const there = await outcome(await api.rpc(request.cancel, reader));
    expect(there).toMatchObject({ http: 403 });
    expect(await outcome(await api.rpc(request.cancel, reader, '/agents/nowhere'))).toEqual(there);
  });

  describe('where the name of the agent is wrong', () => {
    const messageAt = async (name: string, headers = {}, path = '/agents/') =>
      (await outcome(await api.rpc(request.get, headers, path + name))).message;
    beforeEach(() => {
      const off = { ...agentOf({}, 'researchers'), status: 'disabled' as const };
      api.agents.push(agentOf({}, 'researcher'), agentOf({}, 'research'), off);
    });
    afterEach(() => {
      delete api.rights.caller;
      api.agents.splice(-3);
    });

    it('names the near ones that the caller may call, the nearest first', async () => {
      expect(await messageAt('researchr')).toBe(
        'Agent not found: researchr; did you mean researcher or research?',
      );
      expect(await messageAt('Echo')).toBe('Agent not found: Echo; did you mean echo?');
      expect(await messageAt('billing')).toBe('Agent not found: billing');
    });

    it('names none that the token may not call, also if it is the one that was asked for', async () => {
      api.rights.caller = { agents: { slugs: ['echo'], ids: ['echo'] } };
      expect(await messageAt('researcher')).toBe('Agent not found: researcher');
      expect(await messageAt('echoo')).toBe('Agent not found: echoo; did you mean echo?');
    });

    it('names none where agents may be hidden, and none to who may not call', async () => {
      expect(await messageAt('researchr', {}, '/v1/agent-systems/researchr/a2a?')).not.toContain('mean');
      expect(await messageAt('researchr', { authorization: 'Bearer reader' })).toBe(
        'Agent not found: researchr',
      );
    });

    it('compares no name that is longer than any', async () => {
      expect(await messageAt(`researcher${'r'.repeat(60)}`)).not.toContain('mean');
    });
  });

  it('answers alike for another tenant’s agent and for one that does not exist', async () => {
    expect(await outcome(await api.rpc(request.get, {}, '/agents/theirs'))).toEqual({
      http: 404,
      code: -32001,
      id: 2,
      message: 'Agent not found: theirs',
    });
  });
});

describe('extensions that an agent activates', () => {
  const artifact = { artifactId: 'a', name: '', description: '', parts: [], metadata: undefined };
  const sent = async (extensions: string[], headers: Record<string, string>) => {
    const before = api.operations.sendMessage;
    const task = sampleTask({ artifacts: [{ ...artifact, extensions }] });
    api.operations.sendMessage = async () => ({ $case: 'task', value: task });
    const response = await api.rpc(request.send, headers);
    api.operations.sendMessage = before!;
    return response;
  };

  it('are echoed to who uses the header, with an answer that has waited for the run', async () => {
    const uris = ['urn:mine', 'urn:mine', 'https://x.example/e?a=b'];
    const echoed = await sent(uris, { 'a2a-extensions': 'urn:other' });
    expect(echoed.headers.get('a2a-extensions')).toBe('urn:mine, https://x.example/e?a=b');
    const legacy = await sent(uris, { 'x-a2a-extensions': 'urn:other' });
    expect(legacy.headers.get('x-a2a-extensions')).toBe('urn:mine, https://x.example/e?a=b');
    expect(legacy.headers.get('a2a-extensions')).toBeNull();
    expect((await sent(uris, {})).headers.get('a2a-extensions')).toBeNull();
  });

  it('are left out where they are no URI that a header can have', async () => {
    const bad = ['a\r\nset-cookie: x', 'urn:a, urn:b', 'urn:ü', '', `urn:${'x'.repeat(300)}`];
    const many = Array.from({ length: 30 }, (_, i) => `urn:${i}`);
    const none = await sent(bad, { 'a2a-extensions': 'urn:other' });
    expect([none.status, none.headers.get('a2a-extensions'), none.headers.get('set-cookie')]).toEqual([
      200,
      null,
      null,
    ]);
    const some = await sent([...bad, ...many], { 'a2a-extensions': 'urn:other' });
    expect(some.headers.get('a2a-extensions')?.split(', ')).toEqual(many.slice(0, 20));
  });
});

describe('extensions', () => {
  const declare = (...extensions: { uri: string; required: boolean }[]) =>
    api.agents.push(
      agentOf(
        { extensions: extensions.map((e) => ({ ...e, description: '', params: undefined })) },
        'extended',
      ),
    );
  const call = (headers: Record<string, string>) => api.rpc(request.get, headers, '/agents/extended');
  afterEach(() => void api.agents.splice(2));

  it('echoes what the agent declares, and only that', async () => {
    declare({ uri: 'urn:a', required: false }, { uri: 'urn:b', required: false });
    const response = await call({ 'a2a-extensions': 'urn:b , urn:x,urn:b' });
    expect(response.headers.get('a2a-extensions')).toBe('urn:b');
    expect(calls[0]?.extensions).toEqual(['urn:b']);
  });

  it('has one of its own for every agent, which is nothing for the agent’s runtime', async () => {
    const resume = 'urn:baton:a2a:resume:v1';
    const echo = await api.rpc(request.get, { 'a2a-extensions': `urn:x, ${resume}` });
    expect(echo.headers.get('a2a-extensions')).toBe(resume);
    declare({ uri: 'urn:a', required: true });
    const response = await call({ 'a2a-extensions': `${resume}, urn:a` });
    expect(response.headers.get('a2a-extensions')).toBe(`urn:a, ${resume}`);
    expect(calls.map(({ extensions }) => extensions)).toEqual([[], ['urn:a']]);
    expect(await outcome(await call({ 'a2a-extensions': resume }))).toMatchObject({ code: -32008 });
  });

  it('answers the older header under the older name', async () => {
    declare({ uri: 'urn:a', required: false });
    const response = await call({ 'x-a2a-extensions': 'urn:a' });
    expect(response.headers.get('x-a2a-extensions')).toBe('urn:a');
    expect(response.headers.get('a2a-extensions')).toBeNull();
  });

  it('has no header when none is asked for', async () => {
    declare({ uri: 'urn:a', required: false });
    expect((await call({})).headers.get('a2a-extensions')).toBeNull();
  });

  it('names a missing required extension', async () => {
    declare({ uri: 'urn:must', required: true });
    const answer = await outcome(await call({ 'a2a-extensions': 'urn:other' }));
    expect(answer).toMatchObject({ http: 200, code: -32008, id: 2 });
    expect(answer.message).toContain('urn:must');
    expect(await outcome(await call({ 'a2a-extensions': 'urn:must' }))).toMatchObject({ code: undefined });
  });
});
