import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { endTurn, newTask, openStores, sql, startTask, type Stores, textMessage } from '../stores.fixture.js';
import { TaskTreeStore } from '../index.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(() => stores.close());

const historyOf = async ({ tenantId, taskId, runId }: { tenantId: string; taskId: string; runId: string }) =>
  ((await stores.runs.histories(tenantId, taskId)).get(runId) ?? []).map(({ at, ...event }) => {
    expect(Math.abs(Date.now() - Number(at))).toBeLessThan(600_000);
    return event;
  });

describe('the history of a run', () => {
  it('has no entry while the run has one attempt', async () => {
    const run = await startTask(stores);
    await endTurn(stores, run, 2);
    expect(await stores.runs.histories(run.tenantId, run.taskId)).toEqual(new Map());
    expect(await sql(stores, `SELECT history FROM runs WHERE id = '${run.runId}'`)).toEqual([
      { history: null },
    ]);
  });

  it('has the ends of attempts, and the worker that has claimed the run again', async () => {
    const run = await startTask(stores);
    const { tenantId, runId } = run;
    await sql(stores, `UPDATE runs SET lease_expires_at = now() - interval '1 day' WHERE id = '${runId}'`);
    await stores.runs.reclaimExpired(10, (await stores.runs.findWork(60_000)).at);
    const second = await stores.runs.claim(tenantId, runId, 'w-2', 30_000);
    // The answer was lost: the same claim is made again.
    await stores.runs.claim(tenantId, runId, 'w-2', 30_000, true);
    await stores.runs.returnToQueue(second!);
    const third = await stores.runs.claim(tenantId, runId, 'w-3', 30_000);
    const taskTree = new TaskTreeStore(stores.database);
    await taskTree.suspend(third!, [randomUUID()]);
    expect(await taskTree.wake(tenantId, run.taskId)).toBe(true);
    expect(await historyOf(run)).toEqual([
      { ended: 1, why: 'crashed' },
      { claimed: 2, worker: 'w-2' },
      { ended: 2, why: 'returned' },
      { claimed: 3, worker: 'w-3' },
      { ended: 3, why: 'suspended' },
      { woken: true },
    ]);
    expect(await stores.runs.histories(randomUUID(), run.taskId)).toEqual(new Map());
  });

  it('begins with who has sent the message of the turn, which stays, and keeps the newest entries', async () => {
    const first = await startTask(stores, newTask());
    await endTurn(stores, first, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
    const { tenantId, taskId, agentId } = first;
    const turn = {
      tenantId,
      taskId,
      agentId,
      runId: randomUUID(),
      message: textMessage('more'),
      extensions: [],
    };
    await stores.tasks.continue({ ...turn, sender: 'token:ann' });
    expect(await historyOf(turn)).toEqual([{ sent: true, by: 'token:ann' }]);
    for (let i = 0; i < 60; i++) {
      await sql(stores, `UPDATE runs SET enqueued_at = now() WHERE id = '${turn.runId}'`);
      const claimed = await stores.runs.claim(tenantId, turn.runId, 'w', 30_000);
      await stores.runs.returnToQueue(claimed!);
    }
    const history = await historyOf(turn);
    expect(history).toHaveLength(100);
    expect([history[0], history.at(-1)]).toEqual([
      { sent: true, by: 'token:ann' },
      { ended: 60, why: 'returned' },
    ]);
  });
});
