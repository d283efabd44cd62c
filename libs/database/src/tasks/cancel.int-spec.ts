import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import {
  type Stores,
  beat,
  chunk,
  endTurn,
  openStores,
  sql,
  startTask,
  textMessage,
  texts,
} from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const { TASK_STATE_CANCELED, TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED } = TaskState;

/** Resolves when so many connections wait for a lock. */
async function blocked(count: number): Promise<void> {
  // Other files of tests use other databases of this server at the same time.
  const waiting = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
  while ((await sql(stores, waiting)).length < count);
}

describe('cancel', () => {
  it('ends the task with one event and takes the run from its worker', async () => {
    const run = await startTask(stores);
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'a')] });
    const result = await stores.tasks.cancel(run.tenantId, 'echo', run.taskId);
    expect(result).toMatchObject({
      ok: true,
      runId: run.runId,
      event: { sequence: 4 },
      snapshot: { sequence: 4 },
    });
    expect(await stores.runs.append(run, { afterSequence: 4, events: [chunk(run, 'late')] })).toEqual({
      ok: false,
    });
    expect(await beat(stores, [run])).toEqual([run.runId]);
    expect(await stores.runs.claim(run.tenantId, run.runId, 'other', 1000)).toBeUndefined();
    expect(await stores.tasks.cancel(run.tenantId, 'echo', run.taskId)).toEqual({
      ok: false,
      reason: 'terminal',
    });
    const events = await stores.tasks.readEvents(run.tenantId, run.taskId, 0, 100);
    expect(result.ok && result.event.payload).toEqual(events.at(-1)?.payload);
    expect(texts((await stores.tasks.get(run.tenantId, run.taskId))!.task)).toEqual(['a']);
  });

  it('leaves no run behind when it had to wait for the next turn', async () => {
    const run = await startTask(stores);
    await endTurn(stores, run, 2, TASK_STATE_INPUT_REQUIRED);
    const { tenantId, taskId } = run;
    const runId = randomUUID();
    const turn = { tenantId, agentId: 'echo', taskId, runId, message: textMessage('more'), extensions: [] };
    const both = await stores.database.inTenant(tenantId, async (transaction) => {
      await transaction.query({ text: 'SELECT FROM tasks WHERE id = $1 FOR UPDATE' }, [taskId]);
      const accepting = stores.tasks.continue(turn);
      await blocked(1);
      const canceling = stores.tasks.cancel(tenantId, 'echo', taskId);
      await blocked(2);
      return { accepting, canceling };
    });
    expect(await both.accepting).toMatchObject({ ok: true });
    expect(await both.canceling).toMatchObject({ ok: true, runId });
    expect(await sql(stores, `SELECT state FROM runs WHERE id = '${runId}'`)).toEqual([
      { state: 'canceled' },
    ]);
  });

  it.each([
    ['extends its lease', `lease_expires_at = now() + interval '1 hour'`],
    [
      'gives it back to the queue',
      `state = 'queued', worker_id = NULL, lease_expires_at = NULL, enqueued_at = now()`,
    ],
  ])('ends the run while its worker %s', async (_, change) => {
    const run = await startTask(stores);
    const { tenantId, taskId, runId } = run;
    const { canceling } = await stores.database.inTenant(tenantId, async (transaction) => {
      await transaction.query({ text: `UPDATE runs SET ${change} WHERE id = $1` }, [runId]);
      const canceling = stores.tasks.cancel(tenantId, 'echo', taskId);
      await blocked(1);
      return { canceling };
    });
    expect(await canceling).toMatchObject({ ok: true, runId });
    expect(await sql(stores, `SELECT state FROM runs WHERE id = '${runId}'`)).toEqual([
      { state: 'canceled' },
    ]);
  });

  it('keeps the metadata that an append stores while it waits', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    const { canceling } = await stores.database.inTenant(tenantId, async (transaction) => {
      await transaction.query({ text: `UPDATE tasks SET metadata = '{"said": 1}' WHERE id = $1` }, [taskId]);
      const canceling = stores.tasks.cancel(tenantId, 'echo', taskId, { metadata: { reason: 'enough' } });
      await blocked(1);
      return { canceling };
    });
    expect(await canceling).toMatchObject({ ok: true });
    const stored = await stores.tasks.get(tenantId, taskId);
    expect(stored?.task.metadata).toEqual({ said: 1, reason: 'enough' });
  });

  it('wins or loses against the last append, never both', async () => {
    for (let i = 0; i < 20; i++) {
      const run = await startTask(stores);
      const [ended, canceled] = await Promise.all([
        endTurn(stores, run, 2),
        stores.tasks.cancel(run.tenantId, 'echo', run.taskId),
      ]);
      expect(ended.ok).toBe(!canceled.ok);
      const events = await stores.tasks.readEvents(run.tenantId, run.taskId, 0, 100);
      expect(events.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
      const stored = await stores.tasks.get(run.tenantId, run.taskId);
      expect(stored?.task.status?.state).toBe(ended.ok ? TASK_STATE_COMPLETED : TASK_STATE_CANCELED);
    }
  });
});
