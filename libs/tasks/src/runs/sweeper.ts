import { serializePayload } from '@baton/a2a';
import { Environment } from '@baton/config';
import { RunStore, type RunToEnqueue } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { counter, Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { givenUpText } from '../core/errors.js';
import { MAX_PAUSE, RepeatedWork } from '../core/repeated-work.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { ReclaimGuard } from './reclaim-guard.js';

const DEAD_LETTERS = counter('baton_dead_letters_total', 'Runs that used up their attempts');

/** Rows per sweep, so that a sweep stays short. */
const LIMIT = 500;

/**
 * Finds three kinds of runs: runs whose worker died, runs that kill every worker, and queued runs that are on no queue.
 * Every worker sweeps. Rows are locked, so two sweeps never take the same run. After an outage of Postgres the live
 * workers first get the time to extend their leases (`ReclaimGuard`).
 */
@Injectable()
export class Sweeper extends RepeatedWork {
  private readonly reclaimGuard: ReclaimGuard;

  constructor(
    private readonly runs: RunStore,
    private readonly messaging: Messaging,
    private readonly dispatcher: RunDispatcher,
    private readonly metrics: Metrics,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {
    super({ everyMs: environment.sweepMs, log: { name: 'The sweep of runs', logger } });
    this.reclaimGuard = new ReclaimGuard(environment.leaseMs, environment.sweepMs * MAX_PAUSE);
  }

  /** One sweep. Rejects when Postgres is away; a queue that is away is left to the next sweep. */
  async runOnce(): Promise<void> {
    const { staleQueuedRunMs } = this.environment;
    const expiredAt = await this.askPostgres();
    if (this.reclaimGuard.mayReclaim) {
      await this.failPoisoned(expiredAt);
      this.enqueue(await this.runs.reclaimExpired(LIMIT, expiredAt), 'lease expired');
    }
    this.enqueue(await this.runs.takeStaleQueued(staleQueuedRunMs, LIMIT), 'missing on the queue');
    // A process may have died after it freed a dispatch slot and before a waiting run got it.
    this.dispatcher.refill();
  }

  /** The clock of Postgres at a moment at which it certainly took heartbeats. */
  private async askPostgres(): Promise<string> {
    try {
      const at = await this.runs.proveWritable();
      this.reclaimGuard.answered(performance.now());
      return at;
    } catch (error) {
      this.reclaimGuard.failed(performance.now());
      throw error;
    }
  }

  private async failPoisoned(expiredAt: string): Promise<void> {
    for (const run of await this.runs.failPoisoned(LIMIT, expiredAt, givenUpText)) {
      const { tenantId, taskId, runId, attempt, event } = run;
      this.metrics.of(DEAD_LETTERS).inc();
      this.logger.error('run failed: its worker died on every attempt', { tenantId, taskId, runId, attempt });
      const published = { sequence: event.sequence, attempt, json: serializePayload(event.payload) };
      await this.messaging.publishTask(tenantId, taskId, {
        lastSequence: event.sequence,
        events: [published],
      });
      await this.runs.keepArtifacts(tenantId, taskId);
    }
  }

  /** Not awaited: a queue that is away must not keep the sweeper from asking Postgres. */
  private enqueue(runs: RunToEnqueue[], why: string): void {
    if (runs.length === 0) return;
    this.logger.info('runs enqueued again', { count: runs.length, why });
    this.messaging.enqueueRuns(runs).catch((error: unknown) => {
      this.logger.warn('queue is away', { err: error });
    });
  }
}
