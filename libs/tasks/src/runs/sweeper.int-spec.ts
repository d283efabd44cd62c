import { type Agent, TaskState } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { Database, RunStore, TaskStore, WorkerStore } from '@baton/database';
import type { Messaging, RunJob, TaskSignal } from '@baton/messaging';
import { Logger, Metrics, Tracing } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { SweepLeader } from '../core/sweep-leader.js';
import type { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask } from '../turns/new-task.js';
import { Sweeper } from './sweeper.js';
import { userMessage } from '../../../../test/support/agents/turns.js';

const ECHO = { id: 'echo', slug: 'echo', definition: {} } as Agent;
/** Short, so that a sweeper that has just started soon trusts a lease that has expired: after half of it. */
const LEASE_MS = 200;

let testDatabase: TestDatabase;
let database: Database;
let tasks: TaskStore;
let runs: RunStore;
let tenantId: string;
let enqueued: RunJob[];
let published: Map<string, TaskSignal>;
let refills: number;
let isQueueAway: boolean;
let metrics: Metrics;

beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 4 });
  tasks = new TaskStore(database);
  runs = new RunStore(database);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => {
  [tenantId, enqueued, published, refills, isQueueAway] = [randomUUID(), [], new Map(), 0, false];
  metrics = new Metrics();
});
// What one test leaves must be nothing to the sweepers of the next.
afterEach(() =>
  database.systemQuery({ text: "UPDATE runs SET state = 'failed', lease_expires_at = NULL" }, []),
);

function sweeper(isLeading = true, leaseMs = LEASE_MS): Sweeper {
  const environment = loadEnvironment({
    DATABASE_URL: testDatabase.url,
    LEASE_MS: String(leaseMs),
    LEASE_HEARTBEAT_MS: '100',
    // After a longer pause a sweeper trusts no lease. A slow machine must not make one.
    SWEEP_MS: '60000',
    ORPHAN_MS: '60000',
  });
  const messaging = {
    enqueueRuns: async (jobs: readonly RunJob[]) => {
      if (isQueueAway) throw new Error('the queue is away');
      enqueued.push(...jobs);
    },
    publishTask: async (_tenantId: string, taskId: string, signal: TaskSignal) =>
      void published.set(taskId, signal),
  };
  const dispatcher = { refill: () => (refills += 1) };
  const leader = new SweepLeader(runs);
  leader.assign(isLeading);
  return new Sweeper(
    runs,
    messaging as unknown as Messaging,
    dispatcher as unknown as RunDispatcher,
    leader,
    metrics,
    environment,
    Logger.silent(),
  );
}

/** A run that is claimed, by a worker that then says nothing more. */
async function claimedBy(worker: string, maxAttempts = 3): Promise<RunJob> {
  const job = await queued(maxAttempts);
  await runs.claim(tenantId, job.runId, worker, LEASE_MS, false);
  return { ...job, attempt: 1 };
}

/** A run that is on the queue according to Postgres. */
async function queued(maxAttempts = 3): Promise<RunJob> {
  let job: RunJob | undefined;
  const slots = {
    quotaFor: async () => ({ maxInFlight: null, maxWaiting: null, exact: false }),
    enqueue: async (run: RunJob) => void (job = run),
  };
  const eager = {
    claimFor: () => undefined,
    send: async () => undefined,
  };
  const message = userMessage('hello', { messageId: '', contextId: '', taskId: '' });
  const task = newTask(message, {});
  await new TurnAcceptance(tasks, slots, eager, { maxAttempts }, new Tracing()).createTask({
    tenantId,
    agent: ECHO,
    task,
  });
  return job!;
}

const stateOf = async ({ runId }: RunJob): Promise<string> => {
  const text = `SELECT state FROM runs WHERE id = '${runId}'`;
  const [row] = await database.systemQuery<{ state: string }>({ text }, []);
  return row!.state;
};

/** Sweeps as a worker does: until it trusts what it sees. */
async function sweepLongEnough(sweeping = sweeper()): Promise<void> {
  await sweeping.runOnce();
  await delay(LEASE_MS);
  await sweeping.runOnce();
}

describe('the sweep', () => {
  it('puts a run whose worker has died back on the queue', async () => {
    const run = await claimedBy('dead');
    await delay(LEASE_MS);
    await sweepLongEnough();
    expect(enqueued).toEqual([run]);
    expect(await stateOf(run)).toBe('queued');
    expect(published.size).toBe(0);
    expect((await metrics.render()).body).toMatch(/^baton_runs_requeued_total\{reason="lease expired"\} 1$/m);
  });

  it('leaves a run alone whose lease is alive', async () => {
    const job = await queued();
    await runs.claim(tenantId, job.runId, 'alive', 60_000, false);
    await sweepLongEnough();
    expect(enqueued).toEqual([]);
    expect(await stateOf(job)).toBe('running');
  });

  it('takes no lease at first: the worker may have been cut off from Postgres as well', async () => {
    const run = await claimedBy('cut off');
    await delay(LEASE_MS);
    await sweeper().runOnce();
    expect(enqueued).toEqual([]);
    expect(await stateOf(run)).toBe('running');
  });

  it('takes no lease for a while after Postgres was away: the workers first extend theirs', async () => {
    const sweeping = sweeper();
    await sweepLongEnough(sweeping);
    const run = await claimedBy('cut off');
    await database.systemQuery(
      { text: `UPDATE runs SET lease_expires_at = now() - interval '1 second' WHERE id = '${run.runId}'` },
      [],
    );
    const away = jest.spyOn(runs, 'findWork').mockRejectedValueOnce(new Error('no Postgres'));
    await expect(sweeping.runOnce()).rejects.toThrow('no Postgres');
    away.mockRestore();
    await sweeping.runOnce();
    expect(enqueued).toEqual([]);
    expect(await stateOf(run)).toBe('running');
  });

  it('fails a run whose worker died on every attempt, and its readers get the end', async () => {
    const run = await claimedBy('dead', 1);
    await delay(LEASE_MS);
    await sweepLongEnough();
    expect(enqueued).toEqual([]);
    expect(await stateOf(run)).toBe('failed');
    const stored = (await tasks.get(tenantId, run.taskId))!;
    expect(stored.task.status?.state).toBe(TaskState.TASK_STATE_FAILED);
    expect(stored.task.history.at(-1)?.parts[0]?.content?.value).toBe(
      'Given up after one attempt: the worker died or stopped answering',
    );
    const signal = published.get(run.taskId);
    expect(signal?.lastSequence).toBe(stored.sequence);
    expect(signal?.events).toMatchObject([{ sequence: stored.sequence, attempt: 1 }]);
    expect((await metrics.render()).body).toMatch(/^baton_dead_letters_total 1$/m);
  });

  it('puts a queued run on the queue that has been there for too long, once', async () => {
    const run = await queued();
    const sweeping = sweeper();
    await sweeping.runOnce();
    expect(enqueued).toEqual([]);
    const text = `UPDATE runs SET enqueued_at = enqueued_at - interval '2 minutes' WHERE id = '${run.runId}'`;
    await database.systemQuery({ text }, []);
    await sweeping.runOnce();
    await sweeping.runOnce();
    expect(enqueued).toEqual([run]);
  });

  it('ends a queued run whose task was canceled without it, and does not enqueue it', async () => {
    const run = await queued();
    const texts = [
      `UPDATE runs SET enqueued_at = enqueued_at - interval '2 minutes' WHERE id = '${run.runId}'`,
      `UPDATE tasks SET state = ${TaskState.TASK_STATE_CANCELED}, active_run_id = NULL WHERE id = '${run.taskId}'`,
    ];
    for (const text of texts) await database.systemQuery({ text }, []);
    await sweeper().runOnce();
    expect(await stateOf(run)).toBe('canceled');
    expect(enqueued).toEqual([]);
  });

  it('is left to another worker by one that is not the eldest', async () => {
    const run = await claimedBy('dead');
    await delay(LEASE_MS);
    await sweepLongEnough(sweeper(false));
    expect(enqueued).toEqual([]);
    expect(await stateOf(run)).toBe('running');
  });

  it('trusts leases at once when it takes over from a worker that died, for Postgres has taken its signs of life', async () => {
    const run = await claimedBy('dead');
    const sweeping = sweeper();
    sweeping.noteBeat(true);
    await delay(LEASE_MS);
    await sweeping.runOnce();
    expect(enqueued).toEqual([run]);
  });

  it('takes the run of a worker whose connection has ended before its lease ends, and names the worker', async () => {
    const warned = jest.spyOn(Logger.prototype, 'warn');
    const leaseMs = 2_000;
    const sweeping = sweeper(true, leaseMs);
    sweeping.noteBeat(true);
    await delay(leaseMs / 2);
    let session: string | undefined;
    const onSession = (name: string | undefined): void => void (session = name);
    const connection = new Database({ url: testDatabase.url, poolSize: 1, keepsIdle: true, onSession });
    await connection.ping();
    const worker = { id: 'cut off', host: 'h', pid: 1, concurrency: 1, session };
    await new WorkerStore(database).seen(worker, 1_000);
    const job = await queued();
    await runs.claim(tenantId, job.runId, worker.id, 1_500, false);
    await connection.close();
    const [pid] = session!.split('/');
    const open = { text: `SELECT FROM pg_stat_activity WHERE pid = ${pid}` };
    while ((await database.systemQuery(open, [])).length > 0) await delay(10);
    await sweeping.runOnce();
    expect(enqueued).toEqual([{ ...job, attempt: 1 }]);
    const died = 'workers have died: their connections have ended';
    expect(warned).toHaveBeenCalledWith(died, { workerIds: [worker.id], runs: 1 });
    warned.mockRestore();
  });

  it('dispatches nothing while no run waits', async () => {
    await queued();
    await sweeper().runOnce();
    expect(refills).toBe(0);
  });

  it('goes on while the queue is away, and has waiting runs dispatched each time', async () => {
    const run = await claimedBy('dead');
    const waiting = await queued();
    const text = `UPDATE runs SET enqueued_at = NULL WHERE id = '${waiting.runId}'`;
    await database.systemQuery({ text }, []);
    isQueueAway = true;
    await delay(LEASE_MS);
    await sweepLongEnough();
    expect(await stateOf(run)).toBe('queued');
    expect(refills).toBe(2);
  });
});
