import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { until } from '../../../../test/support/until.js';
import {
  type ClaimedRun,
  TaskTreeStore,
  type NewTask,
  ParentOverError,
  RetentionStore,
  TooManyChildrenError,
  TooManyWaitingError,
} from '../index.js';
import {
  countByState,
  beat,
  chunk,
  crashText,
  endTurn,
  newTask,
  openStores,
  sql,
  startTask,
  type Stores,
  textMessage,
} from '../stores.fixture.js';
import * as statements from './task-tree.store.js';

const { TASK_STATE_COMPLETED, TASK_STATE_CANCELED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING } =
  TaskState;
const MOST = 50;

let stores: Stores;
let taskTree: TaskTreeStore;
beforeEach(async () => {
  stores = await openStores();
  taskTree = new TaskTreeStore(stores.database);
});
afterEach(async () => stores.close());

const childOf = (parent: ClaimedRun, rootTaskId = parent.taskId, maxTasks = MOST): NewTask => ({
  ...newTask({ tenantId: parent.tenantId }),
  child: { parent, rootTaskId, maxTasks },
});
const startChild = (parent: ClaimedRun, rootTaskId?: string) =>
  startTask(stores, childOf(parent, rootTaskId));
const claim = (run: ClaimedRun) => stores.runs.claim(run.tenantId, run.runId, 'other', 30_000);
const dispatch = ({ tenantId }: ClaimedRun) =>
  stores.dispatch.dispatch([{ tenantId, slots: 9, maxInFlight: null }], 1000);
const suspend = (run: ClaimedRun, ...tasks: { taskId: string }[]) =>
  taskTree.suspend(
    run,
    tasks.map(({ taskId }) => taskId),
  );
const wake = ({ tenantId, taskId }: ClaimedRun) => taskTree.wake(tenantId, taskId);
const stateOf = async ({ runId }: { runId: string }) => {
  const rows = await sql(stores, `SELECT state FROM runs WHERE id = '${runId}'`);
  return (rows as { state: string }[])[0]?.state;
};

describe('a suspended run', () => {
  it('keeps its task, and has neither a worker nor a slot', async () => {
    const parent = await startTask(stores);
    const child = await startChild(parent);
    expect(await suspend(parent, child)).toBe(true);
    expect(await countByState(stores)).toMatchObject({ running: 1, suspended: 1 });
    expect((await stores.dispatch.readSlotUsage(1000)).inFlight).toEqual(new Map([[parent.tenantId, 1]]));
    expect(await beat(stores, [parent])).toEqual([parent.runId]);
    expect(await claim(parent)).toBeUndefined();
    const { tenantId, taskId, agentId } = parent;
    const turn = {
      tenantId,
      taskId,
      agentId,
      runId: randomUUID(),
      message: textMessage('more'),
      extensions: [],
    };
    expect(await stores.tasks.continue(turn)).toEqual({ ok: false, reason: 'busy' });
    const { task } = (await stores.tasks.get(parent.tenantId, parent.taskId))!;
    expect(task.status?.state).toBe(TASK_STATE_WORKING);
    await sql(
      stores,
      `UPDATE runs SET lease_expires_at = now() - interval '1 day' WHERE state = 'suspended'`,
    );
    const at = (await stores.runs.findWork(60_000)).at;
    expect([
      await stores.runs.reclaimExpired(9, at),
      await stores.runs.failPoisoned(9, at, crashText),
    ]).toEqual([[], []]);
    expect(await stores.runs.takeStaleQueued(0, 9)).toEqual([]);
    expect(await dispatch(parent)).toEqual([]);
  });

  it('goes on as the next attempt when the last task it waits for has ended its turn', async () => {
    const parent = await startTask(stores);
    const [one, two] = [await startChild(parent), await startChild(parent)];
    await suspend(parent, one, two);
    expect(await wake(parent)).toBe(false);
    await endTurn(stores, one, 2);
    expect(await wake(parent)).toBe(false);
    await endTurn(stores, two, 2, TASK_STATE_INPUT_REQUIRED);
    expect([await wake(parent), await wake(parent)]).toEqual([true, false]);
    expect(await claim(parent)).toBeUndefined();
    expect(await dispatch(parent)).toMatchObject([{ runId: parent.runId }]);
    const woken = await claim(parent);
    expect(woken).toMatchObject({ attempt: 2, workingEvent: null, parentTaskId: null });
    expect(await sql(stores, `SELECT deaths FROM runs WHERE id = '${parent.runId}'`)).toEqual([
      { deaths: 0 },
    ]);
    expect(await stores.runs.append(parent, { afterSequence: 2, events: [chunk(parent, 'old')] })).toEqual({
      ok: false,
    });
    expect(await endTurn(stores, woken!, 2)).toEqual({ ok: true, firstSequence: 3, hasChildren: true });
  });

  it('waits for no task that is gone, and for none of another tenant', async () => {
    const parent = await startTask(stores);
    const stranger = await startTask(stores);
    await suspend(parent, stranger, { taskId: randomUUID() });
    expect(await wake(parent)).toBe(true);
  });

  it('is canceled with its task, even if a worker wakes it at the same time', async () => {
    for (let i = 0; i < 10; i++) {
      const parent = await startTask(stores);
      const child = await startChild(parent);
      await suspend(parent, child);
      await endTurn(stores, child, 2);
      const [canceled] = await Promise.all([
        stores.tasks.cancel(parent.tenantId, null, parent.taskId),
        wake(parent),
      ]);
      expect(canceled).toMatchObject({ ok: true, runId: parent.runId, hasChildren: true });
      expect(await stateOf(parent)).toBe('canceled');
      expect([await wake(parent), await dispatch(parent)]).toEqual([false, []]);
    }
  });

  it('goes on when its time has come, whatever it waits for, and not before', async () => {
    const sleeper = await startTask(stores);
    const parent = await startTask(stores);
    const child = await startChild(parent);
    const soon = await startTask(stores);
    await taskTree.suspend(sleeper, [], 3_600_000);
    await taskTree.suspend(parent, [child.taskId], 60_000);
    // It was reclaimed once, with a pause before the next attempt.
    await sql(stores, `UPDATE runs SET not_before = now() - interval '1 h' WHERE id = '${child.runId}'`);
    await suspend(child, parent);
    for (const run of [sleeper, parent, child]) expect(await wake(run)).toBe(false);
    expect([await taskTree.wakeDue(9), (await taskTree.wakeNext(undefined, 9)).woken]).toEqual([0, 0]);
    await taskTree.suspend(soon, [], 0);
    expect(await wake(soon)).toBe(true);
    await sql(
      stores,
      `UPDATE runs SET not_before = now() - interval '1 second' WHERE not_before IS NOT NULL`,
    );
    expect([await taskTree.wakeDue(1), await taskTree.wakeDue(9), await taskTree.wakeDue(9)]).toEqual([
      1, 1, 0,
    ]);
    expect(await Promise.all([sleeper, parent, child].map(stateOf))).toEqual([
      'queued',
      'queued',
      'suspended',
    ]);
    expect((await dispatch(parent)).map(({ runId }) => runId)).toEqual([parent.runId]);
  });

  it('sleeps for no shorter than its time', async () => {
    const run = await startTask(stores);
    const since = performance.now();
    await taskTree.suspend(run, [], 300);
    await until(async () => (await taskTree.wakeDue(9)) > 0);
    // The clock of Postgres is another one.
    expect(performance.now() - since).toBeGreaterThan(300 - 50);
  });

  it('costs no sweep anything while it sleeps', async () => {
    const found = async () => {
      const { dueSleeps, waitsForTasks, parkedRuns } = await stores.runs.findWork(60_000);
      return { dueSleeps, waitsForTasks, parkedRuns };
    };
    const sleeper = await startTask(stores);
    await taskTree.suspend(sleeper, [], 3_600_000);
    expect(await found()).toEqual({ dueSleeps: false, waitsForTasks: false, parkedRuns: false });
    const parent = await startTask(stores);
    await suspend(parent, sleeper);
    expect(await found()).toEqual({ dueSleeps: false, waitsForTasks: true, parkedRuns: false });
    await sql(
      stores,
      `UPDATE runs SET not_before = now() - interval '1 second' WHERE id = '${sleeper.runId}'`,
    );
    expect(await found()).toEqual({ dueSleeps: true, waitsForTasks: true, parkedRuns: false });
  });

  it.each<[string, () => Promise<unknown>]>([
    ['nothing is left to wait for', () => taskTree.wakeNext(undefined, 9)],
    ['its time has come', () => taskTree.wakeDue(9)],
  ])('stays canceled if a sweep finds at the same time that %s', async (_, sweep) => {
    const run = await startTask(stores);
    const child = await startChild(run);
    await taskTree.suspend(run, [child.taskId], 0);
    await endTurn(stores, child, 2);
    const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
    const { swept } = await stores.database.inSystem(async (transaction) => {
      const cancel = `UPDATE runs SET state = 'canceled', finished_at = now() WHERE id = $1`;
      await transaction.query({ text: cancel }, [run.runId]);
      let found: unknown;
      const sweeping = sweep().then((woken) => (found = woken));
      while (found === undefined && (await sql(stores, blocked)).length === 0);
      return { swept: sweeping };
    });
    await swept;
    expect(await stateOf(run)).toBe('canceled');
  });

  it('is left to the next sweep while something holds it: a sweep waits for no lock', async () => {
    const run = await startTask(stores);
    const child = await startChild(run);
    await suspend(run, child);
    await endTurn(stores, child, 2);
    const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
    await stores.database.inSystem(async (transaction) => {
      await transaction.query({ text: 'SELECT FROM runs WHERE id = $1 FOR UPDATE' }, [run.runId]);
      let woken: number | undefined;
      void taskTree.wakeNext(undefined, 9).then((swept) => (woken = swept.woken));
      while (woken === undefined && (await sql(stores, blocked)).length === 0);
      expect(woken).toBe(0);
    });
    expect(await taskTree.wakeNext(undefined, 9)).toMatchObject({ woken: 1 });
  });

  it('is woken by the sweep, of any tenant, a page at a time', async () => {
    const parents = [await startTask(stores), await startTask(stores), await startTask(stores)];
    const children: ClaimedRun[] = [];
    for (const parent of parents) {
      children.push(await startChild(parent));
      await suspend(parent, children.at(-1)!);
    }
    expect(await taskTree.wakeNext(undefined, 500)).toEqual({ woken: 0, next: undefined });
    for (const child of children.slice(1)) await endTurn(stores, child, 2);
    let woken = 0;
    let cursor: Awaited<ReturnType<TaskTreeStore['wakeNext']>>['next'];
    for (let page = 0; page < 3; page++) {
      const swept = await taskTree.wakeNext(cursor, 1);
      woken += swept.woken;
      cursor = swept.next;
    }
    expect(woken).toBe(2);
    expect(await Promise.all(parents.map(stateOf))).toEqual(['suspended', 'queued', 'queued']);
  });
});

describe('a child', () => {
  it('is of the line of its parents', async () => {
    const root = await startTask(stores);
    const middle = await startChild(root);
    const leaf = await startChild(middle, root.taskId);
    expect(middle.parentTaskId).toBe(root.taskId);
    const line = await taskTree.ancestors(root.tenantId, leaf.taskId);
    expect(line.map(({ taskId }) => taskId)).toEqual([leaf.taskId, middle.taskId, root.taskId]);
    const { runs } = stores;
    expect(await runs.noteAgentVersion(middle, { version: 3 })).toBe(true);
    expect(await runs.noteAgentVersion({ ...middle, attempt: middle.attempt - 1 }, { version: 2 })).toBe(
      false,
    );
    expect(await taskTree.find(root.tenantId, middle.taskId)).toEqual({
      owner: null,
      parentTaskId: root.taskId,
      childTaskIds: [leaf.taskId],
      agentVersion: 3,
      events: 2,
      createdAt: expect.any(Date) as Date,
      wakesAt: null,
      reminders: [],
    });
    const stranger = randomUUID();
    expect(await taskTree.ancestors(stranger, leaf.taskId)).toEqual([]);
    const sibling = await startChild(root);
    expect((await taskTree.find(root.tenantId, root.taskId)).childTaskIds).toEqual(
      [middle, sibling].map(({ taskId }) => taskId),
    );
    expect(await taskTree.descendants(root.tenantId, root.taskId)).toEqual(
      [middle, sibling, leaf].map(({ taskId }, index) => ({
        taskId,
        parentTaskId: [root, root, middle][index]!.taskId,
        agentId: 'echo',
        owner: null,
        state: TASK_STATE_WORKING,
        createdAt: expect.any(Date) as Date,
        statusAt: expect.any(Date) as Date,
      })),
    );
    expect(await taskTree.descendants(root.tenantId, leaf.taskId)).toEqual([]);
    expect(await taskTree.descendants(stranger, root.taskId)).toEqual([]);
    expect(await taskTree.find(stranger, middle.taskId)).toEqual({
      owner: null,
      parentTaskId: null,
      childTaskIds: [],
      agentVersion: null,
      events: 0,
      createdAt: undefined,
      wakesAt: null,
      reminders: [],
    });
  });

  it('is shown below the first task, however long the line to it is', async () => {
    const { tenantId, taskId } = await startTask(stores);
    await sql(
      stores,
      `INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence, artifacts_sequence,
        parent_task_id)
       SELECT '${tenantId}', md5('below ' || n)::uuid, 'echo', 'c', md5('c')::uuid, 2, '{}', now(), 1, 1,
        CASE n WHEN 1 THEN '${taskId}'::uuid ELSE md5('below ' || n - 1)::uuid END
       FROM generate_series(1, 90) n`,
    );
    expect(await taskTree.descendants(tenantId, taskId)).toHaveLength(90);
  });

  it('is refused when as many were made below the first task as may be, and nothing is written', async () => {
    const root = await startTask(stores);
    const middle = await startChild(root);
    await startTask(stores, childOf(middle, root.taskId, 2));
    const refused = childOf(root, root.taskId, 2);
    await expect(stores.tasks.create(refused)).rejects.toThrow(TooManyChildrenError);
    expect(await stores.tasks.get(root.tenantId, refused.task.id)).toBeUndefined();
    await startTask(stores, childOf(root, root.taskId, 3));
  });

  it('is not counted when there is no slot for it', async () => {
    const root = await startTask(stores);
    const full = { ...childOf(root), quota: { maxInFlight: 0, maxWaiting: 0, exact: true } };
    await expect(stores.tasks.create(full)).rejects.toThrow(TooManyWaitingError);
    await startTask(stores, childOf(root, root.taskId, 1));
  });

  it('is seen by the cancel of its parent, or is not made, whatever happens at once', async () => {
    for (let i = 0; i < 10; i++) {
      const parent = await startTask(stores);
      const child = childOf(parent);
      const [made, canceled] = await Promise.all([
        stores.tasks.create(child).then(
          () => true,
          () => false,
        ),
        stores.tasks.cancel(parent.tenantId, null, parent.taskId),
      ]);
      expect(canceled).toMatchObject({ ok: true, hasChildren: made });
    }
  });

  it('is not made for a parent that is canceled while its creation waits', async () => {
    const parent = await startTask(stores);
    const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
    const { creating } = await stores.database.inSystem(async (transaction) => {
      const cancel = `UPDATE tasks SET state = ${TASK_STATE_CANCELED}, active_run_id = NULL WHERE id = $1`;
      await transaction.query({ text: cancel }, [parent.taskId]);
      const creating = Promise.allSettled([stores.tasks.create(childOf(parent))]);
      while ((await sql(stores, blocked)).length === 0);
      return { creating };
    });
    expect(await creating).toMatchObject([
      { status: 'rejected', reason: expect.any(ParentOverError) as Error },
    ]);
  });

  it('is not made for an attempt that no longer owns the run of the parent', async () => {
    const old = await startTask(stores);
    await stores.runs.returnToQueue(old);
    const parent = (await claim(old))!;
    expect(parent).toMatchObject({ runId: old.runId, attempt: 2 });
    const late = childOf(old);
    await expect(stores.tasks.create(late)).rejects.toThrow(ParentOverError);
    expect(await stores.tasks.get(old.tenantId, late.task.id)).toBeUndefined();
    await startChild(parent);
  });

  it('is abandoned when its parent has ended, until it has ended itself', async () => {
    const parent = await startTask(stores);
    const [child, asking, ended] = [
      await startChild(parent),
      await startChild(parent),
      await startChild(parent),
    ];
    await endTurn(stores, asking, 2, TASK_STATE_INPUT_REQUIRED);
    await endTurn(stores, ended, 2);
    expect((await taskTree.abandonedChildren(undefined, 500)).children).toEqual([]);
    await endTurn(stores, parent, 2);
    const open = [child.taskId, asking.taskId].sort();
    const { children } = await taskTree.abandonedChildren(undefined, 500);
    expect(children).toEqual(open.map((taskId) => ({ tenantId: parent.tenantId, taskId })));
    expect((await taskTree.openChildren(parent.tenantId, parent.taskId)).sort()).toEqual(open);
    const first = await taskTree.abandonedChildren(undefined, 1);
    const second = await taskTree.abandonedChildren(first.next, 1);
    expect([...first.children, ...second.children]).toEqual(children);
    for (const taskId of open) await stores.tasks.cancel(parent.tenantId, null, taskId);
    expect(await taskTree.abandonedChildren(undefined, 500)).toEqual({ children: [], next: undefined });
  });

  it('outlives a parent that is past its retention', async () => {
    const parent = await startTask(stores);
    const child = await startChild(parent);
    await endTurn(stores, parent, 2, TASK_STATE_COMPLETED);
    await sql(stores, `UPDATE tasks SET status_at = now() - interval '2 days' WHERE id = '${parent.taskId}'`);
    await new RetentionStore(stores.database).expire([{ tenantId: parent.tenantId, days: 1 }], 100);
    expect((await taskTree.abandonedChildren(undefined, 500)).children).toHaveLength(1);
    expect(await taskTree.ancestors(parent.tenantId, child.taskId)).toHaveLength(1);
    await endTurn(stores, child, 2, TASK_STATE_CANCELED);
  });
});

it('no sweep and no wake-up reads tasks and runs that have nothing to do with it', async () => {
  const tenantId = randomUUID();
  const id = 'gen_random_uuid()';
  await sql(
    stores,
    `INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence,
       artifacts_sequence, parent_task_id)
     SELECT '${tenantId}', ${id}, 'echo', 'c', ${id}, 3, '{}', now(), 1, 1, CASE WHEN n % 2 = 0 THEN ${id} END
     FROM generate_series(1, 5000) n`,
  );
  await sql(
    stores,
    `INSERT INTO runs (tenant_id, id, task_id, state, start_sequence)
     SELECT '${tenantId}', ${id}, ${id}, CASE WHEN n % 2 = 0 THEN 'queued' ELSE 'succeeded' END, 1
     FROM generate_series(1, 5000) n`,
  );
  await sql(stores, 'ANALYZE tasks, runs');
  const parent = await startTask(stores, newTask({ tenantId }));
  const child = await startChild(parent);
  await suspend(parent, child);
  const read = async ({ text }: { text: string }, values: unknown[]): Promise<number> => {
    const explain = { text: `EXPLAIN (ANALYZE, FORMAT JSON) ${text}` };
    const explained = await stores.database.systemQuery<{ 'QUERY PLAN': [object] }>(explain, values);
    const plan = JSON.stringify(explained[0]?.['QUERY PLAN']);
    const rows = [...plan.matchAll(/"(?:Actual Rows|Rows Removed by Filter)":([\d.]+)/g)];
    return Math.max(...rows.map(([, count]) => Number(count)));
  };
  const none = '00000000-0000-0000-0000-000000000000';
  expect(await read(statements.OPEN_NEXT, [none, none, 500])).toBeLessThan(5);
  expect(await read(statements.OPEN_CHILDREN, [tenantId, parent.taskId])).toBeLessThan(5);
  expect(await read(statements.RELATIONS, [tenantId, parent.taskId])).toBeLessThan(5);
  await endTurn(stores, child, 2);
  expect(await read(statements.WAKE_NEXT, [none, none, 500])).toBeLessThan(5);
  await sql(stores, `UPDATE runs SET state = 'suspended' WHERE id = '${parent.runId}'`);
  expect(await read(statements.WAKE, [tenantId, parent.taskId])).toBeLessThan(5);
  expect(await stateOf(parent)).toBe('queued');
});
