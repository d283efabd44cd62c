import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Inputs, list, one, statement } from './statement.js';

/** The name of a statement in the source. */
const NAME = /(?:: Statement = \{\s*name: |\bstatement\(\s*|\b(?:note|forget): )'([a-z0-9-]+)'/g;

interface Item {
  id: string;
  first?: string;
  last: string;
}

const ITEM = {
  id: ['uuid', ({ id }) => id],
  first: ['text', ({ first }) => first],
  last: ['text', ({ last }) => last],
} satisfies Inputs<Item>;
const BY = { tenant_id: ['uuid', ({ tenantId }) => tenantId] } satisfies Inputs<{ tenantId: string }>;

describe('a statement with named inputs', () => {
  it('counts its parameters, and has their values in the same order', () => {
    const update = statement(
      'update',
      { by: one(BY), items: list(ITEM), limit: one({ rows: ['int', (rows: number) => rows] }) },
      ({ by, items, limit }) => `${by.tenant_id} ${items.rows('k')} LIMIT ${limit.rows}`,
    );
    expect(update.name).toBe('update');
    expect(update.text).toBe(
      '$1::uuid unnest($2::uuid[], $3::text[], $4::text[]) AS k(id, first, last) LIMIT $5::int',
    );
    const items = [
      { id: '1', first: 'a', last: 'b' },
      { id: '2', last: 'd' },
    ];
    expect(update.values({ by: { tenantId: 't' }, items, limit: 7 })).toEqual([
      't',
      ['1', '2'],
      ['a', undefined],
      ['b', 'd'],
      7,
    ]);
  });

  it('binds a value by the name of its input, wherever the input stands', () => {
    const { first, last } = ITEM;
    const text = (inputs: Inputs<Item>): [string, unknown] => {
      const insert = statement('insert', { item: one(inputs) }, ({ item }) => `${item.first}, ${item.last}`);
      const values = insert.values({ item: { id: '1', first: 'a', last: 'b' } });
      return [insert.text.replace(/\$(\d)::text/g, (_, n: string) => String(values[Number(n) - 1])), values];
    };
    expect(text({ first, last })).toEqual(['a, b', ['a', 'b']]);
    expect(text({ last, first })).toEqual(['a, b', ['b', 'a']]);
  });

  it('sends JSON as one array, and numbers the rows', () => {
    const json = { payload: ['json', ({ last }) => JSON.stringify(last)] } satisfies Inputs<Item>;
    const insert = statement(
      undefined,
      { items: list({ ...json, ...ITEM }), only: list(json) },
      ({ items, only }) => `${items.rows('k', 'n')}; ${only.rows('e')}; ${items.arrays.payload}`,
    );
    expect(insert.text).toBe(
      'ROWS FROM (json_array_elements($1::json), unnest($2::uuid[], $3::text[], $4::text[])) WITH ORDINALITY ' +
        'AS k(payload, id, first, last, n); json_array_elements($5::json) AS e(payload); $1::json',
    );
    expect('name' in insert).toBe(false);
    const items = [
      { id: '1', last: 'a' },
      { id: '2', last: 'b' },
    ];
    expect(insert.values({ items, only: [] })[0]).toBe('["a","b"]');
    expect(insert.values({ items, only: [] }).at(-1)).toBe('[]');
  });

  it('does not load with an input that its text does not use', () => {
    expect(() => statement('find', { item: one(ITEM) }, ({ item }) => `${item.id} ${item.last}`)).toThrow(
      'find: the text does not use input $2',
    );
  });
});

// A connection prepares a statement under its name once, and refuses another text under the same name.
it('no two statements have the same name', () => {
  const root = join(__dirname, '..');
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/^generated|spec\.ts$|fixture\.ts$/.test(file))
    .flatMap((file) => [...readFileSync(join(root, file), 'utf8').matchAll(NAME)].map(([, name]) => name));
  expect(names.length).toBeGreaterThan(200);
  expect(names.filter((name, i) => names.indexOf(name) < i)).toEqual([]);
});
