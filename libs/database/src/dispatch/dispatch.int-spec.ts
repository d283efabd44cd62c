import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { type RunQuota, TooManyWaitingError } from '../index.js';
import {
  countByState,
  crashText,
  endTurn,
  newTask,
  openStores,
  sql,
  startTask,
  type Stores,
  textMessage,
} from '../stores.fixture.js';
import { LOCK_TENANTS } from './dispatch.store.js';

const ROOMY = 1_000;
const NOWHERE: RunQuota = { maxInFlight: 0, maxWaiting: null, exact: false };

let stores: Stores;
beforeEach(async () => {
  stores = await openStores(16);
});
afterEach(async () => stores.close());

/** New tasks one after another; their runs, oldest first. */
async function accept(tenantId: string, count: number, quota: RunQuota = NOWHERE): Promise<string[]> {
  const runs: string[] = [];
  for (let i = 0; i < count; i++) {
    const input = { ...newTask({ tenantId }), quota };
    await stores.tasks.create(input);
    runs.push(input.runId);
  }
  return runs;
}

const grant = (tenantId: string, slots: number, maxInFlight: number | null = null) => ({
  tenantId,
  slots,
  maxInFlight,
});
const idsOf = (runs: { runId: string }[]): string[] => runs.map(({ runId }) => runId);
const stateOf = (state: string) => countByState(stores).then((counts) => counts[state]);

describe('a new run', () => {
  it('is dispatched while fewer of its tenant are in flight than may be, and then waits', async () => {
    const tenantId = randomUUID();
    const quota = { maxInFlight: 2, maxWaiting: null, exact: false };
    const made = [];
    for (let i = 0; i < 3; i++) made.push(await stores.tasks.create({ ...newTask({ tenantId }), quota }));
    expect(made.map(({ dispatched }) => dispatched)).toEqual([true, true, false]);
    expect(await stores.tasks.create({ ...newTask(), quota })).toMatchObject({ dispatched: true });
    expect(await countByState(stores)).toEqual({ waiting: 1, queued: 3, running: 0, suspended: 0 });
  });

  it('may use a reserved slot if its tenant has no other in flight', async () => {
    const tenantId = randomUUID();
    const mayUse = async (quota?: RunQuota) =>
      (await stores.tasks.create({ ...newTask({ tenantId }), ...(quota && { quota }) })).mayUseReserved;
    expect(await mayUse(NOWHERE)).toBe(false);
    expect(await stores.dispatch.dispatch([grant(tenantId, 1)], ROOMY)).toMatchObject([
      { mayUseReserved: true },
    ]);
    expect([await mayUse(), await mayUse({ ...NOWHERE, maxInFlight: 5 })]).toEqual([false, false]);
    await sql(stores, `UPDATE runs SET state = 'succeeded' WHERE tenant_id = '${tenantId}'`);
    // Those of one moment share a statement.
    const some = await Promise.all([mayUse(), mayUse(), mayUse()]);
    expect(some.filter(Boolean)).toHaveLength(1);
  });

  it('may use a reserved slot while few of its tenant are in flight', async () => {
    const tenantId = randomUUID();
    const quota = { maxInFlight: 4, maxWaiting: null, reserveUpTo: 2, exact: false };
    const mayUse = async () =>
      (await stores.tasks.create({ ...newTask({ tenantId }), quota })).mayUseReserved;
    expect([await mayUse(), await mayUse(), await mayUse()]).toEqual([true, true, false]);
    await sql(stores, `UPDATE runs SET state = 'succeeded' WHERE tenant_id = '${tenantId}'`);
    // Those of one moment share a statement.
    const some = await Promise.all([mayUse(), mayUse(), mayUse()]);
    expect(some.filter(Boolean)).toHaveLength(2);
  });

  it('waits behind those of its tenant that wait, even if there is a quota', async () => {
    const tenantId = randomUUID();
    await accept(tenantId, 1);
    expect(await stores.tasks.create(newTask({ tenantId }))).toMatchObject({ dispatched: false });
    expect(await stores.tasks.create(newTask())).toMatchObject({ dispatched: true });
  });

  it('that waits is not claimed and is not stale', async () => {
    const tenantId = randomUUID();
    const [runId] = await accept(tenantId, 1);
    expect(await stores.runs.claim(tenantId, runId!, 'w', 1000)).toBeUndefined();
    expect(await stores.runs.takeStaleQueued(0, 10)).toEqual([]);
  });

  it('of a continued task waits just the same', async () => {
    const run = await startTask(stores);
    await endTurn(stores, run, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
    const { tenantId, agentId, taskId } = run;
    await accept(tenantId, 1);
    const runId = randomUUID();
    const turn = { tenantId, agentId, taskId, runId, message: textMessage('more'), extensions: [] };
    expect(await stores.tasks.continue(turn)).toMatchObject({ ok: true, dispatched: false });
    expect(await stateOf('waiting')).toBe(2);
  });

  it('leaves nothing behind when it is refused', async () => {
    const tenantId = randomUUID();
    const quota = { maxInFlight: 1, maxWaiting: 1, exact: true };
    const run = await startTask(stores, newTask({ tenantId }));
    await endTurn(stores, run, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
    await accept(tenantId, 2, quota);
    const before = await sql(stores, 'SELECT id, status, last_sequence FROM tasks ORDER BY id');
    const key = { hash: Buffer.alloc(32, 1), content: null, hours: 1 };
    const alias = { profile: 'society', clientId: 'mine' };
    const message = textMessage('more');
    const { agentId, taskId } = run;
    const turn = { tenantId, agentId, taskId, runId: randomUUID(), message, extensions: [], quota };
    for (const attempt of [
      () => stores.tasks.create({ ...newTask({ tenantId }), quota }),
      () => stores.tasks.create({ ...newTask({ tenantId }), quota, key }),
      () => stores.tasks.create({ ...newTask({ tenantId }), quota, alias }),
      () => stores.tasks.create({ ...newTask({ tenantId }), quota, alias, key }),
      () => stores.tasks.continue(turn),
      () => stores.tasks.continue({ ...turn, key }),
    ]) {
      await expect(attempt()).rejects.toThrow(TooManyWaitingError);
    }
    expect(await sql(stores, 'SELECT id, status, last_sequence FROM tasks ORDER BY id')).toEqual(before);
    expect(await sql(stores, 'SELECT 1 FROM message_keys UNION ALL SELECT 1 FROM task_aliases')).toEqual([]);
    expect(await countByState(stores)).toEqual({ waiting: 1, queued: 1, running: 0, suspended: 0 });
  });

  it('joins the turn that its message has made before, however many wait', async () => {
    const quota = { maxInFlight: 1, maxWaiting: 1, exact: true };
    const key = { hash: Buffer.alloc(32, 1), content: null, hours: 1 };
    const first = newTask();
    const { tenantId } = first;
    await stores.tasks.create({ ...first, quota, key });
    await accept(tenantId, 1, quota);
    const again = await stores.tasks.create({ ...newTask({ tenantId }), quota, key });
    expect(again).toEqual({
      created: false,
      dispatched: false,
      claimed: undefined,
      mayUseReserved: false,
      taskId: first.task.id,
      content: null,
    });
  });
});

it('counts the runs of all tenants by state with the age of the oldest, and names those that have the most', async () => {
  const [busy, calm, quiet] = [randomUUID(), randomUUID(), randomUUID()];
  await sql(
    stores,
    `INSERT INTO tenants (id, slug) VALUES ('${busy}', 'busy'), ('${calm}', 'calm'), ('${quiet}', 'quiet')`,
  );
  await accept(busy, 3);
  await accept(busy, 1, { ...NOWHERE, maxInFlight: null });
  await accept(calm, 2);
  await accept(quiet, 1);
  await sql(stores, `UPDATE runs SET created_at = now() - interval '1 hour' WHERE tenant_id = '${quiet}'`);
  const { states, tenants } = await stores.runs.countActive(2);
  expect(states).toMatchObject({ waiting: { runs: 7 }, suspended: { runs: 0, oldestSeconds: 0 } });
  expect(states.waiting?.oldestSeconds).toBeGreaterThanOrEqual(3_600);
  expect(tenants).toHaveLength(2);
  expect(tenants).toEqual(
    expect.arrayContaining([
      { tenant: 'busy', state: 'waiting', runs: 4 },
      { tenant: 'calm', state: 'waiting', runs: 2 },
    ]),
  );
});

describe('limits of a tenant', () => {
  it('hold exactly however many calls come at once', async () => {
    const tenantId = randomUUID();
    const quota = { maxInFlight: 4, maxWaiting: 7, exact: true };
    const calls = Array.from({ length: 50 }, () => stores.tasks.create({ ...newTask({ tenantId }), quota }));
    const results = await Promise.allSettled(calls);
    const made = results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    expect(made.filter(({ dispatched }) => dispatched)).toHaveLength(4);
    expect(made).toHaveLength(4 + 7);
    expect(await countByState(stores)).toEqual({ waiting: 7, queued: 4, running: 0, suspended: 0 });
  });

  it('hold for a refill that begins before another has committed', async () => {
    const tenantId = randomUUID();
    const [first] = await accept(tenantId, 3);
    const other = new Client({ connectionString: stores.url });
    await other.connect();
    try {
      await other.query(`BEGIN; SET LOCAL baton.tenant = 'system'`);
      await other.query(LOCK_TENANTS.text, [[tenantId]]);
      await other.query('UPDATE runs SET enqueued_at = now() WHERE id = $1', [first]);
      const refill = stores.dispatch.dispatch([grant(tenantId, 1, 1)], ROOMY);
      const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
      const over = refill.then(() => true);
      while (!(await Promise.race([over, sql(stores, waits).then((rows) => rows.length > 0)])));
      await other.query('COMMIT');
      expect(await refill).toEqual([]);
    } finally {
      await other.end();
    }
  });

  it('hold while runs are dispatched, end and come anew at once', async () => {
    const tenantId = randomUUID();
    const quota = { maxInFlight: 3, maxWaiting: null, exact: true };
    let most = 0;
    const work = async (): Promise<void> => {
      for (let i = 0; i < 10; i++) {
        const input = { ...newTask({ tenantId }), quota };
        await stores.tasks.create(input);
        const dispatched = await stores.dispatch.dispatch([grant(tenantId, 5, 3)], ROOMY);
        const counts = await countByState(stores);
        most = Math.max(most, (counts.queued ?? 0) + (counts.running ?? 0));
        for (const run of dispatched) {
          const claimed = await stores.runs.claim(tenantId, run.runId, 'w', 60_000);
          if (claimed) await endTurn(stores, claimed, claimed.snapshot.sequence);
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, work));
    expect(most).toBe(3);
  });
});

describe('a limit that a hand or an earlier release has stored', () => {
  it.each(['3000000000', '1e30', '-5', '0', '2.5', '"many"', '[]'])(
    '%s stops no other tenant',
    async (value) => {
      const [bad, good] = [randomUUID(), randomUUID()];
      for (const [n, tenantId] of [bad, good].entries()) {
        const limits =
          tenantId === bad ? `{"runsAtOnce": ${value}, "tasksWaiting": ${value}, "weight": ${value}}` : '{}';
        await sql(
          stores,
          `INSERT INTO tenants (id, slug, limits) VALUES ('${tenantId}', 't-${n}-${tenantId}', '${limits}')`,
        );
      }
      const waiting = [...(await accept(bad, 1)), ...(await accept(good, 1))];
      const seen = await stores.dispatch.readSlotUsage(1_000);
      const grants = [...seen.waiting].map(([tenantId, { runsAtOnce = null }]) =>
        grant(tenantId, 1, runsAtOnce),
      );
      expect(idsOf(await stores.dispatch.dispatch(grants, ROOMY)).sort()).toEqual(waiting.sort());
      // Its own messages are accepted, too.
      const { runsAtOnce: maxInFlight = null, tasksWaiting: maxWaiting = null } = seen.waiting.get(bad)!;
      await accept(bad, 1, { maxInFlight, maxWaiting, exact: true });
    },
  );
});

describe('dispatch', () => {
  it('takes the oldest runs of a tenant first', async () => {
    const tenantId = randomUUID();
    const runs = await accept(tenantId, 5);
    expect(idsOf(await stores.dispatch.dispatch([grant(tenantId, 2)], ROOMY))).toEqual(runs.slice(0, 2));
    expect(idsOf(await stores.dispatch.dispatch([grant(tenantId, 9)], ROOMY))).toEqual(runs.slice(2));
    expect(await stores.dispatch.dispatch([grant(tenantId, 9)], ROOMY)).toEqual([]);
    expect(await countByState(stores)).toEqual({ waiting: 0, queued: 5, running: 0, suspended: 0 });
  });

  it('gives each run out once, however many processes do it at once', async () => {
    const tenantId = randomUUID();
    const runs = await accept(tenantId, 30);
    const grants = [grant(tenantId, 10)];
    const all = await Promise.all([1, 2, 3, 4].map(() => stores.dispatch.dispatch(grants, ROOMY)));
    expect(idsOf(all.flat()).sort()).toEqual(
      runs.slice(0, all.flat().length).sort(), // prettier-ignore
    );
    expect(new Set(idsOf(all.flat())).size).toBe(all.flat().length);
    const rest = await stores.dispatch.dispatch([grant(tenantId, 30)], ROOMY);
    expect(all.flat().length + rest.length).toBe(30);
  });

  it('waits for no lock: a locked run is left to the next refill', async () => {
    const tenantId = randomUUID();
    const [locked, free] = await accept(tenantId, 2);
    const other = new Client({ connectionString: stores.url });
    await other.connect();
    try {
      await other.query(`BEGIN; SET LOCAL baton.tenant = 'system'`);
      await other.query('SELECT 1 FROM runs WHERE id = $1 FOR UPDATE', [locked]);
      expect(idsOf(await stores.dispatch.dispatch([grant(tenantId, 2)], ROOMY))).toEqual([free]);
    } finally {
      await other.end();
    }
  });

  it('leaves no tenant room beyond what all may have in flight together', async () => {
    const [one, two] = [randomUUID(), randomUUID()];
    const quota = { maxInFlight: 3, maxWaiting: null, exact: false };
    await accept(one, 5, quota);
    await accept(two, 5);
    const runs = await stores.dispatch.dispatch([grant(two, 3), grant(one, 3)], 5);
    expect(runs.map(({ tenantId }) => tenantId)).toEqual([two, two]);
    expect(await stores.dispatch.dispatch([grant(two, 3)], 5)).toEqual([]);
  });

  it('gives the right to a reserved slot to the first few of a tenant', async () => {
    const tenantId = randomUUID();
    await accept(tenantId, 4);
    const dispatch = (slots: number) =>
      stores.dispatch.dispatch([grant(tenantId, slots)], ROOMY, { upTo: 3, slots: 0 });
    const rights = (runs: { mayUseReserved: boolean }[]) => runs.map(({ mayUseReserved }) => mayUseReserved);
    expect(rights(await dispatch(1))).toEqual([true]);
    expect(rights(await dispatch(3))).toEqual([true, true, false]);
  });

  it('gives tenants with few runs in flight as many as there are reserved slots, beyond what all may have', async () => {
    const [flood, one, two] = [randomUUID(), randomUUID(), randomUUID()];
    await accept(flood, 6, { maxInFlight: 4, maxWaiting: null, exact: false });
    await accept(one, 3);
    await accept(two, 3);
    const grants = [grant(flood, 3), grant(one, 3), grant(two, 3)];
    const given = async () => {
      const runs = await stores.dispatch.dispatch(grants, 4, { upTo: 2, slots: 3 });
      return [flood, one, two].map((tenant) => runs.filter(({ tenantId }) => tenantId === tenant).length);
    };
    // Four are in flight, and three more may be: the first of each tenant, and one of the second ones.
    expect(await given()).toEqual([0, 2, 1]);
    expect(await given()).toEqual([0, 0, 0]);
  });

  it('gives one to each tenant without a run in flight, also if all have as many as they may', async () => {
    const [flood, one, two] = [randomUUID(), randomUUID(), randomUUID()];
    await accept(flood, 3, { maxInFlight: 2, maxWaiting: null, exact: false });
    await accept(one, 2);
    await accept(two, 2);
    const runs = await stores.dispatch.dispatch([grant(flood, 3), grant(one, 3), grant(two, 3)], 2);
    expect(runs.map(({ tenantId, mayUseReserved }) => [tenantId, mayUseReserved])).toEqual([
      [one, true],
      [two, true],
    ]);
    expect(await stores.dispatch.dispatch([grant(flood, 3), grant(one, 3)], 2)).toEqual([]);
  });

  it('keeps to the limit of a tenant', async () => {
    const tenantId = randomUUID();
    await accept(tenantId, 4, { maxInFlight: 1, maxWaiting: null, exact: true });
    expect(await stores.dispatch.dispatch([grant(tenantId, 9, 2)], ROOMY)).toHaveLength(1);
    expect(await stores.dispatch.dispatch([grant(tenantId, 9, 2)], ROOMY)).toEqual([]);
  });

  it('gives a quota back when a run ends, is canceled or fails with its worker', async () => {
    const tenantId = randomUUID();
    const quota = { maxInFlight: 3, maxWaiting: null, exact: true };
    const inputs = Array.from({ length: 6 }, () => ({ ...newTask({ tenantId }), quota }));
    for (const input of inputs) await stores.tasks.create(input);
    const claims = inputs.slice(0, 3).map(({ runId }) => stores.runs.claim(tenantId, runId, 'w', 60_000));
    const [ended, canceled, dead] = await Promise.all(claims);
    await endTurn(stores, ended!, 2);
    await stores.tasks.cancel(tenantId, 'echo', canceled!.taskId);
    await sql(
      stores,
      `UPDATE runs SET deaths = 9, lease_expires_at = '2000-01-01' WHERE id = '${dead!.runId}'`,
    );
    await stores.runs.failPoisoned(10, (await stores.runs.findWork(60_000)).at, crashText);
    expect(await stores.dispatch.dispatch([grant(tenantId, 9, 3)], ROOMY)).toHaveLength(3);
  });
});
