import { rpcPaths } from '@baton/a2a';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { MCP_PATHS, REST_ROUTES } from '../../../../test/support/api/routes.js';

// Every path is in one of these tables: see routes.spec.ts.
const ROUTES = [
  ...rpcPaths().map(({ path }) => ['POST', path] as const),
  ...MCP_PATHS.map((path) => ['POST', path] as const),
  ...REST_ROUTES.filter(({ method }) => ['POST', 'PUT', 'PATCH'].includes(method)).map(
    ({ method, path }) => [method, path] as const,
  ),
];
/** They do not look at what is sent. */
const WITHOUT_BODY = new Set([
  '/v1/agents/:agent/next/promote',
  '/v1/agents/:agent/versions/:version/restore',
  '/v1/dead-letters/:runId/redeliver',
  '/v1/dead-pushes/:id/redeliver',
  '/v1/webhooks/:id/redeliver',
  '/v1/bulk-operations/:id/cancel',
  '/v1/tasks/:id/cancel',
  '/v1/requests/:id/cancel',
  '/v1/tasks/:id/resume',
  '/v1/requests/:id/resume',
  '/v1/tasks/:id/continue',
  '/v1/tasks/:id/send-again',
  '/v1/requests/:id/continue',
  '/v1/requests/:id/send-again',
  '/v1/schedules/:id/run',
  '/v1/webhooks/:id/test',
]);
/** Below the limit of the paths that take least. */
const BYTES = 1_000_000;
const BODIES: Record<string, string> = {
  'lists in lists': '['.repeat(BYTES),
  'lists in lists that are closed': '['.repeat(BYTES / 2) + ']'.repeat(BYTES / 2),
  'objects in objects': '{"a":'.repeat(BYTES / 5),
  'depth behind a long string': `{"a":"${'x\\"'.repeat(BYTES / 4)}","b":${'['.repeat(1_000)}`,
  'lists in a list': `[${'[],'.repeat(BYTES / 4)}[]]`,
  'members of one object': `{${Array.from({ length: 101_000 }, (_, i) => `"${i.toString(36)}":1`).join()}}`,
};

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi({ BATON_MASTER_KEY: Buffer.alloc(32).toString('base64') });
});
afterAll(() => api.close());
afterEach(() => jest.restoreAllMocks());

describe.each(ROUTES)('%s %s', (method, path) => {
  it.each(Object.keys(BODIES))('parses no body of %s', async (what) => {
    const parse = jest.spyOn(JSON, 'parse');
    const response = await fetch(api.url + path.replaceAll(/:\w+/g, '1'), {
      method,
      headers: { authorization: 'Bearer admin', 'content-type': 'application/json' },
      body: BODIES[what]!,
    });
    const text = await response.text();
    const longest = Math.max(0, ...parse.mock.calls.map(([given]) => given.length));
    expect(longest).toBeLessThan(BYTES * 0.9);
    if (WITHOUT_BODY.has(path)) return;
    expect(text).toMatch(/deeper than 200 levels|more than 100000 JSON values/);
    expect(response.status).toBeLessThan(500);
  });
});
