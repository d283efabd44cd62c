import { TaskState } from '@baton/a2a';
import { type ClaimedRun, TaskTreeStore, WorkerStore } from '../index.js';
import { newTask, openStores, sql, startTask, type Stores } from '../stores.fixture.js';

const LIVE_MS = 60_000;
const BY = { kind: 'token', key: 'token:ann' } as const;

let stores: Stores;
let workers: WorkerStore;
beforeEach(async () => {
  stores = await openStores();
  workers = new WorkerStore(stores.database);
});
afterEach(() => stores.close());

const park = ({ tenantId, taskId, runId, attempt }: ClaimedRun, code?: string) =>
  stores.runs.park({ tenantId, taskId, runId, attempt, agent: 'trial', problem: 'Step "b" is new', code });
const live = (id: string, code: string) =>
  workers.reportCodes({ id, host: 'h', pid: 1, concurrency: 1 }, { trial: code });
const wakeParked = () => stores.runs.wakeParked(LIVE_MS, 100);
const claim = async ({ tenantId, runId }: ClaimedRun): Promise<ClaimedRun> => {
  await sql(stores, `UPDATE runs SET enqueued_at = now() WHERE id = '${runId}' AND state = 'queued'`);
  return (await stores.runs.claim(tenantId, runId, 'w', 30_000))!;
};
const runOf = async ({ tenantId, taskId }: ClaimedRun) => (await stores.runs.ofTask(tenantId, taskId))[0]!;

describe('a parked run', () => {
  it('keeps its task, counts no crash, and goes on neither by itself nor when a child ends', async () => {
    const run = await startTask(stores);
    expect(await park(run, 'old')).toBe(true);
    expect(await runOf(run)).toMatchObject({
      state: 'suspended',
      crashes: 0,
      parked: { reason: 'code-changed', problem: 'Step "b" is new', code: 'old' },
    });
    const { task } = (await stores.tasks.get(run.tenantId, run.taskId))!;
    expect(task.status?.state).toBe(TaskState.TASK_STATE_WORKING);
    const tree = new TaskTreeStore(stores.database);
    expect(await stores.runs.findWork(60_000)).toMatchObject({ waitsForTasks: false, parkedRuns: true });
    expect([
      await tree.wake(run.tenantId, run.taskId),
      await tree.wakeDue(9),
      (await tree.wakeNext(undefined, 9)).woken,
      await wakeParked(),
    ]).toEqual([false, 0, 0, 0]);
    expect((await stores.runs.histories(run.tenantId, run.taskId)).get(run.runId)).toMatchObject([
      { ended: 1, why: 'parked' },
    ]);
  });

  it('is not parked by an attempt that is over', async () => {
    const run = await startTask(stores);
    await sql(
      stores,
      `UPDATE runs SET lease_expires_at = now() - interval '1 second' WHERE id = '${run.runId}'`,
    );
    const [{ at }] = (await sql(stores, 'SELECT now()::text AS at')) as [{ at: string }];
    await stores.runs.reclaimExpired(10, at);
    expect((await claim(run)).attempt).toBe(2);
    expect(await park(run, 'old')).toBe(false);
    expect(await runOf(run)).toMatchObject({ state: 'running', parked: null });
  });

  it('goes on when a live worker has other code, and stays parked with code that is known not to fit', async () => {
    const run = await startTask(stores);
    await live('one', 'new');
    await park(run, 'new');
    expect(await wakeParked()).toBe(0);
    await live('two', 'mended');
    await sql(stores, `UPDATE workers SET seen_at = now() - interval '1 day' WHERE id = 'two'`);
    expect(await wakeParked()).toBe(0);
    await live('three', 'mended');
    expect([await wakeParked(), await wakeParked()]).toEqual([1, 0]);
    const again = await claim(run);
    expect([again.attempt, (await runOf(run)).parked]).toEqual([2, null]);
    await park(again, 'mended');
    expect(await wakeParked()).toBe(0);
  });

  it('is not taken again and again by a worker that still has the old code', async () => {
    const run = await startTask(stores);
    await live('old', 'old');
    await park(run, 'old');
    await live('new', 'new');
    expect(await wakeParked()).toBe(1);
    // The old worker was faster.
    await park(await claim(run), 'old');
    expect(await wakeParked()).toBe(0);
    await sql(stores, `UPDATE runs SET parked_at = now() - interval '2 minutes'`);
    expect(await wakeParked()).toBe(1);
    await park(await claim(run), 'old');
    await live('newer', 'new');
    expect(await wakeParked()).toBe(1);
  });

  it('continues when a person resumes it, once, with an audit record', async () => {
    const run = await startTask(stores);
    const resume = () => stores.runs.resume(run.tenantId, run.taskId, BY);
    expect(await resume()).toBe(false);
    await park(run);
    expect([await resume(), await resume()]).toEqual([true, false]);
    expect(await sql(stores, `SELECT action, actor, target FROM audit_records`)).toEqual([
      { action: 'task.resume', actor: BY.key, target: run.taskId },
    ]);
    expect((await claim(run)).attempt).toBe(2);
  });

  it('ends with its task when that is canceled', async () => {
    const run = await startTask(stores);
    await park(run, 'old');
    await live('new', 'new');
    expect(await stores.tasks.cancel(run.tenantId, null, run.taskId)).toMatchObject({ ok: true });
    expect([await wakeParked(), (await runOf(run)).state, (await runOf(run)).parked]).toEqual([
      0,
      'canceled',
      null,
    ]);
  });

  it('is in the list of parked tasks, with the reason', async () => {
    const parked = await startTask(stores);
    await startTask(stores, newTask({ tenantId: parked.tenantId }));
    const waiting = await startTask(stores, newTask({ tenantId: parked.tenantId }));
    await sql(
      stores,
      `UPDATE runs SET state = 'suspended', worker_id = NULL, lease_expires_at = NULL WHERE id = '${waiting.runId}'`,
    );
    await park(parked, 'old');
    const list = async (filter: { parked?: boolean }) => {
      const shown = { pageSize: 9, historyLength: 0, includeArtifacts: false, withFirstMessage: true };
      const { tasks } = await stores.tasks.list({ tenantId: parked.tenantId, ...shown, ...filter });
      return tasks.map(({ task, parked }) => [task.id, parked?.problem]);
    };
    expect(await list({ parked: true })).toEqual([[parked.taskId, 'Step "b" is new']]);
    expect(await list({})).toHaveLength(3);
    expect(await stores.runs.park({ ...parked, agent: 'trial', problem: 'x', code: 'x' })).toBe(false);
  });
});
