import { HTTP_ROUTES, httpPathOf, rpcPaths } from '@baton/a2a';
import type { FastifyInstance } from 'fastify';
import { type FakeApi, startFakeApi } from '../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../test/support/api/raw-request.js';
import {
  CARD_PATHS,
  MANAGEMENT_ROUTES,
  MCP_PATHS,
  pathsOf,
  REST_ROUTES,
  ROUTES,
} from '../../../test/support/api/routes.js';

/** Paths that name nothing of a tenant's. */
const OPEN = [
  '/',
  '/healthz',
  '/readyz',
  '/agents/.well-known/:card',
  '/agent.schema.json',
  '/v1/agent.schema.json',
  '/v1/openapi.json',
  '/.well-known/jwks.json',
  '/.well-known/oauth-protected-resource',
  '/.well-known/oauth-protected-resource/mcp',
  '/.well-known/oauth-protected-resource/agents/:agent/mcp',
  '/oauth/sign-in',
  '/oauth/callback',
  '/oauth/client.json',
  '/console',
  '/console/settings.json',
  '/console/assets/:file',
  '/console/sign-in-link',
  '/console/*',
];
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

let api: FakeApi;
let paths: string[];

beforeAll(async () => {
  api = await startFakeApi();
  const fastify: FastifyInstance = api.app.getHttpAdapter().getInstance();
  const open = pathsOf(fastify).filter(({ isManagement }) => !isManagement);
  paths = [...new Set(open.map(({ path }) => path))];
});
afterAll(() => api.close());

it('every path is in a table that the isolation walk goes through, or names nothing of a tenant’s', () => {
  const walked = [...rpcPaths(), ...HTTP_ROUTES, ...REST_ROUTES].map(({ path }) => path);
  expect(paths.toSorted()).toEqual([...new Set([...walked, ...CARD_PATHS, ...MCP_PATHS, ...OPEN])].sort());
});

it('every route below /v1 is described, at either port', () => {
  const below = [...ROUTES, ...MANAGEMENT_ROUTES].filter(({ path }) => path.startsWith('/v1/'));
  const silent = below.filter(({ description }) => !description);
  expect(silent.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
});

it('only what names nothing of a tenant’s, and the cards at the root, are open', () => {
  const open = ROUTES.filter(({ access }) => access === 'public' || access === 'optional-token');
  expect(open.map(({ path }) => path).sort()).toEqual(
    [...OPEN.slice(1), '/.well-known/agent-card.json', '/.well-known/agent.json'].sort(),
  );
  expect(ROUTES.filter(({ access }) => access === 'guests').map(({ path }) => path)).toEqual(['/']);
});

it('every other route refuses a caller without a token', async () => {
  const isOpen = (method: string, path: string): boolean =>
    ROUTES.some(
      (route) =>
        route.method === method &&
        // A route such as `GET /console/*` has the paths below it, too.
        (route.path === path || (route.path.endsWith('/*') && path.startsWith(route.path.slice(0, -1)))) &&
        (route.access === 'public' || route.access === 'optional-token'),
    );
  const answers = await Promise.all(
    paths.flatMap((path) =>
      METHODS.filter((method) => !isOpen(method, path)).map(async (method) => {
        const url = api.url + httpPathOf({ path }, () => 'x');
        return [`${method} ${path}`, (await fetch(url, { method })).status] as const;
      }),
    ),
  );
  const refused = answers.filter(([, status]) => status === 401).map(([route]) => route);
  const declared = ROUTES.filter(({ method, path }) => !isOpen(method, path));
  expect(refused.sort()).toEqual(declared.map(({ method, path }) => `${method} ${path}`).sort());
  // Whatever no controller has is no method of the path.
  expect(answers.filter(([, status]) => status !== 401 && status !== 405)).toEqual([]);
});

it('routes of operators are on the management port alone, for every spelling of the path', async () => {
  const spellings = (path: string): string[] => [
    path,
    `${path}/`,
    `/${path}`,
    `${path}?x`,
    `/%${path.charCodeAt(1).toString(16)}${path.slice(2)}`,
  ];
  const statusOf = async (url: string): Promise<number> => (await rawRequest(url, {})).status;
  const own = MANAGEMENT_ROUTES.filter(({ access }) => access === 'public')
    .map(({ path }) => path)
    .filter((path) => !OPEN.includes(path));
  expect(own).toContain('/metrics');
  for (const path of own.flatMap(spellings))
    expect([path, await statusOf(api.url + path)]).toEqual([path, 404]);
  for (const path of own.flatMap(spellings)) {
    expect([path, await statusOf(api.managementUrl + path)]).toEqual([path, 200]);
  }
  for (const path of ['/', '/agents/echo', '/v1/agents', '/agent.schema.json']) {
    expect([path, await statusOf(api.managementUrl + path)]).toEqual([path, 404]);
  }
});

it('the API of operators is on the management port alone, and refuses all other callers', async () => {
  const routes = MANAGEMENT_ROUTES.filter(({ access }) => access !== 'public');
  expect(routes.every(({ access }) => access === 'operator')).toBe(true);
  const elsewhere = routes.filter(({ path }) => !path.startsWith('/v1/admin/'));
  expect(elsewhere).toEqual([]);
  expect(routes.length).toBeGreaterThan(15);
  for (const { method, path } of routes) {
    const at = (url: string, headers: Record<string, string> = {}) =>
      rawRequest(url + path.replaceAll(/:\w+/g, 'x'), { method, headers });
    expect([path, (await at(api.url, { authorization: 'Bearer admin' })).status]).toEqual([path, 404]);
    for (const token of [
      'Bearer admin',
      'Basic admin',
      `Bearer baton_operator_${'x'.repeat(43)}`,
      undefined,
    ]) {
      const answer = await at(api.managementUrl, token === undefined ? {} : { authorization: token });
      expect([path, answer.status]).toEqual([path, 401]);
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/);
    }
  }
});
