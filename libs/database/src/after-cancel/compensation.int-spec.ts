import { openStores, sql, startTask, type Stores } from '../stores.fixture.js';
import { CompensationStore } from './compensation.store.js';

let stores: Stores;
let compensations: CompensationStore;
beforeAll(async () => {
  stores = await openStores();
  compensations = new CompensationStore(stores.database);
});
afterAll(async () => stores.close());

/** The cancel was some time ago. */
const longAgo = () => sql(stores, `UPDATE tasks SET status_at = now() - interval '1 minute'`);
const isDue = async () => (await stores.runs.findWork(60_000)).dueCompensations;

describe('a canceled task with steps to undo', () => {
  it('is taken once its code had time to stop, again after a while, and never once it is forgotten', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    expect(await compensations.note(run)).toBe(true);
    await longAgo();
    // It works: nothing is to be undone.
    expect(await isDue()).toBe(false);
    await stores.tasks.cancel(tenantId, null, taskId);
    expect([await isDue(), await compensations.takeCanceled(10, 0)]).toEqual([false, []]);
    await longAgo();
    expect(await isDue()).toBe(true);
    expect(await compensations.takeCanceled(10, 0)).toEqual([{ tenantId, taskId }]);
    // The worker that took it has died.
    expect(await compensations.takeCanceled(10, 60_000)).toEqual([{ tenantId, taskId }]);
    expect(await compensations.takeCanceled(10, 60_000)).toEqual([]);
    await compensations.forget(tenantId, taskId);
    await sql(stores, `UPDATE tasks SET compensates_at = compensates_at - interval '1 hour'`);
    expect(await isDue()).toBe(false);
  });

  it('is tried again after pauses that grow with its age, when no task could be made for it', async () => {
    const { tenantId, taskId, ...run } = await startTask(stores);
    await compensations.note({ tenantId, taskId, ...run });
    await stores.tasks.cancel(tenantId, null, taskId);
    await longAgo();
    expect(await compensations.takeCanceled(10, 0)).toEqual([{ tenantId, taskId }]);
    const pause = async (longestMs: number): Promise<number> => {
      await compensations.postpone(tenantId, taskId, longestMs);
      const [row] = await sql(
        stores,
        // The column has rounded its time to milliseconds.
        `SELECT extract(epoch FROM compensates_at - clock_timestamp()::timestamptz(3))::float8 AS seconds FROM tasks WHERE id = '${taskId}'`,
      );
      return (row as { seconds: number }).seconds;
    };
    // It was canceled a minute ago.
    expect(await pause(600_000)).toBeGreaterThan(50);
    expect(await pause(30_000)).toBeLessThanOrEqual(30);
    expect(await compensations.takeCanceled(10, 0)).toEqual([]);
    await compensations.forget(tenantId, taskId);
    await compensations.postpone(tenantId, taskId, 0);
    expect(await isDue()).toBe(false);
  });

  it('is not marked by an attempt that has lost its run, nor taken without a mark', async () => {
    const run = await startTask(stores);
    expect(await compensations.note({ ...run, attempt: run.attempt + 1 })).toBe(false);
    await stores.tasks.cancel(run.tenantId, null, run.taskId);
    await longAgo();
    expect([await isDue(), await compensations.takeCanceled(10, 0)]).toEqual([false, []]);
    expect(await compensations.note(run)).toBe(false);
  });
});
