import { Environment } from '@baton/config';
import { type WorkerProcess, WorkerStore } from '@baton/database';
import { FailureLog, Logger } from '@baton/telemetry';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';

/** Names this process in the log and on its leases. */
@Injectable()
export class WorkerIdentity {
  readonly id = `${process.pid.toString()}-${randomUUID().slice(0, 8)}`;
}

/** Records that this worker is alive and how many runs it can execute. */
@Injectable()
export class WorkerPresence implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly worker: WorkerProcess;
  private timer: NodeJS.Timeout | undefined;
  private beat: Promise<void> = Promise.resolve();
  private readonly log: FailureLog;

  constructor(
    private readonly workers: WorkerStore,
    private readonly dispatcher: RunDispatcher,
    private readonly environment: Environment,
    logger: Logger,
    { id }: WorkerIdentity,
  ) {
    const { workerConcurrency: concurrency } = environment;
    this.log = new FailureLog('The sign of life', logger);
    this.worker = { id, host: hostname(), pid: process.pid, concurrency };
  }

  async onApplicationBootstrap(): Promise<void> {
    await this.report(() => this.workers.seen(this.worker));
    await this.report(() => this.workers.forgetDead());
    this.dispatcher.refill();
    this.timer = setInterval(() => {
      this.beat = this.report(() => this.workers.seen(this.worker));
    }, this.environment.leaseHeartbeatMs);
    this.timer.unref();
  }

  /** It takes no more runs from now on. */
  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    await this.beat;
    await this.report(() => this.workers.remove(this.worker.id));
  }

  private async report(sign: () => Promise<void>): Promise<void> {
    await sign().then(
      () => this.log.worked(),
      (error: unknown) => this.log.failed(error),
    );
  }
}
