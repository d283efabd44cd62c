import {
  type GivenUp,
  PostgresPool,
  type PostgresPoolConfig,
  sessionConfig,
  SingleFlight,
} from '@baton/postgres';
import {
  createPostgresBackend,
  type PostgresConnectionOptions,
  type PostgresQueueBackend,
  runMigrations,
  withBackend,
} from 'bullmq';
import { RateLimiterPostgres } from 'rate-limiter-flexible';
import { withTimeout } from '../../with-timeout.js';
import { SignalDecoder } from '../../signal-decoder.js';
import { encodeSignal } from '../../signal-text.js';
import { MissedSignalsListeners } from '../../missed-signals-listeners.js';
import { ChannelListeners } from '../../channel-listeners.js';
import { type MessagingLog, QuietLog, connectionProblem } from '../../quiet-log.js';
import {
  type Consumer,
  type ControlMessage,
  Messaging,
  type PushJob,
  type RunConsumption,
  type RunHandler,
  type RunJob,
  type Spending,
  type Subscription,
  type TaskSignal,
  type Tick,
  type TickTimes,
  type Unsubscribe,
} from '../../messaging.js';
import { MessagingUnavailableError } from '../../messaging-unavailable-error.js';
import { RateCounters } from '../../rate-counters.js';
import { PushQueue } from '../../push-queue.js';
import { TickQueue } from '../../tick-queue.js';
import { RunQueues } from '../../run-queues.js';
import { PostgresPublisher } from './postgres-publisher.js';
import { PostgresListener } from './postgres-listener.js';

/** Schema of BullMQ's tables. BullMQ uses the same name with a pool from outside. */
const SCHEMA = 'bullmq';
/** A payload of NOTIFY has at most 8,000 bytes; the rest is for the task's ids. */
const SIGNAL_BYTES = 7_500;
/** By the contract of `Messaging` a write rejects within 2 s. */
const ENQUEUE_MS = 1_800;
/** By the same contract a read rejects within 2 s. */
const READ_MS = 2_000;
/** Longest time of a statement at the server. */
const STATEMENT_MS = 8_000;
/** Longest time for its answer: the server cancels the statement first. */
const ANSWER_MS = 10_000;
/** A server that has answered once may need this long to make BullMQ's tables on a busy machine. */
const OPEN_MS = 60_000;
/** A process that starts on a busy machine may be too slow to read the answer to its connection. */
const MAX_CONNECT_RETRIES = 20;
/** Queues of BullMQ: two of runs, one of ticks, one of pushes. */
const QUEUES = 4;

/** BullMQ's schema in Postgres. */
interface Queues {
  runs: RunQueues<PostgresQueueBackend, PostgresConnectionOptions>;
  ticks: TickQueue<PostgresQueueBackend, PostgresConnectionOptions>;
  pushes: PushQueue<PostgresQueueBackend, PostgresConnectionOptions>;
}

/**
 * Messaging on Postgres alone, without Redis: BullMQ's Postgres backend and LISTEN/NOTIFY (why:
 * docs/inside/adr/0002-postgres-channels.md). Two NOTIFY channels serve all tasks; each process picks out its own.
 */
export class PostgresMessaging extends Messaging {
  readonly driver = 'postgres';
  private readonly pool: PostgresPool;
  private readonly listener: PostgresListener;
  private readonly publisher: PostgresPublisher;
  private readonly listeners = new ChannelListeners();
  private readonly signals = new SignalDecoder();
  private readonly rates: RateCounters;
  private readonly log: QuietLog;
  private readonly missed: MissedSignalsListeners;
  private queues: Queues | undefined;
  private readonly pinging = new SingleFlight<unknown>();
  private readonly counting = new SingleFlight<{ waiting: number; active: number }>();

  /**
   * @param namespace start of the names of the queue and the channels
   * @param onGivenUp called when a connection is given up, because Postgres has not answered in time
   */
  constructor(
    private readonly databaseUrl: string,
    log: MessagingLog,
    private readonly namespace = 'baton',
    onGivenUp?: (what: GivenUp) => void,
  ) {
    super();
    this.log = new QuietLog(log);
    this.missed = new MissedSignalsListeners(this.log);
    const config = { ...poolConfig(databaseUrl), onGivenUp };
    this.pool = new PostgresPool({ ...config, answerMs: ANSWER_MS });
    this.pool.on('error', (error) => this.log.warn('Postgres connection lost (queue)', error));
    this.publisher = new PostgresPublisher(this.pool, this.log, {
      channel: this.controlChannel,
      payload: JSON.stringify({ type: 'signals-lost' } satisfies ControlMessage),
    });
    this.rates = new RateCounters(
      (rate) =>
        new RateLimiterPostgres({
          ...rate,
          storeClient: this.pool,
          storeType: 'pool',
          // The search path of the connections is BullMQ's schema; this table comes from our migrations.
          schemaName: 'public',
          tableName: 'rate_counters',
          tableCreated: true,
          keyPrefix: namespace,
          inMemoryBlockOnConsumed: rate.points + 1,
        }),
      this.log,
    );
    this.listener = new PostgresListener(
      config,
      [this.taskChannel, this.controlChannel],
      {
        notified: (channel, payload) => this.receive(channel, payload),
        reconnected: () => this.missed.call(),
      },
      this.log,
    );
  }

  override async start(timeoutMs: number): Promise<void> {
    try {
      await this.ask(timeoutMs, () => retryTimeouts(() => this.pool.query('SELECT 1')));
      await this.ask(OPEN_MS, () => this.open());
      await this.subscribeControl(this.missed.onControl);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  override async enqueueRuns(jobs: readonly RunJob[]): Promise<void> {
    await this.ask(ENQUEUE_MS, () => this.started.runs.enqueue(jobs));
  }

  override async enqueueNewRuns(jobs: readonly RunJob[]): Promise<void> {
    await this.ask(ENQUEUE_MS, () => this.started.runs.enqueueNew(jobs));
  }

  override consumeRuns(concurrency: number, handle: RunHandler): RunConsumption {
    return this.started.runs.consume(concurrency, handle);
  }

  /** NOTIFY does not report the number of listeners. */
  override get supportsEagerStart(): boolean {
    return false;
  }

  override async sendEagerRun(): Promise<boolean> {
    return false;
  }

  override receiveEagerRuns(): () => Promise<void> {
    return () => Promise.resolve();
  }

  override setTicks(times: TickTimes): Promise<void> {
    return this.ask(ENQUEUE_MS, () => this.started.ticks.set(times));
  }

  override stopTicks(scheduleId: string): Promise<void> {
    return this.ask(ENQUEUE_MS, () => this.started.ticks.stop(scheduleId));
  }

  override consumeTicks(take: (tick: Tick) => Promise<void>): Consumer {
    return this.started.ticks.consume(take);
  }

  override enqueuePushes(jobs: readonly PushJob[]): Promise<void> {
    return this.ask(ENQUEUE_MS, () => this.started.pushes.enqueue(jobs));
  }

  override consumePushes(concurrency: number, take: (job: PushJob) => Promise<void>): Consumer {
    return this.started.pushes.consume(concurrency, take);
  }

  override publishTask(tenantId: string, taskId: string, signal: TaskSignal): Promise<void> {
    const key = taskKey(tenantId, taskId);
    return this.publisher.publish(this.taskChannel, `${key}\n${encodeSignal(signal, SIGNAL_BYTES)}`);
  }

  override subscribeTask(
    tenantId: string,
    taskId: string,
    listener: (signal: TaskSignal) => void,
  ): Subscription {
    return this.listen(taskKey(tenantId, taskId), (text) => listener(this.signals.decode(text)));
  }

  override publishControl(message: ControlMessage): Promise<void> {
    return this.publisher.publish(this.controlChannel, JSON.stringify(message));
  }

  override subscribeControl(listener: (message: ControlMessage) => void): Promise<Unsubscribe> {
    const { end } = this.listen(this.controlChannel, (text) => listener(JSON.parse(text) as ControlMessage));
    return Promise.resolve(end);
  }

  override spend(key: string, limit: number, perSeconds: number): Promise<Spending> {
    return this.rates.spend(key, limit, perSeconds);
  }

  override onSignalsMissed(listener: () => void): Unsubscribe {
    return this.missed.add(listener);
  }

  /** The process itself has no use for a Postgres that refuses to write: the check of Postgres reports it. */
  override refusal(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  /** Postgres deletes nothing by itself. */
  override evictionPolicy(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  override async ping(): Promise<void> {
    if (!this.listener.connected) throw this.away('no connection for notifications');
    await this.ask(READ_MS, () => this.pinging.run(() => this.pool.query('SELECT 1')));
  }

  override queueDepth(): Promise<{ waiting: number; active: number }> {
    return this.ask(READ_MS, () => this.counting.run(() => this.started.runs.depth()));
  }

  override async close(): Promise<void> {
    const { runs, ticks, pushes } = this.queues ?? {};
    await Promise.all([runs?.close(), ticks?.close(), pushes?.close()]);
    await this.listener.close();
    if (!this.pool.ending) await this.pool.end();
  }

  private async open(): Promise<void> {
    await this.migrate();
    await this.connectPool();
    const driver = {
      classes: withBackend<PostgresQueueBackend, PostgresConnectionOptions>(createPostgresBackend),
      producer: this.pool,
      consumer: this.pool,
      prefix: this.namespace,
    };
    const runs = new RunQueues({ ...driver, name: `${this.namespace}-runs` }, this.log);
    const ticks = new TickQueue({ ...driver, name: `${this.namespace}-ticks` }, this.log);
    const pushes = new PushQueue({ ...driver, name: `${this.namespace}-pushes` }, this.log);
    this.queues = { runs, ticks, pushes };
    await Promise.all([runs.ready(), ticks.ready(), pushes.ready()]);
    await retryTimeouts(() => this.listener.start());
  }

  /** Makes the connections that the queues begin with. A queue whose first connection is not made in time never gets ready. */
  private async connectPool(): Promise<void> {
    const connect = () => retryTimeouts(() => this.pool.connect());
    const clients = await Promise.all(Array.from({ length: QUEUES }, connect));
    for (const client of clients) client.release();
  }

  /** Makes BullMQ's tables, on a connection whose statements may take longer. */
  private async migrate(): Promise<void> {
    const config = poolConfig(this.databaseUrl, { max: 1, statementMs: OPEN_MS });
    const pool = new PostgresPool({ ...config, answerMs: OPEN_MS });
    pool.on('error', () => undefined);
    try {
      const client = await retryTimeouts(() => pool.connect());
      try {
        await runMigrations(client, SCHEMA);
      } catch (error) {
        throw await explainForbidden(client, error);
      } finally {
        client.release();
      }
    } finally {
      void pool.end();
    }
  }

  private get started(): Queues {
    if (!this.queues) throw new Error('messaging is not started');
    return this.queues;
  }

  private get taskChannel(): string {
    return `${this.namespace}_tasks`;
  }

  private get controlChannel(): string {
    return `${this.namespace}_control`;
  }

  /** Every process receives the signals of every task. The first line names the task. */
  private receive(channel: string, payload: string): void {
    const end = channel === this.taskChannel ? payload.indexOf('\n') : -1;
    const key = end < 0 ? channel : payload.slice(0, end);
    if (!this.listeners.has(key)) return;
    this.listeners.dispatch(key, payload.slice(end + 1), (error) =>
      this.log.warn('channel listener failed', error),
    );
  }

  private listen(key: string, listener: (text: string) => void): Subscription {
    this.listeners.add(key, listener);
    return { inForce: Promise.resolve(), end: () => void this.listeners.remove(key, listener) };
  }

  /** The result of the work. Rejects with a plain reason after `ms`. */
  private async ask<T>(ms: number, work: () => Promise<T>): Promise<T> {
    try {
      return await withTimeout(ms, work(), 'no answer in time');
    } catch (error) {
      throw this.away(error);
    }
  }

  private away(reason: unknown): Error {
    const answered = reason instanceof Error && 'severity' in reason;
    const where = `Postgres at ${addressOf(this.databaseUrl)}`;
    return new MessagingUnavailableError(
      `${where} ${answered ? 'answers' : 'does not answer'}: ${connectionProblem(reason)}`,
    );
  }
}

/**
 * Tries again while no connection is made in time: a process that starts on a busy machine may be too slow to read the
 * answer. Rejects at once if the server refuses. Not `retryTransient` of libs/database: that one waits until an outage is
 * over, and a start must fail then.
 */
async function retryTimeouts<T>(connect: () => Promise<T>): Promise<T> {
  for (let retries = MAX_CONNECT_RETRIES; ; retries--) {
    try {
      return await connect();
    } catch (error) {
      if (retries === 0 || !/timeout/i.test(connectionProblem(error))) throw error;
    }
  }
}

function taskKey(tenantId: string, taskId: string): string {
  return `${tenantId}:${taskId}`;
}

/** The connection options of every connection of this driver. Its `search_path` is BullMQ's schema. */
function poolConfig(
  databaseUrl: string,
  { max = 5, statementMs = STATEMENT_MS }: { max?: number; statementMs?: number } = {},
): PostgresPoolConfig {
  return {
    // Nothing here has to survive a crash of the server (runs are enqueued again from their rows), so no commit waits for
    // the disk.
    ...sessionConfig(databaseUrl, {
      synchronous_commit: 'off',
      search_path: SCHEMA,
      statement_timeout: String(statementMs),
      idle_in_transaction_session_timeout: String(statementMs),
    }),
    max,
    connectMs: 1_500,
    application_name: 'baton-messaging',
  };
}

/** Where the server is, without user or password. */
function addressOf(databaseUrl: string): string {
  const { hostname, port, searchParams } = new URL(databaseUrl);
  return `${hostname || searchParams.get('host') || 'localhost'}:${port || 5432}`;
}

/** The part of a client of the pool that is needed here. */
interface OwnerQuery {
  query(text: string, values: string[]): Promise<{ rows: { owner: string }[] }>;
}

/** SQLSTATEs of statements in a schema that the role may not use. */
const FORBIDDEN = ['3F000', '42501'];

/** The error of Postgres. If BullMQ's schema belongs to another role, its message names the role and the remedy. */
async function explainForbidden(client: OwnerQuery, error: unknown): Promise<unknown> {
  const isForbidden = error instanceof Error && 'code' in error && FORBIDDEN.includes(String(error.code));
  if (!isForbidden) return error;
  const { rows } = await client.query(
    'SELECT nspowner::regrole::text AS owner FROM pg_namespace WHERE nspname = $1',
    [SCHEMA],
  );
  if (rows[0]) {
    error.message =
      `the schema "${SCHEMA}" belongs to the role "${rows[0].owner}", and the role of DATABASE_URL may not use it. ` +
      `Nothing is lost with it: stop Baton, run DROP SCHEMA ${SCHEMA} CASCADE as that role, and start Baton again.`;
  }
  return error;
}
