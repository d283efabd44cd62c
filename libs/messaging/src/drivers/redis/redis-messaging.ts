import { type ConnectionOptions, createRedisBackend, type RedisQueueBackend, withBackend } from 'bullmq';
import { RateLimiterRedis } from 'rate-limiter-flexible';
import {
  type EagerRun,
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
import { SignalDecoder } from '../../signal-decoder.js';
import { encodeSignal } from '../../signal-text.js';
import { MissedSignalsListeners } from '../../missed-signals-listeners.js';
import { type MessagingLog, QuietLog } from '../../quiet-log.js';
import { RateCounters } from '../../rate-counters.js';
import { PushQueue } from '../../push-queue.js';
import { TickQueue } from '../../tick-queue.js';
import { NEWS, type Pace } from '../../job-queue.js';
import { RUN_PACE } from '../../run-queue.js';
import { RunQueues } from '../../run-queues.js';
import { consumerOptions, RedisConnection } from './redis-connection.js';
import { RedisChannels } from './redis-channels.js';
import { redisReasonOf, redisServer } from './redis-server.js';

/** Events travel with their signal up to this size. */
const SIGNAL_BYTES = 64 * 1024;
/** By the contract of `Messaging` a write rejects within 2 s. */
const ENQUEUE_MS = 1_800;
/** By the same contract a read rejects within 2 s. */
const READ_MS = 2_000;
/** Maximum in transit to a slow server. More is dropped. */
const UNDER_WAY_CHARS = 16 * 1024 * 1024;

/** Which slot of its worker an eager run may use. */
const [RESERVED, ORDINARY] = ['reserved', 'ordinary'];
/** Tenant, task, run, slot, and what is sealed. Those of release 0.2.0 end after the run, or the slot. */
const EAGER_RUN = /^(\S+) (\S+) (\S+) ?(\S*) ?(.*)$/s;

/** Messaging on Redis: BullMQ and pub/sub. The driver for production. */
export class RedisMessaging extends Messaging {
  readonly driver = 'redis';
  private readonly connection: RedisConnection;
  private readonly subscriber: RedisConnection;
  private readonly channels: RedisChannels;
  private readonly queue: RunQueues<RedisQueueBackend, ConnectionOptions>;
  private readonly ticks: TickQueue<RedisQueueBackend, ConnectionOptions>;
  private readonly pushes: PushQueue<RedisQueueBackend, ConnectionOptions>;
  private readonly signals = new SignalDecoder();
  private readonly rates: RateCounters;
  private readonly log: QuietLog;
  private readonly prefix: string;
  private readonly missed: MissedSignalsListeners;
  private underWay = 0;
  /** Signals of this process were dropped, and no listener has got the notice yet. */
  private hasDropped = false;

  /**
   * @param url as in docs/operating/redis.md. Throws if a file that it names cannot be read
   * @param namespace prefix of every key and channel
   */
  constructor(url: string, log: MessagingLog, namespace = 'baton') {
    super();
    this.log = new QuietLog(log);
    this.missed = new MissedSignalsListeners(this.log);
    const server = redisServer(url, namespace);
    const { prefix } = server;
    this.prefix = prefix;
    this.connection = new RedisConnection(server, 'producer', this.log);
    this.subscriber = new RedisConnection(server, 'subscriber', this.log);
    // Listeners learn of it first: a process that only listens makes no call that would find out.
    this.subscriber.onMoved(() => [this.connection, this.subscriber].forEach((each) => each.reconnect()));
    this.channels = new RedisChannels(this.subscriber, () => this.missed.call(), this.log);
    this.connection.client.on('ready', () => void this.tellDropped());
    this.rates = new RateCounters(
      (rate) =>
        new RateLimiterRedis({
          ...rate,
          storeClient: this.connection.client,
          keyPrefix: `${prefix}:rate`,
          rejectIfRedisNotReady: true,
          // This process refuses a key over its rate until the window ends, so a flood does not load Redis.
          inMemoryBlockOnConsumed: rate.points + 1,
        }),
      this.log,
    );
    const driver = {
      classes: withBackend<RedisQueueBackend, ConnectionOptions>(createRedisBackend),
      producer: this.connection.client,
      prefix,
    };
    const consumer = (pace: Pace) => consumerOptions(server, pace.drainDelay * 1_000);
    this.queue = new RunQueues({ ...driver, name: 'runs', consumer: consumer(RUN_PACE) }, this.log);
    this.ticks = new TickQueue({ ...driver, name: 'ticks', consumer: consumer(NEWS) }, this.log);
    this.pushes = new PushQueue({ ...driver, name: 'pushes', consumer: consumer(NEWS) }, this.log);
  }

  override async start(timeoutMs: number): Promise<void> {
    try {
      await Promise.all([this.connection.connect(timeoutMs), this.subscriber.connect(timeoutMs)]);
      const refused = this.channels.untilRefused();
      await Promise.race([this.subscribeControl(this.missed.onControl), refused]).catch((error: unknown) => {
        throw this.subscriber.away(error);
      });
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  override async enqueueRuns(jobs: readonly RunJob[]): Promise<void> {
    await this.connection.ask(ENQUEUE_MS, () => this.queue.enqueue(jobs));
  }

  override async enqueueNewRuns(jobs: readonly RunJob[]): Promise<void> {
    await this.connection.ask(ENQUEUE_MS, () => this.queue.enqueueNew(jobs));
  }

  override consumeRuns(concurrency: number, handle: RunHandler): RunConsumption {
    return this.queue.consume(concurrency, handle);
  }

  override get supportsEagerStart(): boolean {
    return this.connection.connected;
  }

  override async sendEagerRun(workerId: string, run: EagerRun): Promise<boolean | undefined> {
    if (!this.connection.connected) return false;
    this.connection.gather();
    const { tenantId, taskId, runId, mayUseReserved = false, sealed = '' } = run;
    // Workers of release 0.2.0 read three words.
    const notification = [tenantId, taskId, runId, mayUseReserved ? RESERVED : ORDINARY, sealed].join(' ');
    return this.connection
      .ask(ENQUEUE_MS, () => this.connection.publish(this.workerChannel(workerId), notification))
      .then(
        (receivers) => receivers > 0,
        () => undefined,
      );
  }

  override receiveEagerRuns(workerId: string, listener: (run: EagerRun) => void): () => Promise<void> {
    const channel = this.workerChannel(workerId);
    const { end } = this.channels.subscribe(channel, (text) => {
      const [, tenantId = '', taskId = '', runId = '', slot, sealed] = EAGER_RUN.exec(text) ?? [];
      listener({ tenantId, taskId, runId, mayUseReserved: slot === RESERVED, sealed: sealed || undefined });
    });
    return async () => {
      await this.channels.drain(channel);
      end();
    };
  }

  override setTicks(times: TickTimes): Promise<void> {
    return this.connection.ask(ENQUEUE_MS, () => this.ticks.set(times));
  }

  override stopTicks(scheduleId: string): Promise<void> {
    return this.connection.ask(ENQUEUE_MS, () => this.ticks.stop(scheduleId));
  }

  override consumeTicks(take: (tick: Tick) => Promise<void>): Consumer {
    return this.ticks.consume(take);
  }

  override enqueuePushes(jobs: readonly PushJob[]): Promise<void> {
    return this.connection.ask(ENQUEUE_MS, () => this.pushes.enqueue(jobs));
  }

  override consumePushes(concurrency: number, take: (job: PushJob) => Promise<void>): Consumer {
    return this.pushes.consume(concurrency, take);
  }

  override publishTask(tenantId: string, taskId: string, signal: TaskSignal): Promise<void> {
    return this.publish(this.taskChannel(tenantId, taskId), encodeSignal(signal, SIGNAL_BYTES));
  }

  override subscribeTask(
    tenantId: string,
    taskId: string,
    listener: (signal: TaskSignal) => void,
  ): Subscription {
    return this.channels.subscribe(this.taskChannel(tenantId, taskId), (text) =>
      listener(this.signals.decode(text)),
    );
  }

  override publishControl(message: ControlMessage): Promise<void> {
    return this.publish(this.controlChannel, JSON.stringify(message));
  }

  override async subscribeControl(listener: (message: ControlMessage) => void): Promise<Unsubscribe> {
    const { inForce, end } = this.channels.subscribe(this.controlChannel, (text) =>
      listener(JSON.parse(text) as ControlMessage),
    );
    await inForce;
    return end;
  }

  override spend(key: string, limit: number, perSeconds: number): Promise<Spending> {
    return this.rates.spend(key, limit, perSeconds);
  }

  override onSignalsMissed(listener: () => void): Unsubscribe {
    return this.missed.add(listener);
  }

  override ping(): Promise<void> {
    return this.connection.ping();
  }

  override async refusal(): Promise<string | undefined> {
    const { refusal } = this.channels;
    return refusal === undefined
      ? this.connection.refusal(`${this.prefix}:writable`)
      : redisReasonOf(refusal);
  }

  override evictionPolicy(): Promise<string | undefined> {
    return this.connection.evictionPolicy();
  }

  override queueDepth(): Promise<{ waiting: number; active: number }> {
    return this.connection.ask(READ_MS, () => this.queue.depth());
  }

  override async close(): Promise<void> {
    await Promise.all([this.queue.close(), this.ticks.close(), this.pushes.close()]);
    this.channels.close();
    this.connection.close();
  }

  private taskChannel(tenantId: string, taskId: string): string {
    return `${this.prefix}:${tenantId}:task:${taskId}`;
  }

  private workerChannel(workerId: string): string {
    return `${this.prefix}:worker:${workerId}`;
  }

  private get controlChannel(): string {
    return `${this.prefix}:control`;
  }

  /**
   * Never rejects and never queues: a signal that cannot be sent is dropped. As soon as this process can publish again, it notifies
   * all others to read what they missed. Another process may have its connection, and have compared its logs, long before.
   */
  private async publish(channel: string, text: string): Promise<void> {
    if (!this.connection.connected || this.underWay > UNDER_WAY_CHARS) {
      this.hasDropped = true;
      return;
    }
    this.underWay += text.length;
    let isPublished = false;
    try {
      this.connection.gather();
      await this.connection.publish(channel, text);
      isPublished = true;
    } catch (error) {
      this.hasDropped = true;
      this.log.warn('signal not published', error);
    } finally {
      this.underWay -= text.length;
    }
    if (isPublished && this.underWay === 0) await this.tellDropped();
  }

  private async tellDropped(): Promise<void> {
    if (!this.hasDropped || !this.connection.connected) return;
    this.hasDropped = false;
    await this.publishControl({ type: 'signals-lost' });
  }
}
