import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { RetentionStore } from '../retention/retention.store.js';
import { newTask, type Stores, openStores, sql } from '../stores.fixture.js';
import { TokenUsageStore } from './token-usage.store.js';
import { type UsageFilter, UsageHoursStore, type UsageKey, type UsageReport } from './usage-hours.store.js';

let stores: Stores;
let hours: UsageHoursStore;
beforeAll(async () => {
  stores = await openStores();
  hours = new UsageHoursStore(stores.database);
});
afterAll(() => stores.close());

const FAILED = TaskState.TASK_STATE_FAILED;
const COMPLETED = TaskState.TASK_STATE_COMPLETED;
const EVER = { since: new Date('2020-01-01T00:00:00Z') };

const report = (tenantId: string, by: UsageKey, more: Partial<UsageFilter> = {}, most?: number) =>
  hours.report(by, { tenantId, ...EVER, until: new Date(Date.now() + 60_000), ...more }, most);

/** Rolls up everything that has ended. */
async function rollUp(tenantId: string, limit = 2_000): Promise<number> {
  let total = 0;
  for (let tasks = limit; tasks === limit; total += tasks) tasks = await hours.rollUp(tenantId, 0, limit);
  return total;
}

/** The sums of all keys together. */
const totals = ({ sums }: UsageReport) => {
  const sum = (name: 'tasks' | 'failed' | 'inputTokens' | 'outputTokens') =>
    sums.reduce((all, each) => all + each[name], 0);
  return [sum('tasks'), sum('failed'), sum('inputTokens'), sum('outputTokens')];
};

/** Ended tasks of two agents and two owners over some days, each of which reports 3 input tokens and 1 output token. */
async function fill(tenantId: string, tasks: number): Promise<void> {
  const input = newTask({ tenantId });
  await stores.tasks.create(input);
  await sql(
    stores,
    `INSERT INTO tasks (tenant_id, id, agent_id, owner, context_id, context_key, state, status, status_at, created_at,
       last_sequence, artifacts_sequence, metadata)
     SELECT tenant_id, gen_random_uuid(), CASE WHEN i % 3 = 0 THEN 'other' ELSE 'echo' END, 'token:' || i % 2, context_id,
       context_key, CASE WHEN i % 10 = 0 THEN ${FAILED} ELSE ${COMPLETED} END, status,
       date_trunc('milliseconds', now()) - interval '1 s' - i * interval '20 s',
       date_trunc('milliseconds', now()) - interval '3 s' - i * interval '20 s', 1, 1,
       '{"baton.usage": {"inputTokens": 3, "outputTokens": 1, "model": "openai/m"}}'
     FROM tasks, generate_series(1, ${tasks}) i WHERE id = '${input.task.id}'`,
  );
  await sql(stores, `DELETE FROM tasks WHERE id = '${input.task.id}'`);
}

/** Ended tasks of an agent, the newest first: the n-th has taken n seconds, and has ended n minutes ago. */
async function end(tenantId: string, agentId: string, states: readonly TaskState[]): Promise<void> {
  const input = newTask({ tenantId });
  await stores.tasks.create(input);
  await sql(
    stores,
    `INSERT INTO tasks (tenant_id, id, agent_id, owner, context_id, context_key, state, status, status_at, created_at,
       last_sequence, artifacts_sequence)
     SELECT tenant_id, gen_random_uuid(), '${agentId}', owner, context_id, context_key, s.state, status,
       now() - s.n * interval '1 min', now() - s.n * interval '1 min' - s.n * interval '1 s', 1, 1
     FROM tasks, unnest(ARRAY[${states.join(', ')}]::smallint[]) WITH ORDINALITY AS s(state, n) WHERE id = '${input.task.id}'`,
  );
  await sql(stores, `DELETE FROM tasks WHERE id = '${input.task.id}'`);
}

describe('how long the tasks of agents take', () => {
  const MINUTE_MS = 60_000;
  const times = (tenantId: string, agentIds: readonly string[], minutes: number) =>
    hours.agentTimes({
      tenantId,
      agentIds,
      since: new Date(Date.now() - minutes * MINUTE_MS),
      until: new Date(),
    });

  it('is that of the newest ended tasks, in every state and of each agent alone', async () => {
    const [tenantId, other] = [randomUUID(), randomUUID()];
    await end(tenantId, 'echo', [
      COMPLETED,
      FAILED,
      TaskState.TASK_STATE_CANCELED,
      TaskState.TASK_STATE_REJECTED,
    ]);
    await end(tenantId, 'open', [TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_INPUT_REQUIRED]);
    await end(tenantId, 'late', [COMPLETED]);
    await end(
      other,
      'echo',
      Array.from({ length: 30 }, () => COMPLETED),
    );
    const found = await times(tenantId, ['echo', 'open', 'late', 'none'], 60);
    expect(found.map(({ agentId }) => agentId).sort()).toEqual(['echo', 'late']);
    const echo = found.find(({ agentId }) => agentId === 'echo')!;
    expect(echo.p95Seconds).toBeCloseTo(3.85, 2);
    expect(Math.round((Date.now() - echo.lastEndedAt.getTime()) / MINUTE_MS)).toBe(1);
    expect((await times(tenantId, ['echo'], 2.5))[0]!.p95Seconds).toBeCloseTo(1.95, 2);
  });

  it('reads a hundred tasks of each agent, however many there are', async () => {
    const tenantId = randomUUID();
    await end(
      tenantId,
      'echo',
      Array.from({ length: 1_000 }, (_, n) => (n % 2 === 0 ? COMPLETED : FAILED)),
    );
    const [echo] = await times(tenantId, ['echo'], 100_000);
    expect(echo!.p95Seconds).toBeCloseTo(95.05, 2);
  });
});

describe('the usage of a tenant', () => {
  it('is exact over more than ten thousand tasks: before, during and after the roll-up, and once tasks are deleted', async () => {
    const tenantId = randomUUID();
    await fill(tenantId, 12_000);
    const all = [12_000, 1_200, 36_000, 12_000];
    const days = await report(tenantId, 'day');
    expect([totals(days), days.isWhole]).toEqual([all, true]);
    const byOwner = (await report(tenantId, 'owner')).sums;
    expect(byOwner.map(({ key, model, tasks, seconds }) => [key, model, tasks, seconds])).toEqual([
      ['token:1', 'openai/m', 6_000, 12_000],
      ['token:0', 'openai/m', 6_000, 12_000],
    ]);
    expect(await hours.rollUp(tenantId, 0, 2_000)).toBe(2_000);
    expect((await report(tenantId, 'day')).sums).toEqual(days.sums);
    // Most of those that are deleted are not rolled up.
    const retention = new RetentionStore(stores.database);
    while ((await retention.expire([{ tenantId, days: 1 }], 500)).tasks !== 0);
    expect((await report(tenantId, 'day')).sums).toEqual(days.sums);
    const count = `SELECT count(*)::int AS left FROM tasks WHERE tenant_id = '${tenantId}'`;
    const [{ left }] = (await sql(stores, count)) as [{ left: number }];
    expect(left).toBeLessThan(6_000);
    expect(await rollUp(tenantId)).toBe(left);
    const after = await report(tenantId, 'day');
    expect([after.sums, after.isWhole]).toEqual([days.sums, true]);
    expect((await report(tenantId, 'token')).sums.map(({ key, tasks }) => [key, tasks])).toEqual([
      ['1', 6_000],
      ['0', 6_000],
    ]);
  });

  it('counts each task once under concurrent roll-ups and deletions, and if one dies before its commit', async () => {
    const tenantId = randomUUID();
    await fill(tenantId, 3_000);
    // As a process that dies between adding the tasks and the commit.
    const dying = stores.database.inTenant(tenantId, async ({ query }) => {
      const inside = {
        inTenant: async (_: string, work: (of: { query: typeof query }) => unknown) => work({ query }),
      };
      await new UsageHoursStore(inside as never).rollUp(tenantId, 0, 1_000);
      throw new Error('killed');
    });
    await expect(dying).rejects.toThrow('killed');
    const retention = new RetentionStore(stores.database);
    const works = Array.from({ length: 12 }, async (_, i) => {
      if (i % 2 === 0) await hours.rollUp(tenantId, 0, 300);
      else await retention.expire([{ tenantId, days: 0.2 }], 300);
    });
    await Promise.all(works);
    expect(totals(await report(tenantId, 'day'))).toEqual([3_000, 300, 9_000, 3_000]);
    await rollUp(tenantId);
    expect(totals(await report(tenantId, 'agent'))).toEqual([3_000, 300, 9_000, 3_000]);
  });

  it('has calls of models by run, with what the agent reports only of agents that Baton does not meter', async () => {
    const input = {
      ...newTask({ task: { metadata: { 'baton.usage': { inputTokens: 40, metered: true } } } }),
      owner: 'token:a',
    };
    const { tenantId } = input;
    await stores.tasks.create(input);
    const [run] = await sql(stores, `SELECT id FROM runs WHERE tenant_id = '${tenantId}'`);
    const usage = new TokenUsageStore(stores.database);
    const spent = (model: string, inputTokens: number, cachedInputTokens = 0) => ({
      model,
      inputTokens,
      outputTokens: 2,
      cachedInputTokens,
    });
    const runId = (run as { id: string }).id;
    await usage.record(tenantId, runId, spent('openai/m', 30, 20));
    await usage.record(tenantId, runId, { ...spent('openai/m', 10), cacheWriteTokens: 70 });
    await usage.record(tenantId, runId, spent('anthropic/n', 5));
    const found = await report(tenantId, 'owner');
    expect(found.sums).toMatchObject([
      { key: 'token:a', model: '', tasks: 1, calls: 0, inputTokens: 0 },
      { key: 'token:a', model: 'anthropic/n', tasks: 0, calls: 1, inputTokens: 5, outputTokens: 2 },
      {
        key: 'token:a',
        model: 'openai/m',
        calls: 2,
        inputTokens: 40,
        cachedTokens: 20,
        cacheWriteTokens: 10,
        outputTokens: 4,
      },
    ]);
    // What agents write there may be anything.
    const hostile = [
      { inputTokens: -1, outputTokens: 1.5 },
      'much',
      null,
      ['x'],
      { inputTokens: '9'.repeat(40), model: {} },
    ];
    for (const value of hostile) {
      await stores.tasks.create(newTask({ tenantId, task: { metadata: { 'baton.usage': value } } }));
    }
    for (const text of ['\u0000', '\ud800']) {
      const task = newTask({ tenantId });
      await stores.tasks.create(task);
      const metadata = JSON.stringify({ text, 'baton.usage': { inputTokens: 1 } });
      await sql(stores, `UPDATE tasks SET metadata = '${metadata}' WHERE id = '${task.task.id}'`);
    }
    expect(totals(await report(tenantId, 'agent'))).toEqual([8, 0, 45, 6]);
    await sql(
      stores,
      `UPDATE tasks SET state = ${COMPLETED}, status_at = now() - interval '1 s' WHERE tenant_id = '${tenantId}'`,
    );
    expect(await rollUp(tenantId)).toBe(8);
    expect(totals(await report(tenantId, 'agent'))).toEqual([8, 0, 45, 6]);
    const own = { own: { owner: 'token:b', unowned: false } };
    expect((await report(tenantId, 'owner', own)).sums).toEqual([]);
    expect(totals(await report(tenantId, 'owner', { own: { owner: 'token:a', unowned: false } }))[0]).toBe(1);
    expect((await report(tenantId, 'owner', { agentIds: ['other'] })).sums).toEqual([]);
    expect((await report(tenantId, 'owner', { since: new Date(Date.now() + 3_600_000) })).sums).toEqual([]);
    expect((await report(randomUUID(), 'day')).sums).toEqual([]);
  });

  it('is rolled up whatever the tasks of an hour report together', async () => {
    const tenantId = randomUUID();
    await fill(tenantId, 10_000);
    await sql(
      stores,
      `UPDATE tasks SET metadata = '{"baton.usage": {"inputTokens": 999999999999999, "outputTokens": 999999999999}}', owner = NULL,
         agent_id = 'echo', status_at = date_trunc('hour', now()) - interval '1 min' WHERE tenant_id = '${tenantId}'`,
    );
    expect(await rollUp(tenantId)).toBe(10_000);
    const [tasks, failed, input, output] = totals(await report(tenantId, 'day'));
    expect([tasks, failed, input]).toEqual([10_000, 1_000, 0]);
    expect(output).toBeCloseTo(1e16, -10);
  });

  it('leaves the tasks that have just ended to later, names the tenants that have some, and says if too many wait', async () => {
    const tenantId = randomUUID();
    await sql(
      stores,
      `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', 'usage-${tenantId.slice(0, 8)}')`,
    );
    await fill(tenantId, 30);
    expect(await hours.due(60_000)).toContain(tenantId);
    expect(await hours.rollUp(tenantId, 300_000, 100)).toBe(16);
    expect(await hours.due(300_000)).not.toContain(tenantId);
    expect(await hours.due(0)).toContain(tenantId);
    const some = await report(tenantId, 'day', {}, 4);
    expect([some.isWhole, totals(some)[0]]).toEqual([false, 21]);
    expect(totals(await report(tenantId, 'day'))[0]).toBe(30);
  });
});
