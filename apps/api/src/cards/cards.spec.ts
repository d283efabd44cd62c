import { generateKeyPairSync } from 'node:crypto';
import { AgentCard } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { type FakeApi, startFakeApi } from '../testing/fake-api.js';

const CARD = '/agents/echo/.well-known/agent-card.json';
const AUTHORIZED = { authorization: 'Bearer reader' };
let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi();
});
afterAll(() => api.close());

const get = (path: string, headers: Record<string, string> = AUTHORIZED) =>
  fetch(api.url + path, { headers });
const json = async (response: Response) => (await response.json()) as Record<string, unknown>;

describe('the card of an agent', () => {
  it.each([CARD, '/agents/echo/.well-known/agent.json', '/v1/a2a/agents/echo/agent-card.json'])(
    'is for tokens that may know of agents, and for nobody without one: %s',
    async (path) => {
      const statusOf = async (headers: Record<string, string>) => (await get(path, headers)).status;
      const scoped = ['reader', 'caller', 'admin', 'nobody'].map((token) => ({
        authorization: `Bearer ${token}`,
      }));
      expect(await Promise.all([...scoped, {}].map(statusOf))).toEqual([200, 200, 200, 403, 401]);
    },
  );

  it('is pure 1.0 when asked for as 1.0', async () => {
    const card = await json(await get(CARD, { ...AUTHORIZED, 'a2a-version': '1.0' }));
    expect(card).toMatchObject({
      name: 'echo',
      supportedInterfaces: [
        { url: `${api.url}/agents/echo`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { protocolVersion: '0.3' },
      ],
    });
    expect(Object.keys(card)).not.toEqual(expect.arrayContaining(['url']));
    expect(AgentCard.fromJSON(card).capabilities?.streaming).toBe(true);
  });

  it('speaks to both generations when no version is named', async () => {
    expect(await json(await get(CARD))).toMatchObject({
      url: `${api.url}/agents/echo`,
      preferredTransport: 'JSONRPC',
      protocolVersion: '0.3.0',
      supportedInterfaces: expect.any(Array) as unknown,
    });
  });

  it.each([
    [CARD, { 'a2a-version': '0.3' }],
    ['/agents/echo/.well-known/agent.json', {}],
    ['/agents/echo/.well-known/agent.json', { 'a2a-version': '1.0' }],
  ])('at %s with %j is flat, for older clients', async (path, headers) => {
    const card = await json(await get(path, { ...AUTHORIZED, ...headers }));
    expect(card).toMatchObject({ url: `${api.url}/agents/echo`, preferredTransport: 'JSONRPC' });
    expect(card).not.toHaveProperty('supportedInterfaces');
  });

  it('may be kept for a while, by its one reader, and asked for again by its tag', async () => {
    const first = await get(CARD);
    const etag = first.headers.get('etag')!;
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'cache-control': expect.stringMatching(/^private, max-age=\d+$/) as unknown,
      'content-type': 'application/json; charset=utf-8',
      vary: 'Authorization, A2A-Version',
      etag: expect.stringMatching(/^"[\w-]+"$/) as unknown,
    });
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await get(CARD, { ...AUTHORIZED, 'if-none-match': tag });
      expect([again.status, again.headers.get('etag'), await again.text()]).toEqual([304, etag, '']);
    }
    expect((await get(CARD, { ...AUTHORIZED, 'if-none-match': '"other"' })).status).toBe(200);
    expect((await get(CARD, { ...AUTHORIZED, 'a2a-version': '1.0' })).headers.get('etag')).not.toBe(etag);
  });

  it('needs a token, and an agent that exists', async () => {
    const refused = await get(CARD, {});
    expect(refused.headers.get('www-authenticate')).toContain('Bearer');
    expect([refused.status, await refused.json()]).toMatchObject([401, { error: { code: 401 } }]);
    const unknown = await get('/agents/theirs/.well-known/agent-card.json');
    expect([unknown.status, await unknown.json()]).toMatchObject([
      404,
      { error: { message: 'Agent not found: theirs' } },
    ]);
  });

  it('is found by the SDK’s client, given the agent’s URL with a slash at its end', async () => {
    const fetchImpl: typeof fetch = (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('authorization', 'Bearer caller');
      return fetch(input, { ...init, headers });
    };
    const resolver = new DefaultAgentCardResolver({ fetchImpl });
    const transports = [new JsonRpcTransportFactory({ fetchImpl })];
    const factory = new ClientFactory({ transports, cardResolver: resolver });
    await expect(factory.createFromUrl(`${api.url}/agents/echo/`)).resolves.toBeDefined();
    await expect(resolver.resolve(`${api.url}/agents/echo/`)).resolves.toMatchObject({ name: 'echo' });
  });

  it('asked for by a client that lost the agent’s name on the way, says how to keep it', async () => {
    const response = await get('/agents/.well-known/agent-card.json');
    expect([response.status, await response.json()]).toMatchObject([
      404,
      { error: { message: expect.stringContaining('slash at its end') as unknown } },
    ]);
  });
});

describe('the card at the root', () => {
  it.each(['/.well-known/agent-card.json', '/.well-known/agent.json'])(
    '%s needs no token and describes the server',
    async (path) => {
      const response = await get(path, {});
      expect(response.headers.get('cache-control')).toMatch(/^public, max-age=\d+$/);
      expect(await json(response)).toMatchObject({ name: 'Baton', securitySchemes: { bearer: {} } });
    },
  );

  it('describes the default agent of a tenant that shows its token', async () => {
    expect(await json(await get('/.well-known/agent-card.json'))).toMatchObject({ name: 'index' });
  });

  it('refuses a token that is not valid', async () => {
    expect((await get('/.well-known/agent-card.json', { authorization: 'Bearer wrong' })).status).toBe(401);
  });
});

describe('with a signing key', () => {
  let signing: FakeApi;
  beforeAll(async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
    signing = await startFakeApi({ CARD_SIGNING_KEY: pem });
  });
  afterAll(() => signing.close());

  it('cards are signed, and their tag stays the same', async () => {
    const fetchCard = (headers = {}) => fetch(signing.url + CARD, { headers: { ...AUTHORIZED, ...headers } });
    const response = await fetchCard();
    expect(await response.json()).toMatchObject({
      signatures: [{ protected: expect.any(String) as unknown }],
    });
    const etag = response.headers.get('etag')!;
    expect(etag).toMatch(/^W\/"/);
    expect((await fetchCard({ 'if-none-match': etag })).status).toBe(304);
  });
});
