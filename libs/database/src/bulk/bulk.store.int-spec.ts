import { OPERATOR_ACTOR } from '../audit/audit-records.js';
import { TenantStore } from '../tenants/tenant.store.js';
import { CatalogClient } from '../connection/catalog-client.js';
import { openStores, sql, type Stores } from '../stores.fixture.js';
import type { BulkProgress, ClaimedBulk } from './bulk-records.js';
import { BulkStore, MAX_RUNNING } from './bulk.store.js';

const LEASE_MS = 3_600_000;

let stores: Stores;
let catalog: CatalogClient;
let bulk: BulkStore;
let tenantId: string;
let made = 0;
beforeAll(async () => {
  stores = await openStores();
  catalog = new CatalogClient(stores.url);
  bulk = new BulkStore(catalog, stores.database);
});
afterAll(async () => {
  await catalog.close();
  await stores.close();
});
beforeEach(async () => {
  await sql(stores, 'DELETE FROM bulk_operations');
  tenantId = await newTenant();
});

const newTenant = async (): Promise<string> =>
  (await new TenantStore(catalog).create(`bulk-${(made += 1)}`, OPERATOR_ACTOR)).id;

/** @returns its id */
async function begin(of = tenantId): Promise<string> {
  const caller = { principal: { kind: 'token', key: 'token:1' }, scopes: ['admin'] } as const;
  const filter = { error: 'locked' };
  const begun = await bulk.create({ tenantId: of, action: 'cancel', filter, caller, actor: OPERATOR_ACTOR });
  if (!begun) throw new Error('refused');
  return begun.id;
}

async function claimOne(): Promise<ClaimedBulk> {
  const [claimed] = await bulk.claimDue(1, LEASE_MS);
  if (!claimed) throw new Error('nothing is due');
  return claimed;
}

const claimedIds = async (): Promise<string[]> => (await bulk.claimDue(10, LEASE_MS)).map(({ id }) => id);

/** As if the lease of its worker had ended. */
const expire = (id: string) =>
  sql(stores, `UPDATE bulk_operations SET due_at = now() - interval '1 second' WHERE id = '${id}'`);

const progressOf = (operation: ClaimedBulk, changes: Partial<BulkProgress> = {}): BulkProgress => ({
  ...operation,
  ...changes,
});

describe('the operations on many tasks', () => {
  it('are claimed one at a time of each tenant, the oldest first, while others wait for its end', async () => {
    const other = await newTenant();
    const [first, second, third] = [await begin(), await begin(), await begin(other)];
    expect((await claimedIds()).sort()).toEqual([first, third].sort());
    expect(await claimedIds()).toEqual([]);
    await expire(first);
    const again = await claimOne();
    expect([again.id, again.claim]).toEqual([first, 2]);
    expect(await bulk.save(again, progressOf(again), { dueInMs: 0, isOver: true })).toBe('done');
    expect(await claimedIds()).toEqual([second]);
  });

  it('keep what was saved, and continue when it is due', async () => {
    const id = await begin();
    const claimed = await claimOne();
    const cursor = { state: 1, after: { statusAt: '2026-01-01T00:00:00.000Z', taskId: id } };
    const saved = {
      cursor,
      isListed: true,
      pending: [id],
      found: 7,
      done: 3,
      skipped: 2,
      failed: 1,
      failures: [{ taskId: id, reason: 'too large' }],
      waitsFor: 'no room',
    };
    const next = { dueInMs: LEASE_MS, isOver: false };
    expect(await bulk.save(claimed, progressOf(claimed, saved), next)).toBe('running');
    expect(await bulk.find(tenantId, id)).toMatchObject({ ...saved, state: 'running', finishedAt: null });
    expect(await claimedIds()).toEqual([]);
    // Times are stored to the millisecond: this moment may be rounded up.
    expect(await bulk.save(claimed, progressOf(claimed, saved), { ...next, dueInMs: -1 })).toBe('running');
    expect(await claimOne()).toMatchObject({ ...saved, id, claim: 2 });
  });

  it('take nothing from a worker whose claim another one has', async () => {
    const id = await begin();
    const late = await claimOne();
    await expire(id);
    const now = await claimOne();
    expect(
      await bulk.save(late, progressOf(late, { done: 9 }), { dueInMs: 0, isOver: true }),
    ).toBeUndefined();
    expect(await bulk.find(tenantId, id)).toMatchObject({ state: 'running', done: 0 });
    expect(await bulk.save(now, progressOf(now, { done: 1 }), { dueInMs: 0, isOver: true })).toBe('done');
    const ended = await bulk.find(tenantId, id);
    expect(ended).toMatchObject({ state: 'done', done: 1, finishedAt: expect.any(Date) });
    expect(await claimedIds()).toEqual([]);
  });

  it('stay canceled, and count what their worker has finished', async () => {
    const id = await begin();
    const claimed = await claimOne();
    expect(await bulk.cancel(tenantId, id, OPERATOR_ACTOR)).toMatchObject({ id, state: 'canceled' });
    expect(await bulk.cancel(tenantId, id, OPERATOR_ACTOR)).toBeUndefined();
    const { finishedAt } = (await bulk.find(tenantId, id))!;
    for (const isOver of [false, true]) {
      const state = await bulk.save(claimed, progressOf(claimed, { done: 4 }), { dueInMs: 0, isOver });
      expect(state).toBe('canceled');
      expect(await claimedIds()).toEqual([]);
    }
    expect(await bulk.find(tenantId, id)).toMatchObject({ state: 'canceled', done: 4, finishedAt });
  });

  it('are refused when as many of the tenant run as may, and listed with the newest first', async () => {
    const ids: string[] = [];
    for (let i = 0; i < MAX_RUNNING; i += 1) ids.push(await begin());
    await expect(begin()).rejects.toThrow('refused');
    await begin(await newTenant());
    await bulk.cancel(tenantId, ids[0]!, OPERATOR_ACTOR);
    ids.push(await begin());
    const newest = await bulk.list(tenantId, { limit: 2 });
    expect(newest.map(({ id }) => id)).toEqual(ids.slice(-2).reverse());
    const rest = await bulk.list(tenantId, { limit: 100, after: newest[1]!.id });
    expect(rest.map(({ id }) => id)).toEqual(ids.slice(0, -2).reverse());
    expect(await bulk.find(await newTenant(), ids[0]!)).toBeUndefined();
  });
});
