import { Environment } from '@baton/config';
import { type LoadFailure, releaseOf, type WorkerProcess, WorkerStore } from '@baton/database';
import { FailureLog, Logger } from '@baton/telemetry';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { Lookout } from '../core/lookout.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { Sweeper } from './sweeper.js';

/** Names this process in the log and on its leases. */
@Injectable()
export class WorkerIdentity {
  readonly id = `${process.pid.toString()}-${randomUUID().slice(0, 8)}`;
}

/** Signs of life per lease. */
const BEATS = 3;
/** A worker that has been silent for this many of them leaves its sweeps to another. */
const MISSED_BEATS = 1.5;

/** Records that this worker is alive and how many runs it can execute, and learns whether it is the one that sweeps. */
@Injectable()
export class WorkerPresence implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly worker: WorkerProcess;
  private readonly everyMs: number;
  private isLeaving = false;
  private timer: NodeJS.Timeout | undefined;
  private beat: Promise<void> = Promise.resolve();
  private readonly log: FailureLog;

  constructor(
    private readonly workers: WorkerStore,
    private readonly dispatcher: RunDispatcher,
    private readonly lookout: Lookout,
    private readonly sweeper: Sweeper,
    environment: Environment,
    logger: Logger,
    { id }: WorkerIdentity,
  ) {
    const { workerConcurrency: concurrency, leaseMs } = environment;
    this.everyMs = leaseMs / BEATS;
    this.log = new FailureLog('The sign of life', logger);
    this.worker = { id, host: hostname(), pid: process.pid, concurrency, version: releaseOf() };
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.report(() => this.seen());
    await this.report(() => this.workers.forgetDead());
    this.dispatcher.refill();
    this.timer = setInterval(() => {
      this.beat = this.report(() => this.seen());
    }, this.everyMs);
    this.timer.unref();
  }

  /** Tells operators and tenants which agents in code this worker could not load, for as long as it lives. */
  reportFailures(failures: readonly LoadFailure[]): Promise<void> {
    return this.workers.reportFailures(this.worker, failures);
  }

  /** It takes no more runs from now on. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.isLeaving = true;
    this.lookout.assign(false);
    await this.beat;
    await this.report(() => this.workers.remove(this.worker.id));
  }

  private async seen(): Promise<void> {
    try {
      const self = { ...this.worker, memoryBytes: process.memoryUsage.rss() };
      const isEldest = await this.workers.seen(self, Math.ceil(this.everyMs * MISSED_BEATS));
      this.lookout.assign(isEldest && !this.isLeaving);
      this.sweeper.noteBeat(true);
    } catch (error) {
      this.sweeper.noteBeat(false);
      throw error;
    }
  }

  private async report(sign: () => Promise<void>): Promise<void> {
    await sign().then(
      () => this.log.worked(),
      (error: unknown) => this.log.failed(error),
    );
  }
}
