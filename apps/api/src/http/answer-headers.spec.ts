import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';
import { request, sampleTask, taskItem } from '../../../../test/support/api/samples.js';

const ORIGIN = 'https://app.example.com';
const AUTHORIZED = { authorization: 'Bearer caller' };

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi({
    CORS_ORIGINS: `${ORIGIN}, http://localhost:5173`,
    PUBLIC_URL: 'https://agents.example',
  });
  api.operations.getTask = async () => sampleTask();
  api.operations.sendStreamingMessage = async function* () {
    yield [taskItem()];
  };
});
afterAll(() => api.close());

/** Answers of every kind: results, cards, streams, errors of ours and of the layers below. */
const ANSWERS: readonly [what: string, answer: (headers: Record<string, string>) => Promise<Response>][] = [
  ['a result', (headers) => api.rpc(request.get, headers)],
  ['a JSON-RPC error', (headers) => api.rpc('{', headers)],
  ['a stream', (headers) => api.rpc(request.stream, headers)],
  [
    'a card',
    (headers) =>
      fetch(`${api.url}/agents/echo/.well-known/agent-card.json`, { headers: { ...AUTHORIZED, ...headers } }),
  ],
  ['a list', (headers) => fetch(`${api.url}/v1/tasks`, { headers: { ...AUTHORIZED, ...headers } })],
  ['a refused token', (headers) => fetch(`${api.url}/v1/tasks`, { headers })],
  ['an unknown path', (headers) => fetch(`${api.url}/nothing`, { headers })],
  ['a method that is not allowed', (headers) => fetch(`${api.url}/agents/echo`, { method: 'PUT', headers })],
  ['OPTIONS', (headers) => fetch(`${api.url}/agents/echo`, { method: 'OPTIONS', headers })],
  ['health', (headers) => fetch(`${api.url}/healthz`, { headers })],
];

const SECURITY = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'strict-transport-security': 'max-age=31536000',
};

describe('security headers', () => {
  it.each(ANSWERS)('are on %s', async (_, ask) => {
    const response = await ask({});
    await response.text();
    expect(Object.fromEntries(response.headers)).toMatchObject(SECURITY);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it.each(['GET /agents/%zz HTTP/1.1', 'POST /agents/%zz HTTP/1.1'])(
    'are on an unreadable path: %s',
    async (line) => {
      const [method = '', path = ''] = line.split(' ');
      const { status, headers } = await rawRequest(api.url, { method, path });
      expect([status, headers]).toMatchObject([400, SECURITY]);
    },
  );

  it('have no promise of TLS where callers come without it', async () => {
    const plain = await startFakeApi();
    const { headers } = await fetch(`${plain.url}/healthz`);
    expect(headers.get('strict-transport-security')).toBeNull();
    expect(headers.get('x-content-type-options')).toBe('nosniff');
    await plain.close();
  });

  it('forbid caches to store data of tenants, but for cards for a minute', async () => {
    const stored = async (path: string) =>
      (await fetch(api.url + path, { headers: AUTHORIZED })).headers.get('cache-control');
    expect(await stored('/v1/tasks')).toBe('no-store');
    expect(await stored('/nothing')).toBe('no-store');
    expect(await stored('/agents/echo/.well-known/agent-card.json')).toBe('private, max-age=60');
    expect(await stored('/agent.schema.json')).toBe('public, max-age=300');
  });
});

describe('CORS', () => {
  it.each(ANSWERS)('lets an allowed origin read %s', async (_, ask) => {
    const response = await ask({ origin: ORIGIN });
    await response.text();
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': expect.stringContaining('Retry-After, WWW-Authenticate, X-Request-Id'),
      vary: expect.stringMatching(/^Origin/),
    });
  });

  it.each(ANSWERS)('keeps %s from another origin', async (_, ask) => {
    const response = await ask({ origin: 'https://evil.example' });
    await response.text();
    expect([response.headers.get('access-control-allow-origin'), response.headers.get('vary')]).toEqual([
      null,
      expect.stringMatching(/^Origin/),
    ]);
  });

  it('names what a card depends on besides', async () => {
    const response = await ANSWERS.find(([what]) => what === 'a card')![1]({ origin: ORIGIN });
    expect(response.headers.get('vary')).toBe('Origin, Authorization, A2A-Version');
  });

  const preflight = (url: string, headers: Record<string, string> = {}) =>
    fetch(url, {
      method: 'OPTIONS',
      headers: { origin: ORIGIN, 'access-control-request-method': 'POST', ...headers },
    });

  it('answers a preflight without a token, with what may be sent', async () => {
    const response = await preflight(`${api.url}/agents/echo`, {
      'access-control-request-headers': 'authorization,a2a-version',
    });
    expect([response.status, await response.text()]).toEqual([204, '']);
    const headers = Object.fromEntries(response.headers);
    expect(headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-methods': 'GET, HEAD, POST, PUT, PATCH, DELETE',
      'access-control-max-age': '7200',
    });
    expect(headers['access-control-allow-headers']!.split(', ')).toEqual(
      expect.arrayContaining([
        'Authorization',
        'Content-Type',
        'A2A-Version',
        'A2A-Extensions',
        'Last-Event-ID',
        'Idempotency-Key',
        'traceparent',
        'Baton-Guest',
        'Baton-Agent-Label',
        'MCP-Protocol-Version',
        'Mcp-Method',
        'Mcp-Name',
      ]),
    );
    const other = await preflight(`${api.url}/agents/echo`, { origin: 'https://evil.example' });
    expect(other.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('lets a client of A2A in a browser send all that it sends, and read all that it needs', async () => {
    const listOf = (header: string | null) => (header ?? '').toLowerCase().split(', ');
    const response = await preflight(`${api.url}/agents/echo`);
    const sent = [
      'accept',
      'authorization',
      'content-type',
      'a2a-version',
      'a2a-extensions',
      'x-a2a-extensions',
    ];
    const resumed = [
      'last-event-id',
      'idempotency-key',
      'if-none-match',
      'traceparent',
      'tracestate',
      'baggage',
    ];
    expect(listOf(response.headers.get('access-control-allow-headers'))).toEqual(
      expect.arrayContaining([...sent, ...resumed]),
    );
    const answer = await fetch(`${api.url}/agents/echo`, { method: 'POST', headers: { origin: ORIGIN } });
    expect(listOf(answer.headers.get('access-control-expose-headers'))).toEqual(
      expect.arrayContaining([
        'a2a-extensions',
        'x-a2a-extensions',
        'etag',
        'location',
        'retry-after',
        'www-authenticate',
        'x-request-id',
      ]),
    );
  });

  it('is for callers: operators’ tools are no web pages', async () => {
    const response = await fetch(`${api.managementUrl}/metrics`, { headers: { origin: ORIGIN } });
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('lets every origin in for *, without cookies', async () => {
    const open = await startFakeApi({ CORS_ORIGINS: '*' });
    const response = await fetch(`${open.url}/healthz`, { headers: { origin: 'https://evil.example' } });
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('access-control-allow-credentials')).toBeNull();
    await open.close();
  });

  it('is off by default', async () => {
    const closed = await startFakeApi();
    const response = await preflight(`${closed.url}/agents/echo`);
    expect(response.status).toBe(204);
    expect([...response.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
    expect(response.headers.get('vary')).toBeNull();
    await closed.close();
  });
});
