import { serializePayload } from '@baton/a2a';
import { Environment } from '@baton/config';
import { RunStore, type RunToEnqueue } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Dispatcher } from '../dispatch/dispatcher.js';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';

/** Rows per sweep, so that one sweep stays short whatever has piled up. */
const LIMIT = 500;

/**
 * Finds what fell through: runs whose worker died, runs that kill every worker, and queued runs that are on
 * no queue. Every worker sweeps; rows are locked, so two sweeps never take the same one.
 */
@Injectable()
export class Sweeper implements OnModuleInit, OnModuleDestroy {
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(
    private readonly runs: RunStore,
    private readonly messaging: Messaging,
    private readonly dispatcher: Dispatcher,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  onModuleInit(): void {
    this.schedule();
  }

  onModuleDestroy(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  /** One sweep. Rejects when Postgres is away; a queue that is away is left to the next sweep. */
  async sweep(): Promise<void> {
    const { maxAttempts, orphanMs } = this.environment;
    await this.failPoisoned(maxAttempts);
    await this.enqueue(await this.runs.reclaimExpired(maxAttempts, LIMIT), 'lease expired');
    await this.enqueue(await this.runs.takeOrphans(orphanMs, LIMIT), 'not on the queue for long');
    // Whoever has made a place may have died before it was given to another.
    this.dispatcher.refill();
  }

  private schedule(): void {
    // Spread the workers' sweeps.
    const wait = this.environment.sweepMs * (0.75 + Math.random() / 2);
    this.timer = setTimeout(() => void this.tick(), wait);
    this.timer.unref();
  }

  private async tick(): Promise<void> {
    try {
      await this.sweep();
    } catch (error) {
      this.logger.warn('sweep failed', { err: error });
    }
    if (!this.stopped) this.schedule();
  }

  private async failPoisoned(maxAttempts: number): Promise<void> {
    for (const run of await this.runs.failPoisoned(maxAttempts, LIMIT)) {
      const { tenantId, taskId, runId, attempt, event } = run;
      this.logger.error('run failed: its worker died on every attempt', { tenantId, taskId, runId, attempt });
      const published = { sequence: event.sequence, attempt, json: serializePayload(event.payload) };
      await this.messaging.publishTask(tenantId, taskId, {
        lastSequence: event.sequence,
        events: [published],
      });
    }
  }

  private async enqueue(runs: RunToEnqueue[], why: string): Promise<void> {
    if (runs.length === 0) return;
    this.logger.info('runs enqueued again', { count: runs.length, why });
    try {
      await this.messaging.enqueueRuns(runs);
    } catch (error) {
      this.logger.warn('queue is away', { err: error });
    }
  }
}
