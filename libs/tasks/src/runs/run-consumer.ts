import { Environment } from '@baton/config';
import { type Consumer, Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { ActiveRuns } from './active-runs.js';
import { RunExecutor } from './run-executor.js';
import { WorkerIdentity } from './worker-presence.js';

/** Takes runs from the queue while the worker lives. */
@Injectable()
export class RunConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private consumer: Consumer | undefined;

  constructor(
    private readonly messaging: Messaging,
    private readonly executor: RunExecutor,
    private readonly active: ActiveRuns,
    private readonly environment: Environment,
    private readonly worker: WorkerIdentity,
    private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const { workerConcurrency } = this.environment;
    this.consumer = this.messaging.consumeRuns(workerConcurrency, (job) => this.executor.execute(job));
    this.logger.info('worker takes runs', { workerId: this.worker.id, workerConcurrency });
  }

  /** Take no more runs, let those in hand finish within the grace time, hand the rest back to the queue. */
  async beforeApplicationShutdown(): Promise<void> {
    if (!this.consumer) return;
    const finished = this.consumer.close();
    const grace = new AbortController();
    const graceOver = delay(this.environment.workerGraceMs, undefined, { signal: grace.signal });
    await Promise.race([finished, graceOver.catch(() => undefined)]);
    grace.abort();
    if (this.active.size > 0) {
      this.logger.info('handing runs back', { runs: this.active.size });
      this.active.stopAll('shutdown');
    }
    await finished;
  }
}
