import { TaskState } from '@baton/a2a';
import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { NOTE_AGENT_VERSIONS } from '../runs/agent-version.js';
import { APPEND } from '../runs/append.js';
import { CLAIM } from '../runs/claim.js';
import { READ_CLAIMED } from '../runs/claimed-run.js';
import { GIVE_UP } from '../runs/give-up.js';
import { HEARTBEAT } from '../runs/leases/heartbeat.js';
import { READ_EAGER_RUNS } from '../runs/read-eager-run.js';
import { IS_SUSPECT, POSTPONE } from '../runs/quarantine.js';
import { RETURN_TO_QUEUE } from '../runs/return-to-queue.js';
import { CANCEL } from '../tasks/cancel.js';
import { RECORD_CALL } from '../usage/usage-hours.store.js';
import { RunStore } from '../runs/run.store.js';
import { CREATE } from '../tasks/create-batch.js';
import { TaskStore } from '../tasks/task.store.js';
import { TaskTreeStore } from '../delegation/task-tree.store.js';
import { TenantRemovalStore } from '../tenants/tenant-removal.store.js';
import { RetentionStore } from '../retention/retention.store.js';
import { chunk, endTurn, newTask, type Stores, openStores, textMessage } from '../stores.fixture.js';
import { Database } from './database.js';

// A plan that reads a whole table, or all tasks of a tenant, works in every other test: their tables are small.

const TASKS = 20_000;
const CONTEXTS = 500;
/** An owner of few of these tasks, the oldest ones. */
const FEW = { owner: 'token:few', unowned: true };

let stores: Stores;
let client: Client;

beforeEach(async () => {
  stores = await openStores(1);
  client = new Client({ connectionString: stores.url });
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
});
afterEach(async () => {
  await client.end();
  await stores.close();
});

/** Ended tasks of one tenant, one a second. */
async function fill(tenantId: string): Promise<void> {
  await client.query(
    `INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, created_at,
       last_sequence, artifacts_sequence, owner)
     SELECT $1, gen_random_uuid(), 'echo', i % $3::int, md5((i % $3::int)::text)::uuid, 3 + i % 2, '{}',
       now() - i * interval '1 s', now() - i * interval '1 s', 1, 1, CASE WHEN i > $2::int - 10 THEN 'token:few' ELSE 'token:many' END
     FROM generate_series(1, $2::int) i`,
    [tenantId, TASKS, CONTEXTS],
  );
}

/** A run of each task that has ended. @param id SQL of the id of each, for a task's `id` */
async function endedRuns(id: string): Promise<void> {
  await client.query(
    `INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, finished_at)
     SELECT tenant_id, ${id}, id, 'succeeded', 1, now() FROM tasks WHERE active_run_id IS NULL`,
  );
}

/** Rows of tables and entries of indexes that Postgres has read in this database. */
async function rowsRead(): Promise<number> {
  // A session reports what it has read when it ends, this one when it is asked to.
  await client.query('SELECT pg_stat_force_next_flush()');
  for (;;) {
    const { rowCount } = await client.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'reader'`,
    );
    if (rowCount === 0) break;
  }
  return rowsReported();
}

async function rowsReported(): Promise<number> {
  const { rows } = await client.query<{ n: number }>(
    `SELECT ((SELECT sum(seq_tup_read) FROM pg_stat_user_tables)
       + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes))::int AS n`,
  );
  return rows[0]?.n ?? NaN;
}

/** How many rows some work on a connection of its own reads. */
async function readBy(work: (database: Database) => Promise<unknown>): Promise<number> {
  const before = await rowsRead();
  const database = new Database({ url: `${stores.url}?application_name=reader`, poolSize: 1 });
  try {
    await work(database);
  } finally {
    await database.close();
  }
  return (await rowsRead()) - before;
}

describe.each(['without statistics', 'with statistics'])('of many tasks, %s', (statistics) => {
  it('a page, a slice of a count, a context, runs and a retention read as many as they are about', async () => {
    const tenantId = randomUUID();
    await fill(tenantId);
    await endedRuns('id');
    await endedRuns('gen_random_uuid()');
    if (statistics === 'with statistics') await client.query('ANALYZE');
    const { rows } = await client.query<{ id: string; context_id: string }>(
      'SELECT id, context_id FROM tasks ORDER BY created_at DESC LIMIT 1',
    );
    const [last] = rows;
    const page = { tenantId, pageSize: 20, includeArtifacts: true, uncounted: true };
    const contextId = last!.context_id;
    const read = {
      ofAgent: await readBy((database) => new TaskStore(database).list({ ...page, agentId: 'echo' })),
      inContext: await readBy((database) =>
        new TaskStore(database).list({ ...page, agentId: 'echo', contextId, uncounted: false }),
      ),
      ofAgentSlice: await readBy((database) =>
        new TaskStore(database).countSlice({ tenantId, agentId: 'echo' }, { state: 2 }, 500),
      ),
      atWork: await readBy((database) =>
        new TaskStore(database).list({
          ...page,
          agentId: 'echo',
          own: FEW,
          state: TaskState.TASK_STATE_WORKING,
          uncounted: false,
        }),
      ),
      page: await readBy((database) => new TaskStore(database).list(page)),
      own: await readBy((database) => new TaskStore(database).list({ ...page, own: FEW })),
      ownSlice: await readBy((database) =>
        new TaskStore(database).countSlice({ tenantId, own: FEW }, { state: 2 }, 500),
      ),
      waiting: await readBy((database) => new TaskStore(database).listWaiting(page)),
      ownWaiting: await readBy((database) => new TaskStore(database).listWaiting({ ...page, own: FEW })),
      states: await readBy((database) => new TaskStore(database).countStates({ tenantId }, 500)),
      ownStates: await readBy((database) => new TaskStore(database).countStates({ tenantId, own: FEW }, 500)),
      slice: await readBy((database) => new TaskStore(database).countSlice(page, { state: 2 }, 500)),
      context: await readBy((database) =>
        new TaskStore(database).listContext(tenantId, 'echo', contextId, last!.id, 20),
      ),
      runs: await readBy(async (database) => {
        const runs = new RunStore(database);
        expect(await runs.ofTask(tenantId, last!.id)).toHaveLength(2);
        await runs.lastError(tenantId, last!.id);
      }),
      ofTree: await readBy(async (database) => {
        await new TaskTreeStore(database).find(tenantId, last!.id);
        await new TaskTreeStore(database).wake(tenantId, last!.id);
      }),
      active: await readBy((database) => new TenantRemovalStore(database).activeTasks(tenantId)),
      retention: await readBy(async (database) => {
        const retention = new RetentionStore(database);
        expect(await retention.expire([{ tenantId, days: 1e-6 }], 100)).toEqual({ tasks: 100 });
        expect(await retention.purge(100)).toMatchObject({ runs: 200 });
      }),
    };
    expect(Object.entries(read).filter(([, rows]) => rows >= 2_000)).toEqual([]);
  });
});

/** What Postgres has read in this database: rows of each table one after the other, entries and pages of each index. */
async function reads(): Promise<Map<string, number>> {
  const { rows } = await client.query<{ name: string; reads: number }>(
    `SELECT relname AS name, seq_tup_read::int AS reads FROM pg_stat_user_tables
     UNION ALL
     SELECT s.indexrelname, (s.idx_tup_read + io.idx_blks_hit + io.idx_blks_read)::int
     FROM pg_stat_user_indexes s JOIN pg_statio_user_indexes io USING (indexrelid)`,
  );
  return new Map(rows.map(({ name, reads: count }) => [name, count]));
}

describe.each(['before the first ANALYZE', 'after an ANALYZE'])(
  'with the plans of a small table, %s',
  (when) => {
    it('creations, claims, appends and calls read their own rows', async () => {
      const tenantId = randomUUID();
      // It would analyze the tables, and read their indexes.
      for (const table of ['tasks', 'runs', 'message_keys', 'task_events', 'task_messages']) {
        await client.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
      }
      let before = new Map<string, number>();
      await readBy(async (database) => {
        const [tasks, runs] = [new TaskStore(database), new RunStore(database)];
        const work = async (): Promise<void> => {
          const inputs = [1, 2, 3].map(() => ({
            ...newTask({ tenantId }),
            key: { hash: randomBytes(32), content: null, hours: 1 },
          }));
          await Promise.all(inputs.map((input) => tasks.create(input)));
          const claims = inputs.map(({ runId }) => runs.claim(tenantId, runId, 'worker', 30_000));
          const claimed = (await Promise.all(claims)).filter((run) => run !== undefined);
          const written = await Promise.all(
            claimed.map((run) => runs.append(run, { afterSequence: 2, events: [chunk(run, 'x', false)] })),
          );
          expect(written.map(({ ok }) => ok)).toEqual([true, true, true]);
          const [asks, canceled] = claimed.map(({ taskId }) => taskId);
          await endTurn({ ...stores, runs }, claimed[0]!, 3, TaskState.TASK_STATE_INPUT_REQUIRED);
          const next = { ...newTask({ tenantId }), taskId: asks!, message: textMessage('more') };
          expect(await tasks.continue(next)).toMatchObject({ ok: true });
          expect(await tasks.get(tenantId, asks!)).toBeDefined();
          expect((await tasks.heads([{ tenantId, taskId: asks! }])).size).toBe(1);
          expect(
            (await tasks.readPage({ tenantId, taskId: asks! }, 0, { limit: 10, bytes: 1_000 })).events,
          ).not.toEqual([]);
          expect(await tasks.cancel(tenantId, null, canceled!)).toMatchObject({ ok: true });
          await endTurn({ ...stores, runs }, claimed[2]!, 3);
          const eager = { ...newTask({ tenantId }), claimFor: { workerId: 'worker', leaseMs: 30_000 } };
          expect(await tasks.create(eager)).toMatchObject({ claimed: expect.any(String) });
          const pickedUp = (await runs.readEagerRun(tenantId, eager.runId, 'worker', 1))!;
          await endTurn({ ...stores, runs }, pickedUp, 1);
        };
        await work();
        if (when === 'after an ANALYZE') await client.query('ANALYZE');
        // After five executions Postgres makes a plan that it keeps.
        for (let i = 0; i < 7; i++) await work();
        await fill(tenantId);
        await endedRuns('gen_random_uuid()');
        await client.query(
          `INSERT INTO message_keys (tenant_id, key, task_id, sequence, expires_at)
         SELECT tenant_id, sha256(id::text::bytea), id, 1, now() + interval '1 h' FROM tasks WHERE active_run_id IS NULL`,
        );
        await client.query('SELECT pg_stat_force_next_flush()');
        before = await reads();
        await work();
      });
      await rowsRead();
      const after = [...(await reads())].map(
        ([name, count]) => [name, count - (before.get(name) ?? 0)] as const,
      );
      // An index of all tasks of the tenant has some hundred pages.
      expect(after.filter(([, count]) => count >= 800)).toEqual([]);
    });
  },
);

it('a plan kept from a small table finds each row by its key, however small it was', async () => {
  for (const way of ['seqscan', 'hashjoin', 'mergejoin', 'material'])
    await client.query(`SET enable_${way} = off`);
  await client.query(`SET plan_cache_mode = 'force_generic_plan'`);
  for (const table of ['tasks', 'runs']) {
    await client.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
  }
  const tenantId = randomUUID();
  const groups = [CREATE, CLAIM, READ_EAGER_RUNS, APPEND, NOTE_AGENT_VERSIONS, HEARTBEAT];
  const single = [CANCEL, IS_SUSPECT, POSTPONE, READ_CLAIMED, RETURN_TO_QUEUE, GIVE_UP];
  const scans: string[] = [];
  let filled = 0;
  // Postgres has not analyzed an empty table.
  for (const size of [0, 2, 3, 10, 30, 100, 300, 1_000]) {
    await client.query(
      `WITH task AS (
         INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence, artifacts_sequence)
         SELECT $1, gen_random_uuid(), 'echo', i, md5(i::text)::uuid, 3, '{}', now(), 1, 1 FROM generate_series(1, $2::int) i
         RETURNING tenant_id, id
       )
       INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, finished_at)
       SELECT tenant_id, gen_random_uuid(), id, 'succeeded', 1, now() FROM task`,
      [tenantId, size - filled],
    );
    filled = size;
    if (size > 0) await client.query('ANALYZE tasks, runs');
    for (const { name, text } of [...groups, ...single, RECORD_CALL]) {
      const { rows } = await client.query<{ 'QUERY PLAN': string }>(
        `EXPLAIN (GENERIC_PLAN, COSTS OFF) ${text}`,
      );
      const lines = rows.map((row) => row['QUERY PLAN'].trim());
      for (const [i, line] of lines.entries()) {
        const [, index] = /Scan using (\S+) on (?:tasks|runs)\b/.exec(line) ?? [];
        // The new tasks are counted with runs that wait or are at work, and so is a run that may use a reserved slot.
        const counts = name === CREATE.name || name === RETURN_TO_QUEUE.name;
        if (!index || (counts && /_(out_key|waiting_idx)/.test(index))) continue;
        scans.push(`${size} rows, ${name}: ${index}, ${lines[i + 1]}`);
      }
    }
  }
  expect(scans.filter((scan) => scan.includes(': runs_pkey')).length).toBeGreaterThan(8 * 12);
  expect(scans.filter((scan) => !/Index Cond: .*\b(task_)?id = /.test(scan))).toEqual([]);
});
