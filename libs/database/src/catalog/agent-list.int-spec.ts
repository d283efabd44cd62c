import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import type { AgentDefinition } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { AgentCatalogStore, AgentStore, CatalogClient, TenantStore } from '../index.js';

let testDatabase: TestDatabase;
let client: Client;
let catalog: CatalogClient;
let agents: AgentStore;
let entries: AgentCatalogStore;
let tenantId: string;

beforeAll(async () => {
  testDatabase = await createDatabase();
  client = new Client({ connectionString: testDatabase.url });
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
  catalog = new CatalogClient(testDatabase.url);
  agents = new AgentStore(catalog);
  entries = new AgentCatalogStore(catalog);
});
afterAll(async () => {
  await catalog.close();
  await client.end();
  await testDatabase.drop();
});
beforeEach(async () => {
  tenantId = (await new TenantStore(catalog).create(`t-${randomUUID()}`, PLATFORM_ACTOR)).id;
});

const definition = (name: string, more: Partial<AgentDefinition> = {}): AgentDefinition => ({
  name,
  description: 'half \ud800 and \u0000',
  version: '1',
  runtime: 'echo',
  config: {},
  skills: [],
  inputModes: [],
  outputModes: [],
  extensions: [],
  ...more,
});
const make = async (slug: string, more: Partial<AgentDefinition> = {}, enabled = true) => ({
  tenantId,
  ...(await entries.create(
    {
      tenantId,
      slug,
      enabled,
      by: 'operator',
      definition: definition(slug, more),
    },
    PLATFORM_ACTOR,
  )),
});
const slugs = async (limit: number, after?: string, only?: string[]) =>
  (await agents.page(tenantId, { limit, after }, only)).map(({ slug }) => slug);

describe('the list of agents', () => {
  it('has what it shows of them, and reads no definition', async () => {
    const { id } = await make('one', { config: { prompt: 'x'.repeat(100_000) } }, false);
    await make('two', { a2aEnabled: false });
    // Whatever read the definitions now would show it.
    await client.query(`UPDATE agents SET definition = '{"name": "read"}' WHERE tenant_id = $1`, [tenantId]);
    const shown = { origin: 'catalog', version: 1, description: 'half \ud800 and \u0000', runtime: 'echo' };
    expect(await agents.page(tenantId, { limit: 10 })).toEqual([
      { ...shown, id, slug: 'one', name: 'one', status: 'disabled' },
      { ...shown, id: expect.any(String) as string, slug: 'two', name: 'two' },
    ]);
    expect(await agents.own(tenantId)).toEqual([
      { slug: 'one', status: 'disabled', definition: {} },
      { slug: 'two', definition: { a2aEnabled: false } },
    ]);
  });

  it('has the schema of what an agent answers with, also of one that the last release has stored', async () => {
    const config = { output: { schema: { type: 'object' } } };
    const { id } = await make('one', { runtime: 'llm', config });
    await make('two', { config });
    await agents.install('three', { ...definition('three'), runtime: 'llm', config }, [tenantId]);
    const schemas = async () =>
      (await agents.list(tenantId)).map(({ slug, definition: { outputSchema } }) => [slug, outputSchema]);
    const expected = [
      ['one', { type: 'object' }],
      ['three', { type: 'object' }],
      ['two', undefined],
    ];
    expect(await schemas()).toEqual(expected);
    await client.query(`UPDATE agents SET summary = NULL, summary_version = NULL WHERE id = $1`, [id]);
    expect(await schemas()).toEqual(expected);
  });

  it('shows an agent as it is now, also if a process of the last release has changed it', async () => {
    const first = await make('one');
    await entries.change(
      first,
      { definition: definition('new'), enabled: true, by: 'operator' },
      PLATFORM_ACTOR,
    );
    expect(await agents.page(tenantId, { limit: 10 })).toMatchObject([{ name: 'new', version: 2 }]);
    await client.query(
      `UPDATE agents SET version = 3, definition = '{"name": "newer", "description": "d", "runtime": "echo"}' WHERE id = $1`,
      [first.id],
    );
    expect(await agents.page(tenantId, { limit: 10 })).toMatchObject([{ name: 'newer', version: 3 }]);
    await client.query(`UPDATE agents SET summary = NULL, summary_version = NULL WHERE id = $1`, [first.id]);
    expect(await agents.page(tenantId, { limit: 10 })).toMatchObject([{ name: 'newer', version: 3 }]);
  });

  it('has pages in the order of the slugs, in which agents come and go', async () => {
    await agents.install('c-1', definition('installed'), null);
    await agents.install('d', definition('installed'), null);
    await agents.install('other', definition('installed'), []);
    for (const slug of ['c', 'b', 'c1', 'a', 'd']) await make(slug);
    // As JavaScript sorts, where a language would leave the hyphen out.
    expect(await slugs(10)).toEqual(['a', 'b', 'c', 'c-1', 'c1', 'd']);
    expect(await slugs(3)).toEqual(['a', 'b', 'c']);
    await make('aa');
    await entries.remove({ ...(await entries.find(tenantId, 'c'))!, tenantId }, PLATFORM_ACTOR);
    expect(await slugs(2, 'c')).toEqual(['c-1', 'c1']);
    expect(await slugs(2, 'c1')).toEqual(['d']);
    expect(await slugs(2, 'd')).toEqual([]);
    expect(await slugs(10, 'a', ['aa', 'd', 'c-1', 'x'])).toEqual(['aa', 'c-1', 'd']);
    expect(await agents.page(tenantId, { limit: 10 }, ['c-1', 'd'])).toMatchObject([
      { origin: 'installed', name: 'installed', runtime: 'echo' },
      { origin: 'catalog', name: 'd' },
    ]);
  });

  it('finds a page in an index', async () => {
    await make('first');
    await client.query(
      `INSERT INTO agents (tenant_id, id, slug, definition, updated_at)
       SELECT tenant_id, gen_random_uuid(), 'agent-' || n, definition, now()
       FROM agents, generate_series(1, 5000) n WHERE tenant_id = $1`,
      [tenantId],
    );
    await client.query('ANALYZE agents');
    const run = jest.spyOn(catalog, 'queryInTenant');
    expect(await slugs(3, 'agent-4')).toEqual(['agent-40', 'agent-400', 'agent-4000']);
    const [, { text }, values] = run.mock.calls[0]!;
    run.mockRestore();
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN ${text}`, [...values]);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    expect(plan).toContain('Index Scan using agents_listed_idx');
    expect(plan).not.toContain('Sort');
  });
});
