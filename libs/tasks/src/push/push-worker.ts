import { Environment } from '@baton/config';
import { PushDeliveryStore } from '@baton/database';
import { type Consumer, Messaging } from '@baton/messaging';
import { SingleFlight } from '@baton/postgres';
import { FailureLog, gauge, Logger, Metrics } from '@baton/telemetry';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { SweepLeader } from '../core/sweep-leader.js';
import { RepeatedWork } from '../core/repeated-work.js';
import { WorkerIdentity } from '../runs/worker-identity.js';
import { PushSender } from './push-sender.js';

const DEAD = gauge('baton_push_dead', 'Push configs that were given up');
const OLDEST_DUE = gauge(
  'baton_push_oldest_due_seconds',
  'For how long the oldest due push config has waited',
);

/** Jobs that wait here while this worker is at its limit. Others stay on the queue, for other workers. */
const MAX_JOBS = 4;
/** Maximum due configs that one sweep enqueues for other workers. */
const MAX_SWEPT = 100;

/**
 * Gives this worker's slots for push notifications to due configs. A job of the queue is a wake-up: something is due, and the
 * sweep finds due configs without a job. Postgres decides which configs are next.
 */
@Injectable()
export class PushWorker extends RepeatedWork implements BeforeApplicationShutdown {
  private readonly deliveries = new Set<Promise<void>>();
  private readonly abort = new AbortController();
  private readonly failures: FailureLog;
  private consumer: Consumer | undefined;
  private filling: Promise<void> = Promise.resolve();
  private isFilling = false;
  private isAskedAgain = false;
  private stopped: Promise<void> | undefined;

  constructor(
    private readonly store: PushDeliveryStore,
    private readonly sender: PushSender,
    private readonly messaging: Messaging,
    private readonly worker: WorkerIdentity,
    private readonly environment: Environment,
    leader: SweepLeader,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
  ) {
    super({ log: { name: 'The sweep of push notifications', logger } });
    leader.on('duePushes', () => this.wake());
    this.failures = new FailureLog('The delivery of push notifications', logger);
  }

  override onApplicationBootstrap(): void {
    super.onApplicationBootstrap();
    this.consumer = this.messaging.consumePushes(MAX_JOBS, () => this.onJob());
    const counting = new SingleFlight<Awaited<ReturnType<PushDeliveryStore['count']>>>();
    this.metrics.onScrape(async () => {
      const { dead, oldest } = await counting.run(() => this.store.count());
      this.metrics.get(DEAD).set(dead);
      this.metrics.get(OLDEST_DUE).set(oldest);
    });
  }

  /** Requests under way end while the runs of this worker do. */
  override async onModuleDestroy(): Promise<void> {
    await super.onModuleDestroy();
    this.stopped = this.stop();
  }

  async beforeApplicationShutdown(): Promise<void> {
    await this.stopped;
  }

  /** Take no more configs. Requests under way get the grace time to end; then their leases are given back. */
  private async stop(): Promise<void> {
    const closed = this.consumer?.close();
    await this.filling;
    const grace = new AbortController();
    const graceOver = delay(this.environment.workerGraceMs, undefined, { signal: grace.signal });
    await Promise.race([Promise.all(this.deliveries), graceOver.catch(() => undefined)]);
    grace.abort();
    if (this.deliveries.size > 0) {
      this.logger.info('returning push configs', { configs: this.deliveries.size });
      this.abort.abort();
    }
    await Promise.all([...this.deliveries, closed]);
  }

  /** A config is due without a job: a try is repeated, a worker has died, or the queue was emptied. */
  async runOnce(): Promise<void> {
    await this.fill();
    const rest = await this.store.dueTasks(MAX_SWEPT);
    await this.messaging.enqueuePushes(rest);
  }

  /** Handle a job. While all slots are taken, it waits here; so other workers get the next ones. */
  private async onJob(): Promise<void> {
    while (this.free <= 0 && !this.signal.aborted) await Promise.race(this.deliveries);
    await this.fill();
  }

  private get free(): number {
    return this.environment.pushConcurrency - this.deliveries.size;
  }

  /** Fill the free slots. One claim at a time; a request during a claim causes one more. Never rejects. */
  private fill(): Promise<void> {
    this.isAskedAgain = true;
    if (!this.isFilling) this.filling = this.fillUp();
    return this.filling;
  }

  private async fillUp(): Promise<void> {
    this.isFilling = true;
    try {
      while (this.isAskedAgain && this.free > 0 && !this.signal.aborted) {
        this.isAskedAgain = false;
        await this.claim();
      }
      this.failures.worked();
    } catch (error) {
      // The next job or the sweep tries again.
      this.failures.failed(error);
    } finally {
      this.isFilling = false;
    }
  }

  private async claim(): Promise<void> {
    const { pushPerHost: perHost, pushPerTenant: perTenant } = this.environment;
    const claimedAt = performance.now();
    const limits = { limit: this.free, perHost, perTenant };
    const claimed = await this.store.claim(this.worker.id, this.sender.leaseMs, limits);
    const signals = { stopping: this.signal, abort: this.abort.signal };
    for (const config of claimed) {
      const delivery = this.sender.deliver(config, claimedAt, signals).finally(() => {
        this.deliveries.delete(delivery);
        // Its host and its tenant have room for another one.
        void this.fill();
      });
      this.deliveries.add(delivery);
    }
  }
}
