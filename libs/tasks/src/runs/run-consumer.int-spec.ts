import { TaskState } from '@baton/a2a';
import type { AgentOutput, AgentRuntime, Turn } from '@baton/agents';
import { Database, TenantStore, PLATFORM_ACTOR } from '@baton/database';
import { type EagerRun, Messaging } from '@baton/messaging';
import { Metrics } from '@baton/telemetry';
import type { INestApplicationContext } from '@nestjs/common';
import { once } from 'node:events';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { ActiveRuns } from './active-runs.js';
import { RunConsumer } from './run-consumer.js';
import { compileWorker, createRun } from './worker.fixture.js';

/** An agent that answers when it is let go, or does not when its run is stopped. */
class HeldRuntime implements AgentRuntime {
  readonly name = 'held';
  readonly begun: Promise<{ runId: string; signal: AbortSignal }>;
  letGo: () => void = () => undefined;
  private begin: (first: { runId: string; signal: AbortSignal }) => void = () => undefined;

  constructor() {
    this.begun = new Promise((resolve) => (this.begin = resolve));
  }

  async *run({ task, runId }: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const free = new Promise<void>((resolve) => (this.letGo = resolve));
    this.begin({ runId, signal });
    await Promise.race([free, once(signal, 'abort')]);
    const status = { state: TaskState.TASK_STATE_COMPLETED, message: undefined, timestamp: undefined };
    const ids = { taskId: task.id, contextId: task.contextId };
    yield { $case: 'statusUpdate', value: { ...ids, status, metadata: undefined } };
  }
}

let testDatabase: TestDatabase;
let database: Database;

beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 2 });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

/** A worker with one slot. */
async function startWorker(runtime: AgentRuntime, graceMs: number): Promise<INestApplicationContext> {
  const settings = { WORKER_GRACE_MS: String(graceMs) };
  const testing = await compileWorker(testDatabase.url, () => runtime, settings);
  return testing.init();
}

/** A run on the queue; its id. */
async function order(worker: INestApplicationContext, tenantId: string): Promise<string> {
  const job = await createRun(worker, tenantId);
  await worker.get(Messaging, { strict: false }).enqueueRuns([job]);
  return job.runId;
}

const runOf = async (runId: string): Promise<object> => {
  const text = `SELECT state, attempt, deaths FROM runs WHERE id = '${runId}'`;
  return (await database.systemQuery({ text }, []))[0]!;
};

it('a worker begins a run that was claimed for it in a free slot, and gives it back to the queue if it has none', async () => {
  const runtime = new HeldRuntime();
  const testing = await compileWorker(testDatabase.url, () => runtime, { WORKER_GRACE_MS: '1' });
  const workers: string[] = [];
  let tell!: (run: EagerRun) => void;
  jest
    .spyOn(testing.get(Messaging, { strict: false }), 'receiveEagerRuns')
    .mockImplementation((workerId: string, listener: typeof tell) => {
      workers.push(workerId);
      tell = listener;
      return () => Promise.resolve();
    });
  const worker = await testing.init();
  const { id } = await worker.get(TenantStore, { strict: false }).create('stopped', PLATFORM_ACTOR);
  // No thread extends leases here, so the worker may count as cut off from Postgres, and would take no run.
  const active = worker.get(ActiveRuns, { strict: false });
  active.onHeartbeat({ type: 'back' });
  active.onPostgres = undefined;
  const [workerId = ''] = workers;
  const [first, second] = [
    await createRun(worker, id, { workerId, leaseMs: 60_000 }),
    await createRun(worker, id, { workerId, leaseMs: 60_000 }),
  ];
  tell(first);
  const { runId, signal } = await runtime.begun;
  expect(runId).toBe(first.runId);
  tell(second);
  while (JSON.stringify(await runOf(second.runId)).includes('running'));
  expect(await runOf(second.runId)).toEqual({ state: 'queued', attempt: 1, deaths: 0 });
  expect(signal.aborted).toBe(false);
  // It comes again by the queue, when the slot is free.
  while (!JSON.stringify(await runOf(second.runId)).includes('succeeded')) runtime.letGo();
  await worker.close();
  expect(await runOf(first.runId)).toEqual({ state: 'succeeded', attempt: 1, deaths: 0 });
  expect(await runOf(second.runId)).toEqual({ state: 'succeeded', attempt: 2, deaths: 0 });
});

it('a worker that shuts down lets its run end within WORKER_GRACE_MS, and takes no other', async () => {
  const runtime = new HeldRuntime();
  const worker = await startWorker(runtime, 600_000);
  const { id } = await worker.get(TenantStore, { strict: false }).create('patient', PLATFORM_ACTOR);
  const inHand = await order(worker, id);
  const { signal } = await runtime.begun;
  const other = await order(worker, id);
  const metrics = worker.get(Metrics, { strict: false });
  // The first thing that the end of the process does which has to do with runs.
  const finished = worker.get(RunConsumer, { strict: false }).beforeApplicationShutdown();
  expect(signal.aborted).toBe(false);
  runtime.letGo();
  await finished;
  await worker.close();
  expect(await runOf(inHand)).toEqual({ state: 'succeeded', attempt: 1, deaths: 0 });
  expect(await runOf(other)).toEqual({ state: 'queued', attempt: 0, deaths: 0 });
  const { body } = await metrics.render();
  expect(body).toMatch(/^baton_run_start_seconds_count 1$/m);
  expect(body).toMatch(/^baton_runs_claimed_total\{attempt="1"\} 1$/m);
  expect(body).toMatch(/^baton_run_first_output_seconds_count 1$/m);
  expect(body).toMatch(/^baton_run_seconds_count\{outcome="TASK_STATE_COMPLETED"\} 1$/m);
  expect(body).toMatch(/^baton_worker_slots\{state="taken"\} 0$/m);
  expect(body).toMatch(/^baton_database_connections\{state="awaited"\} 0$/m);
});

it('and hands back what has not ended by then, which does not count as a crash', async () => {
  const runtime = new HeldRuntime();
  const worker = await startWorker(runtime, 1);
  const { id } = await worker.get(TenantStore, { strict: false }).create('hasty', PLATFORM_ACTOR);
  await order(worker, id);
  const { runId, signal } = await runtime.begun;
  await worker.close();
  expect(signal.reason).toBe('shutdown');
  expect(await runOf(runId)).toEqual({ state: 'queued', attempt: 1, deaths: 0 });
});
