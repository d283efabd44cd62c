import { Environment } from '@baton/config';
import { type DeletedRows, type Retention, RetentionStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { counter, FailureLog, Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { RepeatedWork } from '../core/repeated-work.js';
import { BatchSize } from './batch-size.js';

const RETENTION_DELETED = counter('baton_retention_deleted_total', 'Rows deleted past their retention', [
  'kind',
]);

/** Most rows of one batch, which is one short transaction. */
const MAX_TASKS = 500;
const MAX_EVENTS = 5_000;
const MAX_KEYS = 2_000;
/** After each batch the database rests three times as long as it took: at most a quarter of the time is spent. */
const REST = 3;
/** In milliseconds. The lock's connection must not be idle for longer than Postgres lets it. */
const LONGEST_REST = 5_000;

/**
 * Deletes the tasks that have ended longer ago than their tenant keeps them. One worker at a time does, in small
 * batches: a task is made invisible first, and then its log goes, slice by slice. Whatever a worker that dies
 * leaves behind, the next one finds.
 */
@Injectable()
export class RetentionSweep implements OnModuleInit, OnModuleDestroy {
  private readonly repeated: RepeatedWork;
  private readonly tasks = new BatchSize(MAX_TASKS);
  private readonly events = new BatchSize(MAX_EVENTS);
  private readonly keys = new BatchSize(MAX_KEYS);
  private readonly tombstones = new BatchSize(MAX_TASKS);

  constructor(
    private readonly store: RetentionStore,
    private readonly limits: LimitsService,
    private readonly environment: Environment,
    private readonly metrics: Metrics,
    logger: Logger,
  ) {
    this.repeated = new RepeatedWork({
      everyMs: environment.retentionSweepMs,
      work: async () => {
        await this.sweep();
      },
      log: new FailureLog('The sweep of retention', logger),
    });
  }

  onModuleInit(): void {
    this.repeated.start();
  }

  /** Waits for the batch that is under way. */
  async onModuleDestroy(): Promise<void> {
    await this.repeated.stop();
  }

  /**
   * Delete all that is past its retention, unless another worker is at it.
   * @returns whether this one did it
   */
  async sweep(): Promise<boolean> {
    const retentions = await this.retentions();
    return this.store.alone(async (stillAlone) => {
      if (retentions.length > 0) {
        await this.inBatches(this.tasks, stillAlone, (size) => this.store.expire(retentions, size));
      }
      // Also when nothing is to expire any more: what was begun is brought to its end.
      await this.inBatches(this.events, stillAlone, (size) => this.store.purge(size));
      await this.inBatches(this.keys, stillAlone, (size) => this.store.dropKeys(size));
      const days = this.environment.tombstoneDays;
      await this.inBatches(this.tombstones, stillAlone, (size) => this.store.forget(days, size));
    });
  }

  private async retentions(): Promise<Retention[]> {
    const tenants = await this.limits.all();
    return tenants.flatMap(({ tenantId, limits: { retentionDays: days } }) =>
      days === null ? [] : [{ tenantId, days }],
    );
  }

  /** Until a batch finds nothing. */
  private async inBatches(
    size: BatchSize,
    stillAlone: () => Promise<void>,
    batch: (size: number) => Promise<DeletedRows>,
  ): Promise<void> {
    const { signal } = this.repeated;
    for (;;) {
      signal.throwIfAborted();
      await stillAlone();
      const start = performance.now();
      // Also when it failed: the next sweep tries fewer rows.
      const deleted = await batch(size.current).finally(() => size.took(performance.now() - start));
      if (!this.count(deleted)) return;
      await delay(Math.min((performance.now() - start) * REST, LONGEST_REST), undefined, { signal });
    }
  }

  /** @returns whether anything was deleted */
  private count(deleted: DeletedRows): boolean {
    const rows = Object.entries(deleted).filter(([, count]) => count > 0);
    for (const [kind, count] of rows) this.metrics.of(RETENTION_DELETED).inc({ kind }, count);
    return rows.length > 0;
  }
}
