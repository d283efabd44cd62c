import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
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

const { TASK_STATE_CANCELED, TASK_STATE_INPUT_REQUIRED } = TaskState;
const STALE_MS = 60_000;
const ONE_AT_A_TIME = { maxInFlight: 1, maxWaiting: null, exact: true };

let stores: Stores;
beforeEach(async () => {
  stores = await openStores();
});
afterEach(async () => stores.close());

const now = async (): Promise<string> => (await stores.runs.findWork(STALE_MS)).at;
const endStray = async () => stores.runs.endStrayRuns(STALE_MS, 10, await now());
/** What frees slots beside it. */
const otherSweeps = async () => {
  const at = await now();
  await stores.runs.failPoisoned(10, at, crashText);
  await stores.runs.reclaimExpired(10, at);
  await stores.runs.takeStaleQueued(STALE_MS, 10);
};
const dispatch = (tenantId: string) => stores.dispatch.dispatch([{ tenantId, slots: 1, maxInFlight: 1 }], 10);
/** As if the task had been canceled without its run. */
const cancelWithoutRun = async (taskId: string) =>
  sql(stores, `UPDATE tasks SET state = ${TASK_STATE_CANCELED}, active_run_id = NULL WHERE id = '${taskId}'`);
const makeStale = async (runId: string) =>
  sql(stores, `UPDATE runs SET enqueued_at = now() - interval '2 minutes' WHERE id = '${runId}'`);
const expire = async (runId: string) =>
  sql(stores, `UPDATE runs SET lease_expires_at = now() - interval '1 second' WHERE id = '${runId}'`);

/** A tenant whose only slot has a run, and another run that waits. */
async function busyTenant() {
  const input = { ...newTask(), quota: ONE_AT_A_TIME };
  const waiting = { ...newTask({ tenantId: input.tenantId }), quota: ONE_AT_A_TIME };
  const { tenantId, runId, task } = input;
  await stores.tasks.create(input);
  await stores.tasks.create(waiting);
  return { tenantId, runId, taskId: task.id, waitingRunId: waiting.runId };
}

describe('a run that is not the active run of its task', () => {
  it('holds the slot of its tenant until the sweep ends it', async () => {
    const { tenantId, runId, taskId, waitingRunId } = await busyTenant();
    await cancelWithoutRun(taskId);
    await makeStale(runId);
    expect(await stores.runs.claim(tenantId, runId, 'worker', 1_000)).toBeUndefined();
    await otherSweeps();
    expect(await dispatch(tenantId)).toEqual([]);
    await makeStale(runId);
    expect(await endStray()).toEqual([{ tenantId, taskId, runId }]);
    expect(await dispatch(tenantId)).toMatchObject([{ runId: waitingRunId }]);
    expect(await endStray()).toEqual([]);
  });

  it('is ended after its lease, too, if it has no attempts left', async () => {
    const { tenantId, runId, taskId, waitingRunId } = await busyTenant();
    await stores.runs.claim(tenantId, runId, 'worker', 30_000);
    await cancelWithoutRun(taskId);
    await sql(stores, `UPDATE runs SET max_attempts = 1 WHERE id = '${runId}'`);
    expect(await endStray()).toEqual([]);
    await expire(runId);
    await otherSweeps();
    expect(await dispatch(tenantId)).toEqual([]);
    expect(await endStray()).toEqual([{ tenantId, taskId, runId }]);
    expect(await dispatch(tenantId)).toMatchObject([{ runId: waitingRunId }]);
  });

  it('is ended when its task waits for an answer, which the task then takes', async () => {
    const run = await startTask(stores);
    const { tenantId, agentId, taskId } = run;
    await endTurn(stores, run, 2, TASK_STATE_INPUT_REQUIRED);
    await sql(stores, `UPDATE runs SET state = 'queued', finished_at = NULL WHERE id = '${run.runId}'`);
    await makeStale(run.runId);
    const runId = randomUUID();
    const turn = { tenantId, agentId, taskId, runId, message: textMessage('more'), extensions: [] };
    await expect(stores.tasks.continue(turn)).rejects.toThrow('runs_out_key');
    expect(await endStray()).toEqual([{ tenantId, taskId, runId: run.runId }]);
    expect(await stores.tasks.continue(turn)).toMatchObject({ ok: true });
  });
});

it('a stray run that something holds is left to the next sweep, which waits for no lock', async () => {
  const { tenantId, runId, taskId } = await busyTenant();
  await cancelWithoutRun(taskId);
  await makeStale(runId);
  const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
  await stores.database.inSystem(async (transaction) => {
    await transaction.query({ text: 'SELECT FROM runs WHERE id = $1 FOR UPDATE' }, [runId]);
    let found: unknown[] | undefined;
    void endStray().then((runs) => (found = runs));
    while (found === undefined && (await sql(stores, blocked)).length === 0);
    expect(found).toEqual([]);
  });
  expect(await endStray()).toEqual([{ tenantId, taskId, runId }]);
});

it('runs of tasks that have them stay, however old', async () => {
  const queued = newTask();
  await stores.tasks.create(queued);
  await makeStale(queued.runId);
  const running = await startTask(stores);
  await expire(running.runId);
  expect(await endStray()).toEqual([]);
  expect(await countByState(stores)).toMatchObject({ queued: 1, running: 1 });
});
