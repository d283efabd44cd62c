import {
  discoverOAuthProtectedResourceMetadata,
  extractWWWAuthenticateParams,
} from '@modelcontextprotocol/sdk/client/auth.js';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';

const ISSUER = 'https://id.example/realms/acme';
const PATHS = ['/mcp', '/agents/echo/mcp'];

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi();
  const bound = { agent: 'echo', public: false };
  api.hosts.push({ ...bound, tenantId: 'tenant-1', host: 'acme.example' });
  api.hosts.push({ ...bound, tenantId: 'tenant-2', host: 'none.example' });
  api.issuers['tenant-1'] = [ISSUER];
});
afterAll(() => api.close());

const ask = (path: string, headers: Record<string, string>, method = 'GET') =>
  rawRequest(api.url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    body: {},
  });
const challengeOf = async (path: string, headers: Record<string, string>): Promise<string> => {
  const { status, headers: answered } = await ask(path, headers, 'POST');
  expect(status).toBe(401);
  return String(answered['www-authenticate']);
};

describe('a client without a token', () => {
  it.each(PATHS)('is sent from %s to the issuers of the tenant of its host', async (path) => {
    const challenge = await challengeOf(path, { host: 'acme.example' });
    const url = `http://acme.example/.well-known/oauth-protected-resource${path}`;
    expect(challenge).toBe(`Bearer realm="baton", resource_metadata="${url}"`);
    const { status, text } = await ask(new URL(url).pathname, { host: 'acme.example' });
    expect([status, JSON.parse(text)]).toEqual([
      200,
      {
        resource: `http://acme.example${path}`,
        authorization_servers: [ISSUER],
        bearer_methods_supported: ['header'],
        resource_name: 'Baton',
      },
    ]);
  });

  it('gets the reason in an error with an id, which the Python SDK needs', async () => {
    const { text } = await ask('/mcp', { host: 'none.example' }, 'POST');
    expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: 401 } });
  });

  it('finds them at the root as well', async () => {
    const { text } = await ask('/.well-known/oauth-protected-resource', { host: 'acme.example' });
    expect(JSON.parse(text)).toMatchObject({
      resource: 'http://acme.example',
      authorization_servers: [ISSUER],
    });
  });

  it.each(['none.example', 'other.example', ''])(
    'gets no metadata at the host %p, whose tenant has none or is not known',
    async (host) => {
      const headers: Record<string, string> = host === '' ? {} : { host };
      for (const path of PATHS) {
        expect(await challengeOf(path, headers)).toBe('Bearer realm="baton"');
        expect((await ask(`/.well-known/oauth-protected-resource${path}`, headers)).status).toBe(404);
      }
      expect((await ask('/.well-known/oauth-protected-resource', headers)).status).toBe(404);
    },
  );

  it('gets the same with a bad token, and the error of the token', async () => {
    const challenge = await challengeOf('/mcp', { host: 'acme.example', authorization: 'Bearer x y' });
    expect(challenge).toContain('error="invalid_request"');
    expect(challenge).toContain(
      'resource_metadata="http://acme.example/.well-known/oauth-protected-resource/mcp"',
    );
  });

  it('learns nothing of it elsewhere than at MCP', async () => {
    expect(await challengeOf('/agents/echo', { host: 'acme.example' })).toBe('Bearer realm="baton"');
  });

  it('finds them with the SDK where the installation has one tenant', async () => {
    const alone = await startFakeApi();
    alone.issuers[''] = [ISSUER];
    const refused = await fetch(`${alone.url}/mcp`, { method: 'POST' });
    const { resourceMetadataUrl } = extractWWWAuthenticateParams(refused);
    const found = await discoverOAuthProtectedResourceMetadata(`${alone.url}/mcp`, { resourceMetadataUrl });
    expect(found).toMatchObject({ resource: `${alone.url}/mcp`, authorization_servers: [ISSUER] });
    const guessed = await discoverOAuthProtectedResourceMetadata(`${alone.url}/agents/echo/mcp`);
    expect(guessed.resource).toBe(`${alone.url}/agents/echo/mcp`);
    await alone.close();
  });
});
