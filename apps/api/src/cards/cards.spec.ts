import { createPublicKey, generateKeyPairSync, type JsonWebKey, type KeyObject } from 'node:crypto';
import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { getExtendedAgentCard } from '@baton/tasks';
import { signedCardTag } from '../http/card-tags.js';
import { agentOf, type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';

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
    'is for tokens that may read agents, and for no caller without one: %s',
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
        { url: `${api.url}/agents/echo`, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
        { protocolBinding: 'HTTP+JSON', protocolVersion: '0.3' },
      ],
    });
    expect(Object.keys(card)).not.toEqual(expect.arrayContaining(['url']));
    expect(AgentCard.fromJSON(card).capabilities?.streaming).toBe(true);
  });

  it('serves both generations when no version is named', async () => {
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

  it('has the time at which it was first answered, and only its tag is compared', async () => {
    const [first, second] = [await get(CARD), await get(CARD)];
    const date = first.headers.get('last-modified')!;
    expect(second.headers.get('last-modified')).toBe(date);
    expect(new Date(date).toUTCString()).toBe(date);
    expect(Date.parse(date)).toBeLessThanOrEqual(Date.now());
    expect((await get(CARD, { ...AUTHORIZED, 'if-modified-since': date })).status).toBe(200);
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

  it('names the remedy to a client that lost the agent’s name on the way', async () => {
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

describe('the extended card', () => {
  const described = { description: 'Says it twice', skills: [] };
  const call = (method: string, token: string, agent: string) =>
    api.rpc(
      { jsonrpc: '2.0', id: 1, method, params: {} },
      { authorization: `Bearer ${token}` },
      `/agents/${agent}`,
    );
  beforeAll(() => {
    api.operations.getExtendedAgentCard = getExtendedAgentCard;
    api.agents.push(
      agentOf({ extended: described }, 'extended'),
      agentOf({ extended: { ...described, scopes: ['agents:write'] } }, 'guarded'),
    );
  });

  it('is for tokens that may read the card, in the shape of either version', async () => {
    const current = await call('GetExtendedAgentCard', 'caller', 'extended');
    const url = `${api.url}/agents/extended`;
    expect(await current.json()).toMatchObject({
      result: {
        description: 'Says it twice',
        capabilities: { extendedAgentCard: true },
        supportedInterfaces: [
          { url },
          { url },
          { protocolBinding: 'HTTP+JSON' },
          { protocolBinding: 'HTTP+JSON' },
        ],
      },
    });
    // Answers to POST are never stored, whatever the caller's token: RFC 9110 §9.3.3.
    expect(current.headers.get('cache-control')).toBeNull();
    const legacy = await json(await call('agent/getAuthenticatedExtendedCard', 'reader', 'extended'));
    expect(legacy.result).toMatchObject({
      description: 'Says it twice',
      supportsAuthenticatedExtendedCard: true,
      url,
    });
    expect(legacy.result).not.toHaveProperty('supportedInterfaces');
    const refused = await call('GetExtendedAgentCard', 'nobody', 'extended');
    expect([refused.status, await refused.text()]).toEqual([
      403,
      expect.stringContaining('the token lacks the scope agents:read or tasks:read or agents:call'),
    ]);
  });

  it.each([
    ['extendedAgentCard', 'application/a2a+json', { capabilities: { extendedAgentCard: true } }],
    ['v1/card', 'application/json', { supportsAuthenticatedExtendedCard: true }],
  ])('has a tag at %s of HTTP+JSON, and is not sent again to who has it', async (path, type, shape) => {
    const ask = (more: Record<string, string> = {}, agent = 'extended') =>
      fetch(`${api.url}/agents/${agent}/${path}`, { headers: { authorization: 'Bearer caller', ...more } });
    const first = await ask();
    expect(await first.json()).toMatchObject({ description: 'Says it twice', ...shape });
    expect(Object.fromEntries(first.headers)).toMatchObject({
      'content-type': `${type}; charset=utf-8`,
      'cache-control': 'private, max-age=60',
      etag: expect.stringMatching(/^"[\w-]{27}"$/) as string,
      vary: 'Authorization, A2A-Version',
    });
    const etag = first.headers.get('etag')!;
    const again = await ask({ 'if-none-match': `"other", ${etag}` });
    expect([again.status, await again.text(), again.headers.get('etag')]).toEqual([304, '', etag]);
    expect((await ask({ 'if-none-match': '"other"' })).status).toBe(200);
    const agent = api.agents.find(({ slug }) => slug === 'extended')!;
    const { definition } = agent;
    agent.definition = { ...definition, extended: { ...described, description: 'Says it thrice' } };
    const changed = await ask({ 'if-none-match': etag });
    agent.definition = definition;
    expect([changed.status, changed.headers.get('etag') === etag]).toEqual([200, false]);
    // A refusal has no tag.
    const refused = await ask({ 'if-none-match': '*' }, 'guarded');
    expect([refused.status, refused.headers.get('etag')]).toEqual([403, null]);
  });

  it('is for the scopes that the agent names, if it names some', async () => {
    const refused = await call('GetExtendedAgentCard', 'caller', 'guarded');
    expect([refused.status, await refused.text()]).toEqual([
      403,
      expect.stringContaining('the token lacks the scope agents:write'),
    ]);
    expect(await json(await call('GetExtendedAgentCard', 'admin', 'guarded'))).toMatchObject({
      result: { description: 'Says it twice' },
    });
    // The card itself says nothing of it.
    const card = await get('/agents/guarded/.well-known/agent-card.json');
    expect(await card.json()).toMatchObject({
      description: 'The agent guarded',
      capabilities: { extendedAgentCard: true },
    });
  });

  it('is found by the SDK’s client, which asks for it because of the card', async () => {
    const fetchImpl: typeof fetch = (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('authorization', 'Bearer caller');
      return fetch(input, { ...init, headers });
    };
    const factory = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    });
    const client = await factory.createFromUrl(`${api.url}/agents/extended/`);
    expect((await client.getAgentCard()).description).toBe('Says it twice');
  });
});

describe('the origin in a card', () => {
  const ROOT = '/.well-known/agent-card.json';
  const look = async (
    at: FakeApi,
    headers: Record<string, string>,
    path = CARD,
    more: Record<string, string> = AUTHORIZED,
  ) => {
    const answer = await rawRequest(at.url + path, {
      headers: { 'a2a-version': '1.0', ...more, ...headers },
    });
    const { supportedInterfaces } = JSON.parse(answer.text) as { supportedInterfaces: { url: string }[] };
    return { url: supportedInterfaces[0]!.url, headers: answer.headers };
  };
  const urlOf = async (at: FakeApi, headers: Record<string, string>, path?: string) =>
    (await look(at, headers, path)).url;
  const portOf = ({ url }: FakeApi) => new URL(url).port;

  it.each(['127.0.0.1', 'localhost', '[::1]', 'agents.internal', 'Agents.Internal'])(
    'is the one that the request came to: %s',
    async (name) => {
      const host = `${name}:${portOf(api)}`;
      expect(await urlOf(api, { host })).toBe(`http://${host.toLowerCase()}/agents/echo`);
    },
  );

  it.each([
    '',
    'a b',
    'a/b',
    'evil.example/x?',
    'user@evil.example',
    'a:99999',
    'a:b',
    '[1::2',
    '<script>',
    'a\tb',
    '999.999.999.999',
    `${'a.'.repeat(130)}x`,
    'x'.repeat(64),
    'evil.example#',
    'evil.example:80:80',
  ])('is the default for the host %j, which is none', async (host) => {
    expect(await urlOf(api, { host })).toBe(`${api.url}/agents/echo`);
  });

  it('has its own tag, and no shared cache shows it to others', async () => {
    const host = `agents.internal:${portOf(api)}`;
    const [other, own] = [await look(api, { host }, ROOT, {}), await look(api, {}, ROOT, {})];
    expect(other.headers['cache-control']).toMatch(/^private/);
    expect(own.headers['cache-control']).toMatch(/^public/);
    expect(other.headers.etag).not.toBe(own.headers.etag);
  });

  it('is not taken from a caller that sends the headers of proxies', async () => {
    const forged = { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' };
    expect(await urlOf(api, forged)).toBe(`${api.url}/agents/echo`);
  });

  describe('behind proxies', () => {
    let proxied: FakeApi;
    beforeAll(async () => {
      proxied = await startFakeApi({ TRUSTED_PROXIES: '127.0.0.1, ::1' });
    });
    afterAll(() => proxied.close());

    it('is taken from a trusted one', async () => {
      const forwarded = { 'x-forwarded-host': 'agents.example', 'x-forwarded-proto': 'https' };
      expect(await urlOf(proxied, forwarded)).toBe('https://agents.example/agents/echo');
      // The last proxy is ours; what stands before it may be a caller's.
      const longer = { 'x-forwarded-host': 'evil.example, agents.example', 'x-forwarded-proto': 'https' };
      expect(await urlOf(proxied, longer)).toBe('https://agents.example/agents/echo');
    });

    it.each<Record<string, string>>([
      { 'x-forwarded-proto': 'javascript' },
      { 'x-forwarded-host': 'a b' },
      { 'x-forwarded-host': 'evil.example/x' },
    ])('is the default where it says %j', async (headers) => {
      expect(await urlOf(proxied, headers)).toBe(`${proxied.url}/agents/echo`);
    });
  });

  it('is that of the request also where PUBLIC_URL is the default of compose', async () => {
    const composed = await startFakeApi({ PUBLIC_URL: 'http://localhost:8391' });
    expect(await urlOf(composed, { host: '127.0.0.1:8391' })).toBe('http://127.0.0.1:8391/agents/echo');
    expect(await urlOf(composed, { host: 'a b' })).toBe('http://localhost:8391/agents/echo');
    await composed.close();
  });

  it('is PUBLIC_URL wherever there is one', async () => {
    const configured = await startFakeApi({
      PUBLIC_URL: 'https://agents.example',
      TRUSTED_PROXIES: '127.0.0.1, ::1',
    });
    const headers = { host: 'other.example', 'x-forwarded-host': 'evil.example' };
    expect(await urlOf(configured, headers)).toBe('https://agents.example/agents/echo');
    await configured.close();
  });
});

describe('with a signing key', () => {
  let signing: FakeApi;
  const pemOf = (key: KeyObject) => key.export({ format: 'pem', type: 'pkcs8' }).toString();
  const keyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const [before, now, next, push] = [keyPair(), keyPair(), keyPair(), keyPair()];
  const others = pemOf(before.privateKey) + next.publicKey.export({ format: 'pem', type: 'spki' }).toString();
  beforeAll(async () => {
    signing = await startFakeApi({
      CARD_SIGNING_KEY: pemOf(now.privateKey),
      PUSH_SIGNING_KEY: pemOf(push.privateKey),
      CARD_SIGNING_KEY_PREVIOUS: others.replaceAll('\n', '\\n'),
    });
  });
  afterAll(() => signing.close());

  /** The card as a client fetches it. */
  const fetchCard = (headers = {}) => fetch(signing.url + CARD, { headers: { ...AUTHORIZED, ...headers } });
  /** Verifies with the SDK and the published keys, as a client that trusts this server does. */
  const verify = verifyAgentCardSignature(async (kid, jku) => {
    expect(jku).toBe(`${signing.url}/.well-known/jwks.json`);
    const { keys } = (await (await fetch(jku!)).json()) as { keys: (JsonWebKey & { kid: string })[] };
    return createPublicKey({ key: keys.find((key) => key.kid === kid)!, format: 'jwk' });
  });

  it('cards are signed, and their tag stays the same', async () => {
    const response = await fetchCard();
    expect(await response.json()).toMatchObject({
      signatures: [{ protected: expect.any(String) as unknown }],
    });
    const etag = response.headers.get('etag')!;
    expect(etag).toMatch(/^W\/"/);
    expect((await fetchCard({ 'if-none-match': etag })).status).toBe(304);
  });

  it.each([{}, { 'a2a-version': '1.0' }])(
    'a card fetched with %j verifies with the published key',
    async (headers) => {
      const card = (await (await fetchCard(headers)).json()) as AgentCard;
      await expect(verify(card)).resolves.toBeUndefined();
      const debug = jest.spyOn(console, 'debug').mockReturnValue();
      await expect(verify({ ...card, description: 'forged' })).rejects.toThrow('No valid signatures');
      debug.mockRestore();
    },
  );

  it('an extended card is signed as well', async () => {
    signing.operations.getExtendedAgentCard = getExtendedAgentCard;
    signing.agents.push(agentOf({ extended: { description: 'Says it twice', skills: [] } }, 'extended'));
    const request = { jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard' };
    const { result } = await json(await signing.rpc(request, {}, '/agents/extended'));
    await expect(verify(result as AgentCard)).resolves.toBeUndefined();
    const headers = { authorization: 'Bearer caller' };
    const overHttp = await fetch(`${signing.url}/agents/extended/extendedAgentCard`, { headers });
    const card = (await overHttp.json()) as { signatures: { protected: string; signature: string }[] };
    const etag = overHttp.headers.get('etag');
    expect(etag).toMatch(/^W\/"[\w-]{27}"$/);
    // Each process makes another signature. The tag is that of the card and of the key.
    const [signature] = card.signatures;
    expect(signedCardTag({ ...card, signatures: [{ ...signature!, signature: 'other' }] } as object)).toBe(
      etag,
    );
    expect(signedCardTag({ ...card, signatures: [{ ...signature!, protected: 'other' }] })).not.toBe(etag);
    expect(signedCardTag({ ...card, name: 'other' } as object)).not.toBe(etag);
  });

  it('the keys are public, with those before and after them, and without private parts', async () => {
    const response = await fetch(`${signing.url}/.well-known/jwks.json`);
    expect(response.headers.get('cache-control')).toBe('public, max-age=300');
    const { keys } = (await response.json()) as { keys: JsonWebKey[] };
    const xOf = ({ publicKey }: { publicKey: KeyObject }) => publicKey.export({ format: 'jwk' }).x;
    expect(keys.map(({ x }) => x)).toEqual([xOf(now), xOf(push), xOf(before), xOf(next)]);
    for (const key of keys) {
      expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    }
  });

  it('without one, no key is published', async () => {
    expect(await (await fetch(`${api.url}/.well-known/jwks.json`)).json()).toEqual({ keys: [] });
  });

  it('are signed for no host that a caller makes up', async () => {
    const { port } = new URL(signing.url);
    const urlAt = async (host: string) => {
      const answer = await rawRequest(signing.url + CARD, {
        headers: { ...AUTHORIZED, 'a2a-version': '1.0', host },
      });
      return (JSON.parse(answer.text) as { supportedInterfaces: { url: string }[] }).supportedInterfaces[0]!
        .url;
    };
    expect(await urlAt(`127.0.0.1:${port}`)).toBe(`http://127.0.0.1:${port}/agents/echo`);
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1:1', 'localhost']) {
      expect(await urlAt(host)).toBe(`${signing.url}/agents/echo`);
    }
  });
});
