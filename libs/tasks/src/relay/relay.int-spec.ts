import { type EventPayload, TaskState, serializePayload } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { type ClaimedRun, Database, DatabaseUnavailableError, RunStore, TaskStore } from '@baton/database';
import { createMessaging, type Messaging } from '@baton/messaging';
import { Logger, Metrics } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  createDatabase,
  DRIVERS,
  type PrivateRedis,
  startPrivateRedis,
  type TestDatabase,
} from '../../../../test/support/index.js';
import { asAdministrator } from '../../../../test/support/database.js';
import { Relay } from './relay.js';
import { userMessage } from '../../../../test/support/agents/turns.js';

const TASKS = 100;
const WATCHES = 2_000;
const POOL = 16;
/** Those of a pool of 16 that reading logs may take. */
const MAX_READS = 4;
const { TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_COMPLETED } = TaskState;

/** A store that notes who reads logs, and whose next reads may fail. */
class ObservedTasks {
  readonly store: TaskStore;
  readonly reads: string[] = [];
  failures = 0;
  maxAtOnce = 0;
  private running = 0;

  constructor(database: Database) {
    this.store = new TaskStore(database);
    const { readPage } = this.store;
    jest.spyOn(this.store, 'readPage').mockImplementation(async (key, after, page) => {
      this.reads.push(key.taskId);
      this.running += 1;
      this.maxAtOnce = Math.max(this.maxAtOnce, this.running);
      try {
        if (this.failures-- > 0) throw new DatabaseUnavailableError('away for a moment');
        return await readPage(key, after, page);
      } finally {
        this.running -= 1;
      }
    });
  }
}

const logger = Logger.silent();

describe.each(DRIVERS)('2,000 watches on %s', (driver) => {
  let testDatabase: TestDatabase;
  let redis: PrivateRedis | undefined;
  let database: Database;
  let messaging: Messaging;
  let tasks: ObservedTasks;
  let relay: Relay;
  const end = new AbortController();
  setMaxListeners(0, end.signal);

  beforeAll(async () => {
    testDatabase = await createDatabase();
    redis = driver === 'redis' ? await startPrivateRedis() : undefined;
    messaging = createMessaging({ redisUrl: redis?.url, databaseUrl: testDatabase.url, log: logger });
    await messaging.start(60_000);
    database = new Database({ url: testDatabase.url, poolSize: POOL });
    tasks = new ObservedTasks(database);
    // The slow tick does not help.
    const settings = { DATABASE_POOL_SIZE: String(POOL), RELAY_TICK_MS: '3600000' };
    const environment = loadEnvironment({ DATABASE_URL: testDatabase.url, ...settings });
    relay = new Relay(tasks.store, messaging, environment, logger, new Metrics());
    relay.onModuleInit();
  });
  afterAll(async () => {
    end.abort();
    relay.onModuleDestroy();
    await messaging.close();
    await database.close();
    await redis?.remove();
    await testDatabase.drop();
  });

  /** A task that a worker works on: its log ends at 2. */
  async function workingTask(tenantId: string): Promise<ClaimedRun> {
    const [id, runId] = [randomUUID(), randomUUID()];
    const status = { state: TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() };
    const message = userMessage('hello', { messageId: randomUUID(), contextId: '', taskId: id });
    const task = { id, contextId: id, status, artifacts: [], history: [message], metadata: undefined };
    await tasks.store.create({ tenantId, agentId: 'echo', runId, extensions: [], task });
    return (await new RunStore(database).claim(tenantId, runId, 'worker', 600_000))!;
  }

  /** Writes the next events of a task, published or not; the last one may end it. */
  async function write(
    run: ClaimedRun,
    after: number,
    states: TaskState[],
    isPublished: boolean,
  ): Promise<void> {
    const events = states.map((state) => {
      const status = { state, message: undefined, timestamp: new Date().toISOString() };
      const value = { taskId: run.taskId, contextId: run.taskId, status, metadata: undefined };
      const payload: EventPayload = { $case: 'statusUpdate', value };
      return { payload, json: serializePayload(payload) };
    });
    const over = states.at(-1) === TASK_STATE_COMPLETED;
    await new RunStore(database).append(run, {
      afterSequence: after,
      events,
      ...(over && { end: { state: TASK_STATE_COMPLETED, outcome: null, artifacts: [] } }),
    });
    const published = events.map(({ json }, i) => ({ sequence: after + 1 + i, attempt: run.attempt, json }));
    const signal = { lastSequence: after + events.length, events: published };
    if (isPublished) await messaging.publishTask(run.tenantId, run.taskId, signal);
  }

  /** Breaks the connections of messaging; resolves when they are back. */
  async function blip(): Promise<void> {
    const back = new Promise<void>((resolve) => void messaging.onSignalsMissed(resolve));
    if (redis) {
      await redis.crash();
      await redis.restart();
    } else {
      const name = new URL(testDatabase.url).pathname.slice(1);
      await asAdministrator(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '${name}'`,
      );
    }
    await back;
  }

  it('catch up after an outage with few reads, and miss and double nothing', async () => {
    const tenants = [randomUUID(), randomUUID()];
    const runs: ClaimedRun[] = [];
    for (let i = 0; i < TASKS; i++) runs.push(await workingTask(tenants[i % 2]!));
    const seen: number[][] = [];
    let ended = 0;
    let noticed: () => void = () => undefined;
    const until = async (holds: () => boolean): Promise<void> => {
      while (!holds()) await new Promise<void>((resolve) => (noticed = resolve));
    };
    const follow = async (n: number): Promise<void> => {
      const { tenantId, taskId } = runs[n % TASKS]!;
      const watch = await relay.watch({ tenantId, taskId, holder: tenantId }, 2, 2, end.signal);
      const mine: number[] = (seen[n] = []);
      void (async () => {
        for await (const events of watch.events()) {
          mine.push(...events.map(({ sequence }) => sequence));
          noticed();
        }
        ended += 1;
        noticed();
      })();
    };
    await Promise.all(Array.from({ length: WATCHES }, (_, n) => follow(n)));
    expect([relay.size, tasks.reads]).toEqual([WATCHES, []]);

    const [quiet, busy] = [runs.slice(0, TASKS / 2), runs.slice(TASKS / 2)];
    for (const run of busy) await write(run, 2, [TASK_STATE_WORKING, TASK_STATE_WORKING], false);
    tasks.failures = 3;
    await blip();
    const ofBusy = seen.filter((_, n) => n % TASKS >= TASKS / 2);
    await until(() => ofBusy.every(({ length }) => length === 2));

    expect(tasks.maxAtOnce).toBeLessThanOrEqual(MAX_READS);
    expect(tasks.maxAtOnce).toBeGreaterThan(1);
    expect(tasks.reads.filter((id) => quiet.some(({ taskId }) => taskId === id))).toEqual([]);
    // Watches of a task share a read. Those that came when it had begun share another one; three reads failed.
    expect(tasks.reads.length).toBeLessThanOrEqual(2 * busy.length + 2 * 3);

    for (const run of quiet) await write(run, 2, [TASK_STATE_COMPLETED], true);
    for (const run of busy) await write(run, 4, [TASK_STATE_COMPLETED], true);
    await until(() => ended === WATCHES);
    for (const [n, sequences] of seen.entries()) {
      expect(sequences).toEqual(n % TASKS < TASKS / 2 ? [3] : [3, 4, 5]);
    }
  });
});
