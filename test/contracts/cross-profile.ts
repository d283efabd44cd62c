import { describeContract } from '../support/contract.js';
import { type Answer, freshId, type Headers, type Wired } from '../support/wire.js';

const UNKNOWN = '00000000-0000-4000-8000-000000000000';
const HEADERS: Headers = { Accept: 'application/json, text/event-stream' };
const legacy = () => ({ role: 'user', messageId: freshId(), parts: [{ kind: 'text', text: 'hi' }] });
const oldest = () => ({ role: 'user', parts: [{ type: 'text', text: 'hi' }] });
const current = () => ({ role: 'ROLE_USER', messageId: freshId(), parts: [{ text: 'hi' }] });

/** Every way in to the agent `echo`: where it is, how a task is made and looked at there. */
const WAYS = [
  { way: 'spec 1.0', path: '/agents/echo', send: 'SendMessage', get: 'GetTask', message: current },
  { way: 'spec 0.3', path: '/agents/echo', send: 'message/send', get: 'tasks/get', message: legacy },
  { way: 'arbiter', path: '/v1/a2a/agents/echo', send: 'message/send', get: 'tasks/get', message: legacy },
  { way: 'langsmith', path: '/a2a/echo', send: 'message/send', get: 'tasks/get', message: legacy },
  { way: 'orloj', path: '/v1/agents/echo/a2a', send: 'tasks/send', get: 'tasks/get', message: oldest },
  { way: 'capsule', path: '/', send: 'message/send', get: 'tasks/get', message: legacy },
  { way: 'society', path: '/', send: 'tasks/send', get: 'tasks/get', message: oldest },
] as const;

const prepare = (api: { stack: { baton(...args: string[]): Promise<string> }; tenant: { slug: string } }) =>
  api.stack.baton('tenants', 'set', api.tenant.slug, '--default-agent', 'echo');

describeContract('cross-profile', { headers: HEADERS, prepare }, (api) => {
  const call = (path: string, method: string, params: object, headers: Headers = {}): Promise<Answer> =>
    api.post(path, { jsonrpc: '2.0', id: 1, method, params }, headers);
  const newest = async (): Promise<string> =>
    (await call('/agents/echo', 'ListTasks', { pageSize: 1 })).json.result.tasks[0].id;
  const stateOf = ({ json }: Answer): Wired => json.result?.status?.state;

  it.each(WAYS)('a task made through $way is there through every other', async ({ path, send, message }) => {
    const params = send === 'tasks/send' ? { id: `task${path}`, message: message() } : { message: message() };
    expect((await call(path, send, params)).json.error).toBeUndefined();
    const id = await newest();
    for (const other of WAYS) {
      const answer = await call(other.path, other.get, { id });
      expect([other.way, stateOf(answer)]).toEqual([
        other.way,
        other.get === 'GetTask' ? 'TASK_STATE_COMPLETED' : 'completed',
      ]);
      expect(answer.text).toContain('"text":"hi"');
    }
  });

  it.each(WAYS)('another tenant’s task is not found through $way', async ({ path, get }) => {
    await call('/agents/echo', 'SendMessage', { message: current() });
    const id = await newest();
    const foreign = await call(path, get, { id }, api.stranger);
    const unknown = await call(path, get, { id: UNKNOWN }, api.stranger);
    expect([foreign.status, foreign.json.error?.code]).toEqual([200, -32001]);
    expect(foreign.text.replaceAll(id, UNKNOWN)).toBe(unknown.text);
  });

  it.each([
    ['/agents/nobody', 404, -32001],
    ['/v1/a2a/agents/nobody', 200, -32001],
    ['/a2a/nobody', 404, -32001],
    ['/v1/agents/nobody/a2a', 200, -32003],
    ['/v1/agent-systems/nobody/a2a', 200, -32003],
  ])('an unknown agent at %s is HTTP %i and %i', async (path, http, code) => {
    const answer = await call(path, 'message/send', { message: legacy() });
    expect([answer.status, answer.json.error.code]).toEqual([http, code]);
  });

  it.each(WAYS)('an unsupported version at $way is refused', async ({ way, path, get }) => {
    const answer = await call(path, get, { id: UNKNOWN }, { 'A2A-Version': '9.9' });
    const isArbiter = way === 'arbiter';
    expect([answer.status, answer.json.error.code]).toEqual([200, isArbiter ? -32007 : -32009]);
    expect(answer.json.id).toBe(isArbiter ? null : 1);
  });

  it.each(WAYS)('an unknown method at $way is -32601', async ({ path }) => {
    const answer = await call(path, 'tasks/frobnicate', {});
    expect([answer.status, answer.json.id, answer.json.error.code]).toEqual([200, 1, -32601]);
  });

  it.each(WAYS.filter(({ way }) => way !== 'langsmith'))(
    'a notification at $way is done and answered with 204, one that fails with its error',
    async ({ path, send, message }) => {
      const params =
        send === 'tasks/send' ? { id: `note${path}`, message: message() } : { message: message() };
      const done = await api.post(path, { jsonrpc: '2.0', method: send, params });
      expect([done.status, done.text]).toEqual([204, '']);
      const failed = await api.post(path, { jsonrpc: '2.0', method: send, params: {} });
      expect([failed.status, failed.json]).toMatchObject([200, { id: null, error: { code: -32602 } }]);
    },
  );

  it.each(WAYS)('a bad HTTP request at $way has its status', async ({ path, send, message }) => {
    const body = { jsonrpc: '2.0', id: 1, method: send, params: { id: 'x', message: message() } };
    expect((await api.post(path, body, { 'content-type': 'text/plain' })).status).toBe(415);
    const bare = await api.post(path, body, { authorization: undefined });
    expect([bare.status, bare.headers['www-authenticate']]).toEqual([401, expect.stringMatching(/^Bearer/)]);
    expect(bare.json.error.code).toEqual(expect.any(Number));
    expect((await api.get(path)).status).toBe(405);
    expect((await api.post(`${path}/`.replace('//', '/'), body)).status).toBe(200);
  });
});
