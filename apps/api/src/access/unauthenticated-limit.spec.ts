import { HostStore } from '@baton/database';
import { TokenService } from '@baton/identity';
import { setImmediate } from 'node:timers/promises';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';
import { InFlightRequests } from '../http/in-flight-requests.js';
import { request, sampleTask } from '../../../../test/support/api/samples.js';

/** Within the window of ten seconds. */
const MAX = 10;

let api: FakeApi;
let verified: jest.SpyInstance;

beforeEach(async () => {
  api = await startFakeApi({ UNAUTHENTICATED_PER_SECOND: '1' });
  api.operations.getTask = async () => sampleTask();
  api.hosts.push({ host: 'open.example', tenantId: 'tenant-1', agent: 'echo', public: true });
  verified = jest.spyOn(api.app.get(TokenService, { strict: false }), 'verify');
});
afterEach(() => api.close());

const get = (path: string, headers: Record<string, string> = {}) => rawRequest(api.url + path, { headers });
/** The answers to so many requests at the same time, in no order. */
const statuses = async (count: number, ask: () => Promise<{ status: number }>): Promise<number[]> =>
  (await Promise.all(Array.from({ length: count }, ask))).map(({ status }) => status).sort();
const bad = (name: string) => ({ authorization: `Bearer ${name}` });

describe('requests to open pages that ask Postgres', () => {
  const uuid = '00000000-0000-4000-8000-000000000000';
  it.each([
    ['/', { accept: 'text/html' }],
    ['/console', {}],
    ['/console/settings.json', {}],
    ['/console/tasks/1', {}],
    ['/.well-known/oauth-protected-resource', {}],
    ['/.well-known/oauth-protected-resource/agents/echo/mcp', {}],
    [`/oauth/sign-in?ticket=${uuid}.${uuid}.secret`, {}],
    [`/oauth/callback?state=${uuid}.${uuid}.secret&code=x`, { cookie: 'x=y' }],
  ])('count as those without a token: %s', async (path, headers) => {
    const asked = jest.spyOn(api.app.get(HostStore, { strict: false }), 'find');
    let host = 0;
    const answers = await statuses(MAX + 2, () =>
      get(path, { ...headers, host: `host-${String((host += 1))}.example` }),
    );
    expect(answers.filter((status) => status === 429)).toHaveLength(2);
    expect(asked.mock.calls.length).toBeLessThanOrEqual(MAX);
    expect((await get('/healthz')).status).toBe(200);
  });
});

describe('requests without a good token', () => {
  it('are refused over the limit, before their token is looked at', async () => {
    let guess = 0;
    expect(await statuses(MAX + 2, () => get('/v1/tasks', bad(`guess-${String((guess += 1))}`)))).toEqual([
      ...Array.from({ length: MAX }, () => 401),
      429,
      429,
    ]);
    expect(verified).toHaveBeenCalledTimes(MAX);
    // Nor is anything asked for those without one.
    const response = await get('/v1/tasks');
    expect([response.status, response.headers['retry-after']]).toEqual([429, expect.stringMatching(/^\d+$/)]);
    expect(JSON.parse(response.text)).toMatchObject({
      error: {
        code: 429,
        status: 'LIMIT_EXCEEDED',
        message: expect.stringContaining('without a valid token'),
      },
    });
  });

  it('are refused in the form of the caller’s protocol', async () => {
    await statuses(MAX, () => get('/.well-known/agent-card.json'));
    const response = await api.rpc(request.get, bad('guess'));
    expect(response.status).toBe(429);
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await response.json()).toMatchObject({
      jsonrpc: '2.0',
      error: { code: -32029, data: { metadata: { limit: 'unauthenticatedPerSecond', max: '1' } } },
    });
  });

  it('do not hold up tokens that have been good', async () => {
    expect((await api.rpc(request.get)).status).toBe(200);
    await statuses(MAX + 1, () => get('/v1/tasks'));
    expect(await statuses(3 * MAX, () => api.rpc(request.get))).not.toContain(429);
  });

  it('are not those that bring a good token before it is known to be good', async () => {
    const tokens = api.app.get(TokenService, { strict: false });
    verified.mockRestore();
    const verify = tokens.verify.bind(tokens);
    const requests = api.app.get(InFlightRequests);
    const all = 3 * MAX;
    // The look takes until all have come in, or one of them was refused.
    jest.spyOn(tokens, 'verify').mockImplementation(async (secret) => {
      while (requests.count < all && refused === 0) await setImmediate();
      return verify(secret);
    });
    let refused = 0;
    const ask = async () => {
      const answer = await get('/v1/tasks', bad('reader'));
      if (answer.status === 429) refused += 1;
      return answer;
    };
    expect(await statuses(all, ask)).not.toContain(429);
    // A bad one does not pass because of others with it.
    jest.spyOn(tokens, 'verify').mockRestore();
    const guesses = await statuses(2 * MAX, () => get('/v1/tasks', bad('guess')));
    expect(guesses.filter((status) => status === 401)).toHaveLength(MAX);
  });

  it('are not those with a good token, those of guests, and probes', async () => {
    expect(
      await statuses(3 * MAX, () => get('/agents/echo/.well-known/agent-card.json', bad('reader'))),
    ).not.toContain(429);
    const host = { host: 'open.example' };
    for (let i = 0; i < 3; i += 1) {
      expect(await statuses(MAX - 1, () => get('/.well-known/agent-card.json', host))).not.toContain(429);
    }
    expect(await statuses(3 * MAX, () => get('/healthz'))).not.toContain(429);
    expect((await get('/v1/tasks')).status).toBe(401);
  });

  it('count while the database is away only if they were refused', async () => {
    verified.mockRejectedValue(new Error('away'));
    for (let i = 0; i < 3; i += 1) {
      expect(await statuses(MAX - 1, () => get('/v1/tasks', bad('reader')))).not.toContain(429);
    }
  });

  it('are in the log and in the metrics', async () => {
    await statuses(MAX + 1, () => get('/v1/tasks'));
    const metrics = await (await fetch(`${api.managementUrl}/metrics`)).text();
    expect(metrics).toContain('baton_limit_exceeded_total{limit="unauthenticatedPerSecond"} 1');
  });
});

it('requests with a good token count before Postgres is asked whose host they name', async () => {
  api.limits['tenant-1'] = { requestsPerSecond: 1 };
  api.messaging.spend = async () => ({ allowed: false, retryAfterMs: 300 });
  const asked = jest.spyOn(api.app.get(HostStore, { strict: false }), 'find');
  const headers = { ...bad('caller'), host: 'unknown.example', 'content-type': 'application/json' };
  expect((await rawRequest(api.url, { method: 'POST', path: '/', headers, body: {} })).status).toBe(429);
  expect(asked).not.toHaveBeenCalled();
});
