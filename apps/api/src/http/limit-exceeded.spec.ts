import { randomUUID } from 'node:crypto';
import { ProtocolError, rpcPaths } from '@baton/a2a';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';
import { legacyRequest, request, sampleTask } from '../../../../test/support/api/samples.js';

const TASK = '00000000-0000-4000-8000-000000000001';

let api: FakeApi;

const over = () => ProtocolError.limitExceeded('tasksWaiting', 3, 2, 'wait until some have run');

const start = async (): Promise<void> => {
  api = await startFakeApi();
  Object.assign(api.operations, {
    sendMessage: async () => Promise.reject(over()),
    async *sendStreamingMessage() {
      throw over();
    },
  });
  api.listing.list = async () => Promise.reject(over());
};

/** One API for all tests of a `describe`. */
function startOnce(): void {
  beforeAll(start);
  afterAll(() => api.close());
}

/** For tests of what an API counts or remembers. */
function startForEach(): void {
  beforeEach(start);
  afterEach(() => api.close());
}

describe('a tenant over a limit', () => {
  startOnce();

  const INFO = {
    reason: 'LIMIT_EXCEEDED',
    metadata: { limit: 'tasksWaiting', max: '3', retryAfterSeconds: '2' },
  };

  const paths = rpcPaths().map(({ path }) => path.replace(':agent', 'echo'));

  it.each(paths.flatMap((path) => [request.send, request.stream].map(({ method }) => [path, method])))(
    'is refused at %s by %s with 429, Retry-After and its id',
    async (path, method) => {
      const sent = { ...request.send, id: 'mine', method };
      const headers: Record<string, string> = { accept: 'application/json, text/event-stream' };
      if (path.startsWith('/v1/a2a')) headers['a2a-version'] = '1.0';
      const body =
        path === '/a2a' ? { ...sent, params: { ...sent.params, metadata: { agent: 'echo' } } } : sent;
      const response = await api.rpc(body, headers, path);
      expect([response.status, response.headers.get('retry-after')]).toEqual([429, '2']);
      expect(await response.json()).toMatchObject({
        id: 'mine',
        error: {
          code: -32029,
          message: expect.stringMatching(/tasksWaiting.* 3: wait until/) as unknown,
          data: [INFO, { retryDelay: '2s' }],
        },
      });
    },
  );

  it('gets its data as one object in 0.3', async () => {
    const { error } = (await (await api.rpc(legacyRequest.send)).json()) as { error: { data: unknown } };
    expect(error.data).toMatchObject({ ...INFO, retryDelay: '2s' });
  });

  it('gets the same error on plain endpoints', async () => {
    const response = await fetch(`${api.url}/v1/tasks`, { headers: { authorization: 'Bearer caller' } });
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '2']);
    expect(await response.json()).toMatchObject({ error: { code: 429, status: 'LIMIT_EXCEEDED' } });
  });
});

describe('a refusal for a limit', () => {
  startForEach();

  it('is counted and stands in the log', async () => {
    await (await api.rpc(request.send)).text();
    const metrics = async () => (await fetch(`${api.managementUrl}/metrics`)).text();
    expect(await metrics()).toContain('baton_limit_exceeded_total{limit="tasksWaiting"} 1');
    expect(api.log).toContainEqual(
      expect.objectContaining({
        msg: 'request',
        status: 429,
        limit: 'tasksWaiting',
        tenantId: 'tenant-1',
        tenant: 'slug of tenant-1',
        agent: 'echo',
      }),
    );
  });
});

describe('requests per second', () => {
  startOnce();

  const spent: unknown[] = [];

  beforeAll(() => {
    api.limits['tenant-1'] = { requestsPerSecond: 7 };
    api.hosts.push({ host: 'open.example', tenantId: 'tenant-1', agent: 'echo', public: true });
    api.messaging.spend = async (...args) => {
      spent.push(args);
      return { allowed: false, retryAfterMs: 300 };
    };
  });
  beforeEach(() => {
    spent.length = 0;
  });

  const authorization = 'Bearer caller';
  const CARD = '/.well-known/agent-card.json';

  it.each([
    ['POST', '/agents/echo', { authorization }],
    ['POST', '/a2a/echo', { authorization }],
    ['POST', '/a2a', { authorization }],
    ['POST', '/v1/a2a/agents/echo', { authorization }],
    ['POST', '/', { authorization }],
    ['POST', '/', { host: 'open.example' }],
    ['GET', `/agents/echo${CARD}`, { authorization }],
    ['GET', '/v1/a2a/agents/echo/agent-card.json', { authorization }],
    ['GET', CARD, { authorization }],
    ['GET', CARD, { host: 'open.example' }],
    ['GET', '/.well-known/agent.json', { host: 'open.example' }],
    ['GET', '/v1/tasks', { authorization }],
    ['GET', '/v1/tasks/x', { authorization }],
    ['GET', '/v1/tasks/x/artifacts', { authorization }],
    ['GET', '/v1/tasks/x/events', { authorization }],
    ['POST', '/v1/tasks/x/cancel', { authorization }],
  ])('are counted at %s %s for %j, before the body is read', async (method, path, headers) => {
    const body = method === 'POST' ? { not: 'looked at' } : undefined;
    const { authorization: sent, host } = headers as { authorization?: string; host?: string };
    const sending = { ...(sent && { authorization: sent }), ...(host && { host }) };
    const answer = await rawRequest(api.url + path, { method, headers: sending, body });
    expect([answer.status, answer.headers['retry-after']]).toEqual([429, '1']);
    expect(answer.text).toMatch(/requestsPerSecond.*which is 7: send fewer/);
    expect(spent).toEqual([[host ? 'requests:guests:tenant-1' : 'requests:tenant-1', 7, 1]]);
  });

  it('of a tenant without a limit, and of callers of no tenant, are not counted', async () => {
    api.operations.getTask = async () => Promise.reject(ProtocolError.taskNotFound('x'));
    await api.rpc(request.get, { authorization: 'Bearer stranger' });
    await api.rpc(request.get, { authorization: 'Bearer unknown' });
    await fetch(api.url + CARD);
    await fetch(`${api.url}/healthz`);
    expect(spent).toEqual([]);
  });
});

describe('guests', () => {
  startForEach();

  const spent: [key: string, limit: number, perSeconds: number][] = [];
  /** Keys that are used up. */
  const full = new Set<string>();

  beforeEach(() => {
    spent.length = 0;
    full.clear();
    const guests = { guestShare: 20, guestRequestsPerSecond: 3, guestMessagesPerDay: 9 };
    api.limits['tenant-1'] = { requestsPerSecond: 50, ...guests };
    api.hosts.push({ host: 'open.example', tenantId: 'tenant-1', agent: 'echo', public: true });
    api.messaging.spend = async (...args) => {
      spent.push(args);
      return { allowed: ![...full].some((key) => args[0].startsWith(key)), retryAfterMs: 5_000_000 };
    };
  });

  const call = async (body: object, more: Record<string, string> = {}) => {
    const headers = {
      host: 'open.example',
      'a2a-version': '1.0',
      'content-type': 'application/json',
      ...more,
    };
    const answer = await rawRequest(`${api.url}/`, { method: 'POST', headers, body });
    return { ...answer, said: JSON.parse(answer.text) as { error?: { message: string } } };
  };
  const budget = expect.stringMatching(/^(requests|messages):guest:open\.example:[\w-]{22}$/) as string;

  it('have a rate by address, and a share of the rate of the tenant', async () => {
    await call(request.get);
    await call(request.get, { 'baton-guest': randomUUID() });
    const both = [
      [budget, 3, 1],
      ['requests:guests:tenant-1', 10, 1],
    ];
    expect(spent).toEqual([...both, ...both]);
    // A secret is free to make, so it makes no budget.
    expect(spent[0]![0]).toBe(spent[2]![0]);
    full.add('requests:guest:');
    const refused = await call(request.get);
    expect([refused.status, refused.said.error?.message]).toEqual([
      429,
      expect.stringContaining('guestRequestsPerSecond of this tenant is reached, which is 3'),
    ]);
    spent.length = 0;
    await api.rpc(request.get);
    expect(spent).toEqual([['requests:tenant-1', 50, 1]]);
  });

  it('have a number of messages a day by address, and tokens have none', async () => {
    full.add('messages:');
    const send = api.operations.sendMessage;
    const sent = jest.fn(send);
    api.operations.sendMessage = sent;
    const refused = await call(request.send);
    expect([refused.status, refused.headers['retry-after']]).toEqual([429, '5000']);
    expect(refused.said.error?.message).toContain(
      'guestMessagesPerDay of this tenant is reached, which is 9',
    );
    expect(sent).not.toHaveBeenCalled();
    expect(spent.at(-1)).toEqual([budget, 9, 86_400]);
    spent.length = 0;
    await api.rpc(request.send);
    expect(sent).toHaveBeenCalledTimes(1);
    expect(spent).toHaveLength(1);
    // Reading is no message.
    spent.length = 0;
    await call(request.get);
    expect(spent).toHaveLength(2);
  });
});

describe('open streams', () => {
  startOnce();

  it.each([
    ['a send', (url: string) => [`${url}/agents/echo`, request.stream] as const],
    ['a subscription', (url: string) => [`${url}/agents/echo`, request.subscribe] as const],
    ['the log of a request', (url: string) => [`${url}/v1/tasks/${TASK}/events`] as const],
  ])('over the limit refuse %s before the operation is asked', async (_what, target) => {
    api.limits['tenant-1'] = { openStreams: 5 };
    api.counts.claim = async () => 0;
    api.agentOfTask[TASK] = 'echo';
    const asked = jest.fn();
    Object.assign(api.operations, { sendStreamingMessage: asked, subscribeToTask: asked });
    const [url, body] = target(api.url);
    const response = await fetch(url, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: 'Bearer caller', 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await response.text()).toMatch(/openStreams.*which is 5: close a stream/);
    expect(asked).not.toHaveBeenCalled();
  });
});

describe('a token over its own limit', () => {
  startForEach();

  let spent: [key: string, max: number][];
  beforeEach(() => {
    spent = [];
    api.rights.caller = { requestsPerSecond: 2 };
    api.limits['tenant-1'] = { requestsPerSecond: 5 };
    api.operations.sendMessage = async () => ({ $case: 'task', value: sampleTask() });
    api.messaging.spend = async (key, max) => {
      const allowed = spent.filter(([each]) => each === key).length < max;
      spent.push([key, max]);
      return { allowed, retryAfterMs: 300 };
    };
  });

  it('is refused, and uses up nothing of its tenant', async () => {
    const statuses = [];
    for (let i = 0; i < 4; i += 1) statuses.push((await api.rpc(request.send)).status);
    expect(statuses).toEqual([200, 200, 429, 429]);
    expect(spent.filter(([key]) => key === 'requests:tenant-1')).toHaveLength(2);
    const response = await api.rpc(request.send);
    expect(response.headers.get('retry-after')).toBe('1');
    expect(await response.json()).toMatchObject({
      error: {
        message: expect.stringMatching(/^this token may send 2 requests a second/) as unknown,
        data: { metadata: { limit: 'tokenRequestsPerSecond', max: '2', retryAfterSeconds: '1' } },
      },
    });
    // Another token of the tenant has what is left.
    expect((await api.rpc(request.send, { authorization: 'Bearer admin' })).status).toBe(200);
  });
});
