import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import type { AgentDefinition } from '@baton/a2a';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  AgentCatalogStore,
  CatalogClient,
  ScheduleStore,
  SecretStore,
  StorageFullError,
  TenantStore,
  UsageStore,
} from '../index.js';
import { newTask, openStores, sql, type Stores, textMessage } from '../stores.fixture.js';

let stores: Stores;
let catalog: CatalogClient;
let tenants: TenantStore;
let agents: AgentCatalogStore;
let secrets: SecretStore;
let schedules: ScheduleStore;
let usage: UsageStore;
let tenantId: string;
let slug: string;

beforeAll(async () => {
  stores = await openStores();
  catalog = new CatalogClient(stores.url, { poolSize: 8 });
  tenants = new TenantStore(catalog);
  agents = new AgentCatalogStore(catalog);
  secrets = new SecretStore(catalog);
  schedules = new ScheduleStore(stores.database);
  usage = new UsageStore(stores.database);
});
afterAll(async () => {
  await catalog.close();
  await stores.close();
});
beforeEach(async () => {
  slug = `t-${randomUUID()}`;
  tenantId = (await tenants.create(slug, PLATFORM_ACTOR)).id;
});

const allow = (storedBytes: number | null) => tenants.setLimits(slug, { storedBytes }, [], PLATFORM_ACTOR);
const definition = (bytes: number): AgentDefinition => ({
  name: 'a',
  description: 'x'.repeat(bytes),
  version: '1',
  runtime: 'echo',
  config: {},
  skills: [],
  inputModes: [],
  outputModes: [],
  extensions: [],
});
const content = (bytes: number, enabled = true) => ({
  definition: definition(bytes),
  enabled,
  by: 'operator',
});
const makeAgent = async (bytes: number, name = 'mine') => ({
  tenantId,
  ...(await agents.create({ tenantId, slug: name, ...content(bytes) }, PLATFORM_ACTOR)),
});
const setSecret = (bytes: number, name = 'key') =>
  secrets.put(
    { tenantId, name },
    { keyId: 'k', nonce: randomBytes(12), ciphertext: randomBytes(bytes) },
    undefined,
    [],
    PLATFORM_ACTOR,
  );
const spec = (bytes: number, name: string) => ({
  name,
  agent: 'echo',
  message: textMessage('x'.repeat(bytes)),
  cron: '* * * * *',
  at: null,
  ...({ timeZone: 'UTC', overlap: 'skip', missed: 'skip', context: 'new' } as const),
  startsAt: null,
  endsAt: null,
  maxCount: null,
  paused: false,
});
const makeSchedule = (bytes: number, name = 'report') =>
  schedules.create({ tenantId, id: randomUUID(), nextAt: null, ...spec(bytes, name) }, PLATFORM_ACTOR);

const numberOf = async (text: string): Promise<number | null> => {
  const [row] = (await sql(stores, text)) as { n: string | null }[];
  return row?.n == null ? null : Number(row.n);
};
/** What is added up for the tenant besides its tasks; null = nothing is. */
const added = () => numberOf(`SELECT catalog_bytes AS n FROM tenant_usage WHERE tenant_id = '${tenantId}'`);
/** The same, read back row by row. */
const read = () =>
  numberOf(`SELECT
    (SELECT coalesce(sum(octet_length(definition::text)), 0) FROM agent_versions WHERE tenant_id = '${tenantId}') +
    (SELECT coalesce(sum(octet_length(ciphertext) + coalesce(octet_length(origins::text), 0)), 0) FROM secrets WHERE tenant_id = '${tenantId}') +
    (SELECT coalesce(sum(octet_length(message::text)), 0) FROM schedules WHERE tenant_id = '${tenantId}') AS n`);
const isFull = { name: 'LimitReachedError', limit: 'storedBytes' };

/** A write makes the difference; the sum and the rows say the same after it. */
async function expectDifference(write: () => Promise<unknown>, least: number, most = least + 300) {
  const before = (await added()) ?? 0;
  await write();
  const after = (await added())!;
  expect(after).toBe(await read());
  expect(after - before).toBeGreaterThanOrEqual(least);
  expect(after - before).toBeLessThanOrEqual(most);
}

/** Begins changes one after the other while another transaction holds the rows of a table: each waits, or has ended, before the next. */
async function whileLocked(table: string, changes: (() => Promise<unknown>)[]): Promise<unknown[]> {
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  const { begun } = await stores.database.inSystem(async (transaction) => {
    await transaction.query({ text: `SELECT FROM ${table} WHERE tenant_id = $1 FOR UPDATE` }, [tenantId]);
    let ended = 0;
    const running: Promise<unknown>[] = [];
    for (const change of changes) {
      running.push(change().finally(() => (ended += 1)));
      while (ended + (await sql(stores, waiting)).length < running.length);
    }
    return { begun: Promise.all(running) };
  });
  return begun;
}

describe('what a tenant keeps besides its tasks', () => {
  it('counts with the values that agents keep for contexts, when it is counted', async () => {
    await allow(1e9);
    const before = (await added()) ?? 0;
    await sql(
      stores,
      `INSERT INTO context_state (tenant_id, context_key, agent_id, owner, key, value, version, writer)
       VALUES ('${tenantId}', md5('c')::uuid, 'echo', '', 'seat', '"${'x'.repeat(500)}"', 1, md5('w')::uuid)`,
    );
    await sql(stores, `UPDATE tenant_usage SET catalog_bytes = NULL WHERE tenant_id = '${tenantId}'`);
    while (!(await usage.count(tenantId, 0)));
    expect((await added())! - before).toBeGreaterThan(500);
    await sql(stores, `DELETE FROM context_state WHERE tenant_id = '${tenantId}'`);
    await sql(stores, `UPDATE tenant_usage SET catalog_bytes = NULL WHERE tenant_id = '${tenantId}'`);
    while (!(await usage.count(tenantId, 0)));
    expect(await added()).toBe(before);
  });

  it('counts as stored with every version, secret and schedule, and no longer when it is gone', async () => {
    await allow(1e9);
    let agent!: Awaited<ReturnType<typeof makeAgent>>;
    await expectDifference(async () => (agent = await makeAgent(1000)), 1000);
    await expectDifference(() => agents.change(agent, content(2000), PLATFORM_ACTOR), 2000);
    await expectDifference(
      () => agents.eraseVersion({ ...agent, version: 1 }, 'mine', PLATFORM_ACTOR),
      -1300,
      -1000,
    );
    expect(await agents.eraseVersion({ ...agent, version: 1 }, 'mine', PLATFORM_ACTOR)).toBe(false);
    expect(await agents.eraseVersion({ ...agent, version: 2 }, 'mine', PLATFORM_ACTOR)).toBe(false);

    await expectDifference(() => setSecret(100), 100);
    await expectDifference(() => setSecret(50), -50, -50);
    const wide = ['https://example.com', 'https://example.org'];
    await expectDifference(() => secrets.setOrigins({ tenantId, name: 'key' }, wide, PLATFORM_ACTOR), 40);
    await expectDifference(() => secrets.remove({ tenantId, name: 'key' }, PLATFORM_ACTOR), -200, -90);
    expect(await secrets.remove({ tenantId, name: 'key' }, PLATFORM_ACTOR)).toBe(false);

    const schedule = await makeSchedule(300);
    await expectDifference(
      () => schedules.change(schedule, spec(500, 'report'), null, PLATFORM_ACTOR),
      200,
      200,
    );
    expect(await schedules.change(schedule, spec(5000, 'report'), null, PLATFORM_ACTOR)).toBeUndefined();
    await expectDifference(() => schedules.remove(tenantId, schedule.id, PLATFORM_ACTOR), -900, -500);
    expect(await schedules.remove(tenantId, schedule.id, PLATFORM_ACTOR)).toBe(false);

    await agents.remove({ ...agent, version: 2 }, PLATFORM_ACTOR);
    expect(await added()).toBe(await read());
    await sql(stores, `UPDATE agents SET deleted_at = 'epoch' WHERE tenant_id = '${tenantId}'`);
    await expectDifference(() => agents.purge(tenantId), -2500, -2000);
    expect(await added()).toBe(0);
  });

  it('counts a secret once that is set and removed at the same time', async () => {
    await allow(1e9);
    await setSecret(100);
    await whileLocked('secrets', [
      () => setSecret(3000),
      () => secrets.remove({ tenantId, name: 'key' }, PLATFORM_ACTOR),
    ]);
    expect([await added(), await read()]).toEqual([0, 0]);
  });

  it('counts a version once that is erased twice at the same time', async () => {
    await allow(1e9);
    const agent = await makeAgent(1000);
    await agents.change(agent, content(10), PLATFORM_ACTOR);
    const erase = () => agents.eraseVersion({ ...agent, version: 1 }, 'mine', PLATFORM_ACTOR);
    const erased = await whileLocked('agent_versions', [erase, erase]);
    expect(erased.toSorted()).toEqual([false, true]);
    expect(await added()).toBe(await read());
  });

  it('makes room with the versions that are too many', async () => {
    await allow(1e9);
    const agent = await makeAgent(5000);
    const old = `INSERT INTO agent_versions (tenant_id, agent_id, version, definition, enabled, created_by, bytes)
      SELECT tenant_id, agent_id, n, definition, enabled, created_by, bytes FROM agent_versions, generate_series(2, 100) n
      WHERE agent_id = '${agent.id}'`;
    await sql(stores, old);
    await sql(stores, `UPDATE agents SET version = 100 WHERE id = '${agent.id}'`);
    await usage.count(tenantId, -1);
    await expectDifference(
      () => agents.change({ ...agent, version: 100 }, content(10), PLATFORM_ACTOR),
      -5000,
      -4900,
    );
    expect(await agents.versions(tenantId, agent.id, 200)).toHaveLength(100);
  });

  it('is refused where there is no room, and has written nothing', async () => {
    await allow(10_000);
    const agent = await makeAgent(4000);
    await setSecret(100);
    const schedule = await makeSchedule(1000);
    const before = await added();
    const records = `SELECT count(*) AS n FROM audit_records WHERE tenant_id = '${tenantId}'`;
    const recorded = await numberOf(records);
    await expect(makeAgent(5000, 'other')).rejects.toMatchObject({ ...isFull, max: 10_000 });
    await expect(agents.change(agent, content(5000), PLATFORM_ACTOR)).rejects.toMatchObject(isFull);
    await expect(setSecret(6000)).rejects.toMatchObject(isFull);
    await expect(setSecret(6000, 'other')).rejects.toMatchObject(isFull);
    await expect(makeSchedule(6000, 'other')).rejects.toMatchObject(isFull);
    await expect(
      schedules.change(schedule, spec(7000, 'report'), null, PLATFORM_ACTOR),
    ).rejects.toMatchObject(isFull);
    expect([await added(), await read(), await numberOf(records)]).toEqual([before, before, recorded]);
    // What takes no more room than before, or only less, continues.
    await allow(1);
    await setSecret(100);
    await schedules.change(schedule, spec(900, 'report'), null, PLATFORM_ACTOR);
    expect(
      await agents.change(agent, content(4000, false), PLATFORM_ACTOR, { isUnlimited: true }),
    ).toMatchObject({
      version: 2,
    });
    expect(await added()).toBe(await read());
  });

  it('and its tasks have one limit', async () => {
    await allow(20_000);
    await makeAgent(15_000);
    const quota = { maxInFlight: null, maxWaiting: null, maxStoredBytes: 20_000, exact: false };
    const create = (text: string) => stores.tasks.create({ ...newTask({ tenantId, text }), quota });
    await expect(create('x'.repeat(5000))).rejects.toThrow(StorageFullError);
    await create('x'.repeat(2000));
    await expect(setSecret(3000)).rejects.toMatchObject(isFull);
    expect((await usage.report(tenantId)).storedBytes).toBeGreaterThan(17_000);
  });

  it('is never more than the limit under concurrent writes', async () => {
    await allow(10_000);
    const names = Array.from({ length: 8 }, (_, i) => `n${i}`);
    const outcomes = await Promise.allSettled([
      ...names.map((name) => setSecret(1000, name)),
      ...names.map((name) => makeAgent(1000, name)),
      ...names.map((name) => makeSchedule(1000, name)),
    ]);
    const reasons = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
    for (const reason of reasons) expect(reason).toMatchObject(isFull);
    expect(reasons.length).toBeGreaterThanOrEqual(15);
    expect(await added()).toBe(await read());
    expect(await added()).toBeLessThanOrEqual(10_000);
    // The last one that was refused had no room.
    expect(await added()).toBeGreaterThan(8500);
  });

  it('counts from before the limit, and as a process of the last release has written it', async () => {
    await allow(null);
    const agent = await makeAgent(1000);
    await setSecret(500);
    await sql(stores, `UPDATE agent_versions SET bytes = NULL WHERE tenant_id = '${tenantId}'`);
    expect(await added()).toBeNull();
    await allow(2000);
    await expect(makeSchedule(1000)).rejects.toMatchObject(isFull);
    await allow(5000);
    await makeSchedule(1000);
    expect(await added()).toBe(await read());

    // The last release has counted the tasks alone, and writes versions, too.
    await sql(stores, `UPDATE tenant_usage SET catalog_bytes = NULL WHERE tenant_id = '${tenantId}'`);
    await sql(
      stores,
      `INSERT INTO agent_versions (tenant_id, agent_id, version, definition, enabled, created_by)
       SELECT tenant_id, id, 2, definition, true, 'operator' FROM agents WHERE id = '${agent.id}'`,
    );
    expect(await usage.due([{ tenantId, seconds: 600 }])).toEqual([tenantId]);
    while (!(await usage.count(tenantId, 600)));
    expect(await usage.due([{ tenantId, seconds: 600 }])).toEqual([]);
    expect(await added()).toBe(await read());
    await sql(stores, `UPDATE tenant_usage SET catalog_bytes = NULL WHERE tenant_id = '${tenantId}'`);
    await expect(setSecret(3000)).rejects.toMatchObject(isFull);
  });

  it('is put right by a count, while it is being written', async () => {
    await allow(1e9);
    await makeAgent(100);
    await sql(stores, `UPDATE tenant_usage SET catalog_bytes = 12345 WHERE tenant_id = '${tenantId}'`);
    const names = Array.from({ length: 6 }, (_, i) => `n${i}`);
    await Promise.all([
      ...names.map((name) => setSecret(100, name)),
      ...names.map((name) => makeAgent(100, name)),
      ...names.map((name) => makeSchedule(100, name)),
      ...[1, 2, 3].map(() => usage.count(tenantId, -1)),
    ]);
    expect(await added()).toBe(await read());
  });
});
