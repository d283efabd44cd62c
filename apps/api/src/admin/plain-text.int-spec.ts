import { MANAGEMENT_ROUTES } from '../../../../test/support/api/routes.js';
import { ask, type Json } from './admin-api.fixture.js';

const ADMIN = MANAGEMENT_ROUTES.filter(({ access }) => access === 'operator');
const below = (path: string): string => path.replace('/v1/admin/', '');
const fieldsOf = (json: Json): string[] =>
  ((json.error?.fields ?? []) as { field: string }[]).map(({ field }) => field);
const named = ADMIN.filter(({ path }) => path.includes(':'));
const queried = ADMIN.flatMap((route) => [...route.query.keys()].map((name) => ({ ...route, name })));
const withBody = ADMIN.filter(({ description }) => description?.body && !description.bodyTypes);

beforeAll(() => ask('POST', 'tenants', { slug: 'acme' }));

it('covers every kind of route', () => {
  expect([named.length, queried.length, withBody.length].every((count) => count > 5)).toBe(true);
});

describe.each([
  ['U+0000', '%00'],
  ['a control character', '%1b'],
])('%s is refused by name', (_what, code) => {
  it.each(named)('in the path of $method $path', async ({ method, path }) => {
    const parameters = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!);
    for (const bad of parameters) {
      const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => (name === bad ? `a${code}b` : 'acme'));
      const { status, json } = await ask(method, below(filled), method === 'GET' ? undefined : {});
      expect([filled, status, fieldsOf(json)]).toEqual([filled, 400, [bad]]);
    }
  });

  it.each(queried)('in the query of $method $path: $name', async ({ method, path, name }) => {
    const filled = `${path.replaceAll(/:\w+/g, 'acme')}?${name}=a${code}b`;
    const { status, json } = await ask(method, below(filled), method === 'GET' ? undefined : {});
    expect([filled, status, fieldsOf(json)]).toEqual([filled, 400, [name]]);
  });
});

it.each(withBody)('text that cannot be stored is refused in the body of $method $path', async (route) => {
  const path = below(route.path.replaceAll(/:\w+/g, 'acme'));
  for (const text of ['a\0b', 'a\ud800b', 'a\u001bb']) {
    const { status, json } = await ask(route.method, path, { deep: [{ reason: text }] });
    expect([path, status, fieldsOf(json)]).toEqual([path, 400, ['deep[0].reason']]);
  }
});
