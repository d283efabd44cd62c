import type { CallContext } from '@baton/a2a';
import { getExtendedAgentCard } from '@baton/tasks';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';
import { sampleTask } from '../../../../test/support/api/samples.js';

let api: FakeApi;
let calls: CallContext[];

beforeAll(async () => {
  api = await startFakeApi();
  const bound = { tenantId: 'tenant-1', agent: 'echo' };
  api.hosts.push({ ...bound, host: 'open.example', public: true });
  api.hosts.push({ ...bound, host: 'closed.example', public: false });
  api.hosts.push({ ...bound, host: 'stale.example', agent: 'gone', public: true });
});
afterAll(() => api.close());

beforeEach(() => {
  calls = [];
  api.operations.sendMessage = async (call) => {
    calls.push(call);
    return { $case: 'task', value: sampleTask() };
  };
  api.operations.getTask = async () => sampleTask();
  api.operations.listTasks = async () => ({ tasks: [], nextPageToken: '', pageSize: 50, totalSize: 0 });
});

const TENANT = { authorization: 'Bearer caller' };
const STRANGER = { authorization: 'Bearer stranger' };
const message = { messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'hi' }] };

const post = (
  headers: Record<string, string>,
  method = 'message/send',
  params: object = { message },
  path = '/',
) =>
  rawRequest(api.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: { jsonrpc: '2.0', id: 1, method, params },
  });
const card = async (path: string, headers: Record<string, string>) => {
  const answer = await rawRequest(api.url + path, { headers });
  return {
    status: answer.status,
    headers: answer.headers,
    json: JSON.parse(answer.text) as Record<string, unknown>,
  };
};

describe('who calls the root', () => {
  it.each(['open.example', 'OPEN.example:8080', 'open.example.'])(
    'is the bound tenant for callers without a token, at the public host %s',
    async (host) => {
      expect((await post({ host })).status).toBe(200);
      expect(calls[0]).toMatchObject({
        tenantId: 'tenant-1',
        principal: { kind: 'guest', key: expect.stringMatching(/^guest:open\.example:[\w-]{22}$/) },
        scopes: ['agents:call'],
        agent: { slug: 'echo' },
        profile: 'capsule',
      });
    },
  );

  it('is the tenant of a token; the host’s agent answers if it is one of that tenant', async () => {
    await post({ host: 'open.example', ...TENANT });
    await post({ host: 'closed.example', ...TENANT });
    await post({ host: 'open.example', ...STRANGER });
    await post({ host: 'unbound.example', ...TENANT });
    expect(calls.map(({ tenantId, agent }) => [tenantId, agent.slug])).toEqual([
      ['tenant-1', 'echo'],
      ['tenant-1', 'echo'],
      ['tenant-2', 'index'],
      ['tenant-1', 'index'],
    ]);
  });

  it.each<Record<string, string>>([
    { host: 'unbound.example' },
    { host: 'closed.example' },
    { host: 'sub.open.example' },
    { host: 'unbound.example', 'x-forwarded-host': 'open.example', forwarded: 'host=open.example' },
    { host: 'open.example', authorization: 'Bearer wrong' },
    { host: 'open.example', authorization: 'Basic YTpi' },
    { host: 'closed.example', ...STRANGER },
  ])('is nobody with %j', async (headers) => {
    const answer = await post(headers);
    expect([answer.status, answer.headers['www-authenticate']]).toEqual([
      401,
      expect.stringMatching(/^Bearer/),
    ]);
    expect(JSON.parse(answer.text)).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32600 } });
    expect(calls).toEqual([]);
  });

  it('without a token reads tasks by their id, and sees no list of them', async () => {
    const host = 'open.example';
    expect(JSON.parse((await post({ host }, 'GetTask', { id: 'task-1' })).text)).toHaveProperty('result');
    expect((await post({ host }, 'ListTasks', {})).status).toBe(401);
    expect((await post({ host, ...TENANT }, 'ListTasks', {})).status).toBe(200);
  });

  it.each(['/agents/echo', '/a2a', '/a2a/echo', '/v1/a2a/agents/echo', '/v1/agents/echo/a2a'])(
    'without a token gets nowhere but there, not to %s',
    async (path) => {
      expect((await post({ host: 'open.example' }, 'message/send', { message }, path)).status).toBe(401);
    },
  );

  it('gets an error once the bound agent is gone', async () => {
    expect(JSON.parse((await post({ host: 'stale.example' })).text)).toMatchObject({
      error: { code: -32001 },
    });
  });
});

describe('the card at the root', () => {
  const ROOT = 'http://open.example:8080/';

  it('S-1 of a public host is its agent’s, and names the root', async () => {
    const { status, json, headers } = await card('/.well-known/agent.json', { host: 'open.example:8080' });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      name: 'echo',
      url: ROOT,
      skills: [{ id: 'echo', name: 'echo' }],
      capabilities: { streaming: true, pushNotifications: false },
      security: [],
    });
    expect(headers['cache-control']).toMatch(/^public/);
  });

  it('names the root to clients of both generations', async () => {
    const { json } = await card('/.well-known/agent-card.json', { host: 'open.example:8080' });
    expect(json).toMatchObject({
      url: ROOT,
      preferredTransport: 'JSONRPC',
      supportedInterfaces: [
        { url: ROOT, protocolVersion: '1.0' },
        { url: ROOT, protocolVersion: '0.3' },
      ],
    });
  });

  it.each(['/.well-known/agent.json', '/.well-known/agent-card.json'])(
    'A-48 %s hides an agent from callers that may not call it',
    async (path) => {
      for (const host of ['closed.example', 'unbound.example']) {
        expect((await card(path, { host })).json).toMatchObject({ name: 'Baton' });
      }
      expect((await card(path, { host: 'closed.example', ...STRANGER })).json).toMatchObject({
        name: 'index',
      });
      const own = await card(path, { host: 'closed.example', ...TENANT });
      expect(own.json).toMatchObject({
        name: 'echo',
        url: 'http://closed.example/',
        security: [{ bearer: [] }],
      });
      expect(own.headers['cache-control']).toMatch(/^private/);
      expect((await card(path, { host: 'open.example', authorization: 'Bearer wrong' })).status).toBe(401);
    },
  );
});

describe('the card of arbiter', () => {
  const PATH = '/v1/a2a/agents/echo/agent-card.json';

  it('A-8 A-47 is at the agent’s path, for callers of its tenant', async () => {
    const { status, json, headers } = await card(PATH, TENANT);
    expect(status).toBe(200);
    expect(json).toMatchObject({
      url: `${api.url}/v1/a2a/agents/echo`,
      defaultInputModes: ['text/plain'],
      skills: [{ id: 'chat' }, { id: 'echo' }],
      security: [{ bearer: [] }],
    });
    const again = await rawRequest(api.url + PATH, {
      headers: { ...TENANT, 'if-none-match': String(headers.etag) },
    });
    expect(again.status).toBe(304);
    expect((await card(PATH, {})).status).toBe(401);
    expect((await card(PATH.replace('echo', 'theirs'), TENANT)).status).toBe(404);
    expect((await rawRequest(api.url + PATH, { method: 'POST', headers: TENANT })).status).toBe(405);
  });
});

it('the extended card is for callers with a token alone, and has the URL at which they have reached the agent', async () => {
  api.operations.getExtendedAgentCard = getExtendedAgentCard;
  const { definition } = api.agents[0]!;
  definition.extended = { description: 'Says it twice', skills: [] };
  const ask = async (method: string, headers: Record<string, string>, path?: string) => {
    const { status, text } = await post({ host: 'open.example', ...headers }, method, {}, path);
    return { status, ...(JSON.parse(text) as { result?: object; error?: { message: string } }) };
  };
  expect(await ask('agent/getAuthenticatedExtendedCard', {})).toMatchObject({
    status: 401,
    error: { message: 'a bearer token is required to read the extended card' },
  });
  const shown = { description: 'Says it twice' };
  expect(await ask('agent/getAuthenticatedExtendedCard', TENANT)).toMatchObject({
    status: 200,
    result: { ...shown, url: 'http://open.example/' },
  });
  const { result } = await ask('GetExtendedAgentCard', TENANT, '/agents/echo');
  const url = 'http://open.example/agents/echo';
  expect(result).toMatchObject({ ...shown, supportedInterfaces: Array(4).fill({ url }) });
  delete definition.extended;
});
