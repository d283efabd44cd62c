import { TaskState, taskStateToJSON } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { until } from '../../../../test/support/until.js';
import {
  endTurn,
  openStores,
  saidIn,
  sql,
  startTask,
  status,
  type Stores,
  textMessage,
} from '../stores.fixture.js';
import type { ClaimedRun } from './task-records.js';
import { TaskTreeStore } from '../index.js';

const { TASK_STATE_AUTH_REQUIRED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING } = TaskState;
const LIMIT = 100;
const AN_HOUR = 3_600_000;

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(() => stores.close());
// Tasks of other tests must not be due.
beforeEach(() => sql(stores, 'UPDATE tasks SET wakes_at = NULL'));

/** A task that asks, and continues after a time. */
async function asking(wakeInMs = 0, state?: TaskState): Promise<ClaimedRun> {
  const run = await startTask(stores);
  await ask(run, 2, wakeInMs, state);
  return run;
}

const ask = (run: ClaimedRun, afterSequence: number, wakeInMs?: number, state = TASK_STATE_INPUT_REQUIRED) =>
  stores.runs.append(run, {
    afterSequence,
    events: [status(run, state, textMessage('When?'))],
    end: { state, outcome: null, wakeInMs },
  });

const answer = ({ tenantId, taskId }: ClaimedRun) =>
  stores.tasks.continue({
    tenantId,
    taskId,
    agentId: 'echo',
    runId: randomUUID(),
    message: textMessage('Monday'),
    extensions: [],
  });

/** Puts its run on the queue and claims it. */
async function claimAgain({ tenantId, runId }: ClaimedRun): Promise<ClaimedRun | undefined> {
  await stores.dispatch.dispatch([{ tenantId, slots: 1, maxInFlight: null }], 100, { upTo: 1, slots: 0 });
  return stores.runs.claim(tenantId, runId, 'w-2', 30_000);
}

const logOf = async ({ tenantId, taskId }: ClaimedRun): Promise<string[]> =>
  (await stores.tasks.readEvents(tenantId, taskId, 0, 100)).map(({ payload }) =>
    payload.$case === 'statusUpdate'
      ? taskStateToJSON(payload.value.status!.state).replace('TASK_STATE_', '')
      : payload.$case,
  );

describe('a task that asks, and goes on without an answer when its time has come', () => {
  it('works again in the same run, with the same message and no message more', async () => {
    const run = await asking();
    const { tenantId, taskId, runId } = run;
    const [woken] = await stores.tasks.wakeAsking(LIMIT);
    expect(woken).toMatchObject({ tenantId, taskId, event: { sequence: 4 }, hasPushConfigs: false });
    const again = await claimAgain(run);
    expect(again).toMatchObject({ runId, attempt: 2, message: run.message, workingEvent: null });
    expect(saidIn(again!.snapshot.task.history)).toEqual(['hello', 'When?']);
    expect(again!.snapshot).toMatchObject({ sequence: 4, task: { status: { state: TASK_STATE_WORKING } } });
    expect(await endTurn(stores, again!, 4)).toMatchObject({ ok: true });
    expect(await logOf(run)).toEqual(['task', 'WORKING', 'INPUT_REQUIRED', 'WORKING', 'COMPLETED']);
    const history = (await stores.runs.histories(tenantId, taskId)).get(runId) ?? [];
    expect(history.map(({ at: _, ...event }) => event)).toEqual([
      { ended: 1, why: 'suspended' },
      { woken: true },
      { claimed: 2, worker: 'w-2' },
    ]);
  });

  it('is found by the sweep then, and not before', async () => {
    const run = await asking(AN_HOUR);
    // The end of a lease may come sooner.
    await sql(stores, `UPDATE runs SET lease_expires_at = NULL`);
    const found = await stores.runs.findWork(60_000);
    expect(found.unansweredTasks).toBe(false);
    expect(found.nextMs).toBeGreaterThan(AN_HOUR / 2);
    expect(found.nextMs).toBeLessThanOrEqual(AN_HOUR);
    expect(await stores.tasks.wakeAsking(LIMIT)).toEqual([]);
    expect(await new TaskTreeStore(stores.database).find(run.tenantId, run.taskId)).toMatchObject({
      wakesAt: expect.any(Date) as Date,
    });
    await sql(stores, `UPDATE tasks SET wakes_at = now() - interval '1 second' WHERE id = '${run.taskId}'`);
    expect((await stores.runs.findWork(60_000)).unansweredTasks).toBe(true);
  });

  it('waits for an answer for no shorter than its time', async () => {
    const run = await startTask(stores);
    const since = performance.now();
    await ask(run, 2, 300);
    await until(async () => (await stores.tasks.wakeAsking(LIMIT)).length > 0);
    // The clock of Postgres is another one.
    expect(performance.now() - since).toBeGreaterThan(300 - 50);
  });

  it('goes on at once if its caller has signed in before it has asked for that', async () => {
    const signedIn = await asking(AN_HOUR, TASK_STATE_AUTH_REQUIRED);
    const [signsIn, other] = [await asking(AN_HOUR, TASK_STATE_AUTH_REQUIRED), await asking(AN_HOUR)];
    const { tenantId, taskId } = signsIn;
    await sql(stores, `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${tenantId}')`);
    await sql(
      stores,
      `INSERT INTO oauth_sign_ins (tenant_id, id, ticket, resource, agent, settings, task_id, created_by, expires_at)
       VALUES ('${tenantId}', gen_random_uuid(), 't', 'r', 'echo', '{}', '${taskId}', 'c', now() + interval '1 hour')`,
    );
    for (const run of [signedIn, signsIn, other]) await stores.tasks.wakeSignedIn(run.tenantId, run.taskId);
    expect((await stores.tasks.wakeAsking(LIMIT)).map((woken) => woken.taskId)).toEqual([signedIn.taskId]);
  });

  it('refuses an answer from then on, with the reason, until it asks again', async () => {
    const run = await asking();
    await stores.tasks.wakeAsking(LIMIT);
    expect(await answer(run)).toEqual({ ok: false, reason: 'late' });
    const again = await claimAgain(run);
    await stores.runs.append(again!, { afterSequence: 4, events: [status(run, TASK_STATE_WORKING)] });
    expect(await answer(run)).toEqual({ ok: false, reason: 'late' });
    await ask(again!, 5);
    expect(await stores.tasks.wakeAsking(LIMIT)).toEqual([]);
    expect(await answer(run)).toMatchObject({ ok: true });
    expect(await answer(run)).toEqual({ ok: false, reason: 'busy' });
  });

  it.each<[string, (run: ClaimedRun) => Promise<{ ok: boolean }>]>([
    ['was answered', answer],
    ['was canceled', ({ tenantId, taskId }) => stores.tasks.cancel(tenantId, null, taskId)],
  ])('does not go on if it %s', async (_, change) => {
    const run = await asking();
    expect(await change(run)).toMatchObject({ ok: true });
    expect(await stores.tasks.wakeAsking(LIMIT)).toEqual([]);
    expect((await stores.runs.findWork(60_000)).unansweredTasks).toBe(false);
  });

  it('forgets the time that a process of the last release has left, and looks for it once', async () => {
    const run = await asking(AN_HOUR);
    await answer(run);
    await sql(
      stores,
      `UPDATE tasks SET wakes_at = now() - interval '1 second', wakes_run_id = '${run.runId}' WHERE id = '${run.taskId}'`,
    );
    expect(await stores.tasks.wakeAsking(LIMIT)).toEqual([]);
    expect((await stores.runs.findWork(60_000)).unansweredTasks).toBe(false);
  });

  it('goes on or takes the answer, whole and once, when both come at the same moment', async () => {
    const runs = await Promise.all(Array.from({ length: 40 }, async () => asking()));
    const [answers, ...sweeps] = await Promise.all([
      Promise.all(runs.map(answer)),
      ...Array.from({ length: 6 }, () => stores.tasks.wakeAsking(10)),
    ]);
    const woken = sweeps.flat().map(({ taskId }) => taskId);
    expect(new Set(woken).size).toBe(woken.length);
    const rest = (await stores.tasks.wakeAsking(LIMIT)).map(({ taskId }) => taskId);
    for (const [i, run] of runs.entries()) {
      const isAnswered = answers[i]!.ok;
      expect([isAnswered, [...woken, ...rest].includes(run.taskId)]).toEqual([isAnswered, !isAnswered]);
      const log = await logOf(run);
      expect(log.slice(3)).toEqual([isAnswered ? 'SUBMITTED' : 'WORKING']);
      const states = await sql(
        stores,
        `SELECT state FROM runs WHERE task_id = '${run.taskId}' ORDER BY created_at`,
      );
      const queued = { state: 'queued' };
      expect(states).toEqual(isAnswered ? [{ state: 'succeeded' }, queued] : [queued]);
    }
  });
});
