import { randomUUID } from 'node:crypto';
import {
  type CapKind,
  type CapPeriod,
  CatalogClient,
  PLATFORM_ACTOR,
  SpendingCapStore,
  SpendingChargeStore,
  SpendingWarningStore,
  TenantStore,
  TokenUsageStore,
  UsageHoursStore,
} from '../index.js';
import { type Stores, openStores, sql } from '../stores.fixture.js';

let stores: Stores;
let usage: TokenUsageStore;
let catalog: CatalogClient;
let caps: SpendingCapStore;
beforeAll(async () => {
  stores = await openStores();
  usage = new TokenUsageStore(stores.database);
  catalog = new CatalogClient(stores.url);
  caps = new SpendingCapStore(catalog, stores.database);
});
afterAll(async () => {
  await catalog.close();
  await stores.close();
});

const spent = { model: 'openai/m', inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };

/** A tenant of its own, with runs of tasks. */
async function tenant() {
  const { id: tenantId } = await new TenantStore(catalog).create(`t-${randomUUID()}`, PLATFORM_ACTOR);
  const set = (kind: CapKind, subject: string, micros: number, period: CapPeriod = 'day') =>
    caps.set({
      tenantId,
      kind,
      subject,
      name: subject,
      period,
      micros,
      onLimit: 'fail',
      setBy: 'tenant',
      by: PLATFORM_ACTOR,
    });
  const reserve = async (micros: number, runId: string = randomUUID(), forMs = 60_000) => {
    const refused = await usage.reserve({
      tenantId,
      runId,
      id: runId,
      replaces: [],
      tokens: 1,
      forMs,
      max: null,
      micros,
    });
    return refused ? refused.caps.map(({ kind }) => kind).toSorted() : 'reserved';
  };
  const spend = async (micros: number, runId: string = randomUUID()) => {
    const answer = await reserve(micros, runId);
    await usage.record(tenantId, runId, spent, runId, micros);
    return answer;
  };
  const used = async () =>
    Object.fromEntries(
      (await caps.list(tenantId)).map(({ kind, subject, period, usedMicros }) => [
        `${kind} ${subject} ${period}`,
        usedMicros,
      ]),
    );
  /** A run of a task. */
  const run = async (of: { agent?: string; owner?: string; parent?: string; schedule?: string } = {}) => {
    const [task, id] = [randomUUID(), randomUUID()];
    const metadata =
      of.schedule === undefined ? 'NULL' : `'${JSON.stringify({ 'baton.schedule': { id: of.schedule } })}'`;
    await sql(
      stores,
      `INSERT INTO tasks (tenant_id, id, agent_id, owner, context_id, context_key, state, status, status_at, metadata, last_sequence,
        artifacts_sequence, parent_task_id)
       VALUES ('${tenantId}', '${task}', '${of.agent ?? 'echo'}', '${of.owner ?? 'user:ann'}', 'c', md5('c')::uuid, 2, '{}', now(), ${metadata}, 1, 1,
        ${of.parent === undefined ? 'NULL' : `'${of.parent}'`})`,
    );
    await sql(
      stores,
      `INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, extensions, waits_for)
       VALUES ('${tenantId}', '${id}', '${task}', 'running', 1, '{}', '{}')`,
    );
    return { task, id };
  };
  return { tenantId, set, reserve, spend, used, run };
}

/** What the agents of a tenant cost, as the usage has it. */
async function usageOf(tenantId: string) {
  const period = { since: new Date(0), until: new Date(Date.now() + 60_000) };
  const { sums } = await new UsageHoursStore(stores.database).report('agent', { tenantId, ...period });
  const costs = new Map<string, number>();
  for (const { key, agentMicros } of sums) costs.set(key, (costs.get(key) ?? 0) + agentMicros);
  return [...costs].map(([key, agentMicros]) => ({ key, agentMicros }));
}

describe('a spending cap', () => {
  it('lets exactly those calls pass at once that fit into it', async () => {
    const { set, reserve } = await tenant();
    await set('tenant', '', 100);
    const got = await Promise.all(Array.from({ length: 20 }, () => reserve(9)));
    expect(got.filter((each) => each === 'reserved')).toHaveLength(11);
    expect(got).toContainEqual(['tenant']);
    expect(await reserve(1)).toBe('reserved');
  });

  it('counts a call as it was spent, in place of what was reserved for it', async () => {
    const { tenantId, set, reserve, used } = await tenant();
    await set('tenant', '', 100, 'month');
    const run = randomUUID();
    expect(await reserve(90, run)).toBe('reserved');
    expect(await reserve(11)).toEqual(['tenant']);
    await usage.record(tenantId, run, spent, run, 30);
    expect(await used()).toEqual({ 'tenant  month': 30 });
    expect(await reserve(71)).toEqual(['tenant']);
    expect(await reserve(70)).toBe('reserved');
  });

  it('has room again for what a dead worker has reserved, and the next attempt reserves no second time', async () => {
    const { tenantId, set, reserve, used } = await tenant();
    await set('tenant', '', 100);
    const run = randomUUID();
    expect(await reserve(60, run)).toBe('reserved');
    expect(await reserve(60, run)).toBe('reserved');
    expect(await reserve(60)).toEqual(['tenant']);
    await sql(
      stores,
      `UPDATE token_reservations SET expires_at = now() - interval '1 s' WHERE tenant_id = '${tenantId}'`,
    );
    expect(await reserve(60)).toBe('reserved');
    expect(await used()).toEqual({ 'tenant  day': 0 });
  });

  it('reserves each of the calls that a run makes at a time, and gives all back to the next attempt', async () => {
    const { tenantId, set, used } = await tenant();
    await set('tenant', '', 100);
    const runId = randomUUID();
    const ids = Array.from({ length: 20 }, () => randomUUID());
    const reserve = async (id: string, micros: number, replaces: string[] = []) => {
      const call = { tenantId, runId, id, replaces, tokens: 1, forMs: 60_000, max: null, micros };
      return (await usage.reserve(call)) === undefined;
    };
    const got = await Promise.all(ids.map((id) => reserve(id, 9)));
    expect(got.filter(Boolean)).toHaveLength(11);
    const [first] = ids.filter((_, i) => got[i]);
    await usage.record(tenantId, runId, spent, first, 9);
    expect(await reserve(randomUUID(), 9)).toBe(false);
    expect(await reserve(randomUUID(), 91, ids)).toBe(true);
    expect(await used()).toEqual({ 'tenant  day': 9 });
  });

  it('counts the calls of all tasks of a tree, and those of each agent and caller for itself', async () => {
    const { set, spend, used, run } = await tenant();
    await set('task', '*', 100, 'life');
    await set('agent', 'child', 1000, 'week');
    await set('agent', '*', 1000);
    await set('caller', 'user:ann', 1000);
    await set('caller', 'user:bob', 1000);
    const root = await run({ agent: 'parent' });
    const child = await run({ agent: 'child', parent: root.task });
    const grandchild = await run({ agent: 'child', parent: child.task });
    await spend(30, root.id);
    await spend(30, child.id);
    await spend(30, grandchild.id);
    expect(await used()).toEqual({
      'task * life': 90,
      'agent child week': 60,
      'agent * day': 60,
      'caller user:ann day': 90,
      'caller user:bob day': 0,
    });
    expect(await spend(11, child.id)).toEqual(['task']);
    const other = await run({ agent: 'child' });
    expect(await spend(100, other.id)).toBe('reserved');
  });

  it('of a token or a schedule counts the calls of its tasks and their children', async () => {
    const { set, reserve, run } = await tenant();
    await set('token', 'k-1', 10);
    await set('schedule', 's-1', 20);
    const byToken = await run({ owner: 'token:k-1' });
    const ofSchedule = await run({ schedule: 's-1' });
    const child = await run({ parent: ofSchedule.task });
    expect(await reserve(11, byToken.id)).toEqual(['token']);
    expect(await reserve(10, byToken.id)).toBe('reserved');
    expect(await reserve(15, ofSchedule.id)).toBe('reserved');
    expect(await reserve(6, child.id)).toEqual(['schedule']);
    expect(await reserve(5, child.id)).toBe('reserved');
    expect(await reserve(1000, (await run({ owner: 'token:k-2', schedule: 's-2' })).id)).toBe('reserved');
  });

  it('begins anew with its period, and never for the life of a task', async () => {
    const { tenantId, set, reserve, spend, run } = await tenant();
    await set('tenant', '', 50, 'week');
    await set('task', '*', 60, 'life');
    const { id } = await run();
    await spend(50, id);
    expect(await reserve(11, id)).toEqual(['task', 'tenant']);
    await sql(
      stores,
      `UPDATE spending_counts SET period_start = period_start - 7 WHERE tenant_id = '${tenantId}' AND period_start > '1970-01-01'`,
    );
    expect(await reserve(11, id)).toEqual(['task']);
    expect(await reserve(10, id)).toBe('reserved');
  });

  it('is warned about once in a period, when 80 % are used, until all webhooks are notified', async () => {
    const { tenantId, set, spend } = await tenant();
    const warnings = new SpendingWarningStore(stores.database);
    const claim = async () => (await warnings.claim(20)).filter((each) => each.tenantId === tenantId);
    const dueAgain = () =>
      sql(
        stores,
        `UPDATE spending_counts SET notice_at = now() - interval '1 second' WHERE tenant_id = '${tenantId}' AND notice_at IS NOT NULL`,
      );
    await set('tenant', '', 100);
    await spend(79);
    expect(await claim()).toEqual([]);
    await Promise.all([spend(1), spend(1), spend(1)]);
    const [warning] = await claim();
    expect(warning).toMatchObject({
      usedBy: '',
      usedMicros: 82,
      notified: [],
      cap: { kind: 'tenant', micros: 100 },
    });
    // Another worker does not take it as well. If the first one dies, it is due again.
    expect(await claim()).toEqual([]);
    await dueAgain();
    expect(await claim()).toHaveLength(1);
    const hook = randomUUID();
    await warnings.note(warning!, [hook], false);
    await dueAgain();
    expect(await claim()).toMatchObject([{ notified: [hook] }]);
    await warnings.note(warning!, [hook], true);
    await spend(10);
    await dueAgain();
    expect(await claim()).toEqual([]);
    await sql(
      stores,
      `UPDATE spending_counts SET period_start = period_start - 1 WHERE tenant_id = '${tenantId}'`,
    );
    await spend(95);
    expect(await claim()).toMatchObject([{ usedMicros: 95 }]);
  });

  it('lets the task tree go on by what a person has approved, once for each answer, and no other task', async () => {
    const { tenantId, set, reserve, spend, used, run } = await tenant();
    await set('agent', '*', 50);
    const root = await run({ agent: 'helper' });
    const child = await run({ agent: 'helper', parent: root.task });
    const other = await run({ agent: 'helper' });
    await spend(50, root.id);
    const capId = (await caps.list(tenantId))[0]!.id;
    const allow = (runId: string, micros: number, answer: string) =>
      usage.allow({ tenantId, runId, capId, subject: 'helper', micros, answer });
    await Promise.all([allow(root.id, 30, 'a'), allow(root.id, 30, 'a'), allow(child.id, 30, 'a')]);
    expect(await reserve(31, child.id)).toEqual(['agent']);
    expect(await reserve(20, child.id)).toBe('reserved');
    expect(await reserve(11, root.id)).toEqual(['agent']);
    await usage.record(tenantId, child.id, spent, child.id, 20);
    expect(await reserve(1, other.id)).toEqual(['agent']);
    expect(await reserve(11, root.id)).toEqual(['agent']);
    expect(await spend(10, root.id)).toBe('reserved');
    expect(await reserve(1, root.id)).toEqual(['agent']);
    // What was approved is not used of the cap.
    expect(await used()).toEqual({ 'agent * day': 50 });
    expect((await caps.list(tenantId))[0]?.allowedMicros).toBe(30);
    await allow(root.id, 5, 'b');
    expect(await reserve(5, root.id)).toBe('reserved');
    await caps.remove(tenantId, capId, 'tenant', PLATFORM_ACTOR);
    await allow(root.id, 5, 'c');
    expect(await reserve(500, root.id)).toBe('reserved');
  });

  it('lets a task tree spend what a person has approved in that period alone', async () => {
    const { tenantId, set, reserve, spend, used, run } = await tenant();
    await set('agent', '*', 50);
    const { id } = await run({ agent: 'helper' });
    await spend(50, id);
    const capId = (await caps.list(tenantId))[0]!.id;
    await usage.allow({ tenantId, runId: id, capId, subject: 'helper', micros: 30, answer: 'a' });
    for (const table of ['spending_counts', 'spending_allowances'])
      await sql(
        stores,
        `UPDATE ${table} SET period_start = period_start - 1 WHERE tenant_id = '${tenantId}'`,
      );
    expect(await spend(50, id)).toBe('reserved');
    expect(await used()).toEqual({ 'agent * day': 50 });
    expect(await reserve(1, id)).toEqual(['agent']);
    expect((await caps.list(tenantId))[0]?.allowedMicros).toBe(0);
  });

  it('leaves what a person has approved when the price of a task does not fit into it', async () => {
    const { tenantId, set, reserve, spend, run } = await tenant();
    await set('agent', '*', 50);
    const { task: taskId, id: runId } = await run({ agent: 'remote' });
    await spend(50, runId);
    const capId = (await caps.list(tenantId))[0]!.id;
    await usage.allow({ tenantId, runId, capId, subject: 'remote', micros: 30, answer: 'a' });
    const price = {
      tenantId,
      taskId,
      runId,
      kind: 'task',
      micros: 31,
      usageMicros: 31,
      isCapped: true,
    } as const;
    expect(await new SpendingChargeStore(stores.database).charge(price)).toHaveLength(1);
    expect(await reserve(30, runId)).toBe('reserved');
  });

  it('counts the price of a task once, and of what its agent reports what is new', async () => {
    const { tenantId, set, used, run } = await tenant();
    const charges = new SpendingChargeStore(stores.database);
    await set('agent', '*', 100);
    const { task: taskId, id: runId } = await run({ agent: 'remote' });
    const charge = async (kind: 'task' | 'reported', micros: number, of = { taskId, runId }) =>
      (await charges.charge({ tenantId, ...of, kind, micros, usageMicros: micros, isCapped: true })).map(
        ({ kind: full }) => full,
      );
    expect(await Promise.all([charge('task', 60), charge('task', 60)])).toEqual([[], []]);
    expect(await used()).toEqual({ 'agent * day': 60 });
    expect(await charge('reported', 10)).toEqual([]);
    expect(await charge('reported', 10)).toEqual([]);
    expect(await charge('reported', 25)).toEqual([]);
    expect(await used()).toEqual({ 'agent * day': 85 });
    const next = await run({ agent: 'remote' });
    const of = { taskId: next.task, runId: next.id };
    expect(await charge('task', 60, of)).toEqual(['agent']);
    expect(await charge('task', 15, of)).toEqual([]);
    // What was spent is counted also beyond the cap.
    expect(await charge('reported', 50, of)).toEqual([]);
    // The attempt after one that was charged continues.
    expect(await charge('task', 15, of)).toEqual([]);
    expect(await used()).toEqual({ 'agent * day': 150 });
    // What a cap has refused is not in the usage.
    expect(await usageOf(tenantId)).toEqual([{ key: 'remote', agentMicros: 60 + 25 + 15 + 50 }]);
  });

  it('is not needed to have the cost of a task in the usage, once', async () => {
    const { tenantId, run } = await tenant();
    const charges = new SpendingChargeStore(stores.database);
    const { task: taskId, id: runId } = await run({ agent: 'remote' });
    const charge = (kind: 'task' | 'reported', micros: number) =>
      charges.charge({ tenantId, taskId, runId, kind, micros, usageMicros: micros, isCapped: false });
    const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
    const { charged } = await stores.database.inSystem(async (transaction) => {
      await transaction.query({ text: 'SELECT FROM tasks WHERE id = $1 FOR UPDATE' }, [taskId]);
      const charged = Promise.all([charge('task', 60), charge('task', 60), charge('reported', 10)]);
      while ((await sql(stores, blocked)).length < 3);
      return { charged };
    });
    await charged;
    await charge('reported', 25);
    await charge('reported', 20);
    expect(await usageOf(tenantId)).toEqual([{ key: 'remote', agentMicros: 85 }]);
    expect(await sql(stores, `SELECT FROM spending_charges WHERE tenant_id = '${tenantId}'`)).toEqual([]);
  });

  it('lets free calls pass also when it is exceeded, and counts on when its amount is changed', async () => {
    const { tenantId, set, reserve, spend } = await tenant();
    await set('tenant', '', 50);
    await spend(70);
    expect(await reserve(1)).toEqual(['tenant']);
    expect(await reserve(0)).toBe('reserved');
    await set('tenant', '', 80);
    expect(await reserve(11)).toEqual(['tenant']);
    expect(await reserve(10)).toBe('reserved');
    const [cap] = await caps.list(tenantId);
    expect(await caps.remove(tenantId, cap?.id ?? '', 'operator', PLATFORM_ACTOR)).toBe(false);
    expect(await caps.remove(tenantId, cap?.id ?? '', 'tenant', PLATFORM_ACTOR)).toBe(true);
    expect(await reserve(1000)).toBe('reserved');
  });

  it('belongs to one tenant', async () => {
    const [a, b] = [await tenant(), await tenant()];
    await a.set('tenant', '', 10);
    expect(await b.reserve(11)).toBe('reserved');
    expect(await caps.list(b.tenantId)).toEqual([]);
    const [cap] = await caps.list(a.tenantId);
    expect(await caps.remove(b.tenantId, cap?.id ?? '', 'tenant', PLATFORM_ACTOR)).toBe(false);
  });
});
