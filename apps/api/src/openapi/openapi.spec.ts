import { Validator } from '@seriousme/openapi-schema-validator';
import { ApiDocument, type Operation } from '../../../../test/support/api/api-document.js';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { MANAGEMENT_ROUTES, pathsOf, ROUTES } from '../../../../test/support/api/routes.js';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

let api: FakeApi;
let documents: Record<'public' | 'management', { base: string; url: string; document: ApiDocument }>;

beforeAll(async () => {
  api = await startFakeApi();
  const of = async (base: string, path: string) => ({
    base,
    url: base + path,
    document: await ApiDocument.from(base + path),
  });
  documents = {
    public: await of(api.url, '/v1/openapi.json'),
    management: await of(api.managementUrl, '/v1/admin/openapi.json'),
  };
});
afterAll(() => api.close());

const statusOf = async (
  base: string,
  { method, path }: Pick<Operation, 'method' | 'path'>,
  token?: string,
) => {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return (await fetch(base + path.replaceAll(/\{\w+\}/g, 'x'), { method, headers })).status;
};

describe.each(['public', 'management'] as const)('the document of the %s port', (port) => {
  it('is valid OpenAPI 3.1', async () => {
    const { json } = documents[port].document;
    expect(json.openapi).toBe('3.1.1');
    expect(await new Validator().validate(json)).toEqual({ valid: true });
  });

  it('has every route below /v1 that the router has at this port, and no other', async () => {
    const { base, document } = documents[port];
    const isManagement = port === 'management';
    const paths = pathsOf(api.app.getHttpAdapter().getInstance())
      .filter((route) => route.path.startsWith('/v1/') && route.isManagement === isManagement)
      .map(({ path }) => path.replaceAll(/:(\w+)/g, '{$1}'));
    // The router has each path with all methods. Those that no controller has are refused.
    const statuses: [string, number][] = [];
    // The management port takes few connections at once.
    for (const path of paths) {
      const answers = METHODS.map(async (method): Promise<[string, number]> => [
        `${method} ${path}`,
        await statusOf(base, { method, path }),
      ]);
      statuses.push(...(await Promise.all(answers)));
    }
    const routes = statuses.filter(([, status]) => status !== 405).map(([route]) => route);
    const described = document.operations.map(({ method, path }) => `${method} ${path}`);
    const aliases = (isManagement ? MANAGEMENT_ROUTES : ROUTES)
      .filter(({ alias }) => alias !== undefined)
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`);
    expect([...described, ...aliases].sort()).toEqual(routes.sort());
  });

  it('gives each operation a name of its own', () => {
    const ids = documents[port].document.operations.map(({ id }) => id);
    expect(ids.filter((id, i) => ids.indexOf(id) !== i)).toEqual([]);
    expect(ids.filter((id) => !/^[a-z][A-Za-z\d]+$/.test(id))).toEqual([]);
  });

  it('names every parameter of every path', () => {
    for (const { path, spec } of documents[port].document.operations) {
      const inPath = (spec.parameters as { name: string; in: string }[]).filter((each) => each.in === 'path');
      const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      expect([path, inPath.map(({ name }) => name)]).toEqual([path, names]);
    }
  });

  it('has the operations that need a token, and their scopes', async () => {
    const { base, document } = documents[port];
    for (const operation of document.operations) {
      const security = operation.spec.security as { token: string[] }[];
      const without = await statusOf(base, operation);
      expect([operation.id, without === 401]).toEqual([operation.id, security.length > 0]);
      if (port === 'management' || security.length === 0) continue;
      const isAsked = security.every(({ token }) => token.length > 0);
      expect([operation.id, (await statusOf(base, operation, 'nobody')) === 403]).toEqual([
        operation.id,
        isAsked,
      ]);
    }
  });

  it('is sent once to a caller that keeps it', async () => {
    const { url } = documents[port];
    const first = await fetch(url);
    const etag = first.headers.get('etag')!;
    expect(first.headers.get('cache-control')).toBe('public, max-age=300');
    expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304);
    expect((await fetch(url, { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
  });
});

it('the scopes are those that routes declare, or admin', () => {
  const { document } = documents.public;
  const scopesOf = (id: string): unknown => document.operation(id).spec.security;
  expect(scopesOf('listTasks')).toEqual(
    ['tasks:read', 'agents:call', 'admin'].map((scope) => ({ token: [scope] })),
  );
  expect(scopesOf('runSchedule')).toEqual([
    { token: ['schedules:write', 'agents:call'] },
    { token: ['admin'] },
  ]);
  expect(scopesOf('createToken')).toEqual([{ token: ['admin'] }]);
  // Two operations of A2A give it their scope, which is the same.
  expect(scopesOf('beginBulkOperation')).toEqual([{ token: ['agents:call'] }, { token: ['admin'] }]);
  expect(scopesOf('getOpenApi')).toEqual([]);
});

it('mentions the alias of a path once, in the description', () => {
  const { info, paths } = documents.public.document.json as {
    info: { description: string };
    paths: Record<string, object>;
  };
  expect(info.description.match(/another name of/g)).toHaveLength(1);
  expect(info.description).toContain('`/v1/requests` is another name of `/v1/tasks`');
  expect(Object.keys(paths).filter((path) => path.startsWith('/v1/requests'))).toEqual([]);
  expect(Object.keys(paths)).toContain('/v1/tasks/{id}/send-again');
});

it('what changes agents of others takes If-Match and answers with an ETag', () => {
  const { spec } = documents.public.document.operation('putAgent');
  const names = (spec.parameters as { name: string }[]).map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['agent', 'dryRun', 'If-Match', 'If-None-Match']));
  const { responses } = spec as { responses: Record<string, { headers: object }> };
  expect(Object.keys(responses['200']!.headers)).toEqual(['ETag', 'Location']);
  expect(responses).toHaveProperty('412');
});
