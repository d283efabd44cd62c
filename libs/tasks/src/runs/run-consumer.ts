import { Environment } from '@baton/config';
import { Messaging, type RunConsumption, type RunJob } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { EagerStart } from '../eager-start/eager-start.js';
import { ActiveRuns } from './active-runs.js';
import { WorkerIdentity } from './worker-identity.js';
import { Quarantine } from './quarantine.js';
import { ReservedSlots } from './reserved-slots.js';
import { RunExecutor } from './run-executor.js';
import { unlessCutOff } from './run-signals.js';

/** Takes runs from the queue, and those that are claimed for this worker, while it lives. */
@Injectable()
export class RunConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private consumer: RunConsumption | undefined;
  /** Ends the subscription to eager runs. */
  private unsubscribe: (() => Promise<void>) | undefined;

  constructor(
    private readonly messaging: Messaging,
    private readonly executor: RunExecutor,
    private readonly quarantine: Quarantine,
    private readonly eager: EagerStart,
    private readonly active: ActiveRuns,
    private readonly environment: Environment,
    private readonly worker: WorkerIdentity,
    private readonly reserved: ReservedSlots,
    private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const { workerConcurrency } = this.environment;
    const consumer = this.messaging.consumeRuns(workerConcurrency, (job, claimed) =>
      this.execute(job, claimed),
    );
    this.consumer = consumer;
    this.reserved.onChange(({ slots, perTenant }) => consumer.reserve(slots, perTenant));
    this.unsubscribe = this.eager.receive(this.worker.id, consumer, (run, json) =>
      this.executor.executeEager(run, json),
    );
    // A worker that does not reach Postgres can claim nothing: the jobs are for the others.
    this.active.onPostgres = (isReached) => (isReached ? consumer.resume() : consumer.pause());
    this.logger.info('worker takes runs', { workerId: this.worker.id, workerConcurrency });
  }

  private async execute(job: RunJob, claimed: () => void): Promise<void> {
    const { tenantId, runId } = job;
    // With the heartbeat on: it notices first if Postgres does not answer.
    const entering = this.active.whileClaiming(tenantId, runId, () => this.quarantine.enter(job));
    const leave = await unlessCutOff(entering, this.active.cutOff, (late) => late?.());
    if (!leave) return;
    try {
      await this.executor.execute(job, claimed);
    } finally {
      leave();
    }
  }

  /** Take no more runs, let the current ones finish within the grace time, return the rest to the queue. */
  async beforeApplicationShutdown(): Promise<void> {
    if (!this.consumer) return;
    // Runs that arrive meanwhile go back on the queue.
    const finished = Promise.all([this.consumer.close(), this.unsubscribe?.()]);
    const grace = new AbortController();
    const graceOver = delay(this.environment.workerGraceMs, undefined, { signal: grace.signal });
    await Promise.race([finished, graceOver.catch(() => undefined)]);
    grace.abort();
    if (this.active.size > 0) {
      this.logger.info('returning runs to the queue', { runs: this.active.size });
      this.active.stopAll('shutdown');
    }
    await finished;
  }
}
