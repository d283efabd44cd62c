import { Environment } from '@baton/config';
import { type DeletedRows, type Retention, RetentionStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { counter, Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { RepeatedWork } from '../core/repeated-work.js';
import { BatchSize } from './batch-size.js';

const RETENTION_DELETED = counter(
  'baton_retention_deleted_total',
  'Rows that retention has deleted, by kind',
  ['kind'],
  [{ kind: 'tasks' }, { kind: 'events' }],
);

/** Maximum number of tasks of one batch. A batch is one short transaction. */
const MAX_TASKS = 500;
/** Maximum number of events of one batch: small rows. */
const MAX_EVENTS = 5_000;
/** Maximum number of rows without content of one batch. */
const MAX_KEYS = 2_000;
/** Maximum number of rows of one batch that may be large. */
const MAX_RECORDS = 500;
/** Maximum number of archives of code of one batch. An archive has megabytes. */
const MAX_ARCHIVES = 10;
/** Tenants that a line of the log names. */
const MAX_NAMED = 5;
/** The pause after each batch, as a multiple of its duration: the sweep works at most a quarter of the time. */
const REST_FACTOR = 3;
/** Maximum pause after a batch, in ms. Postgres closes the connection of the lock if it is idle for too long. */
const MAX_REST_MS = 5_000;

/**
 * Deletes ended tasks whose retention is over. One worker at a time sweeps, in small batches. It first makes a task
 * invisible, then deletes its log in slices. If the worker dies, the next sweep continues.
 */
@Injectable()
export class RetentionSweep extends RepeatedWork {
  private readonly tasks = new BatchSize(MAX_TASKS);
  private readonly events = new BatchSize(MAX_EVENTS);
  private readonly keys = new BatchSize(MAX_KEYS);
  private readonly receivers = new BatchSize(MAX_KEYS);
  private readonly tombstones = new BatchSize(MAX_TASKS);
  private readonly audit = new BatchSize(MAX_KEYS);
  private readonly bulk = new BatchSize(MAX_RECORDS);
  private readonly archives = new BatchSize(MAX_ARCHIVES);
  private readonly callRecords = new BatchSize(MAX_RECORDS);
  private hasReported = false;

  constructor(
    private readonly store: RetentionStore,
    private readonly limits: LimitsService,
    private readonly environment: Environment,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
  ) {
    super({ everyMs: environment.retentionSweepMs, log: { name: 'The sweep of retention', logger } });
  }

  /**
   * Delete everything whose retention is over, unless another worker sweeps.
   * @returns whether this worker swept
   */
  async runOnce(): Promise<boolean> {
    await this.reportUndecided();
    const retentions = await this.retentions();
    return this.store.withLock(async (assertLocked) => {
      if (retentions.length > 0) {
        await this.inBatches(this.tasks, assertLocked, (size) => this.store.expire(retentions, size));
      }
      // Always: an earlier sweep may have left logs of invisible tasks.
      await this.inBatches(this.events, assertLocked, (size) => this.store.purge(size));
      await this.inBatches(this.keys, assertLocked, (size) => this.store.dropKeys(size));
      await this.inBatches(this.receivers, assertLocked, (size) => this.store.dropReceivers(size));
      const { tombstoneDays, auditRetentionDays, recordRetentionDays } = this.environment;
      await this.inBatches(this.callRecords, assertLocked, (size) =>
        this.store.dropCallRecords(recordRetentionDays, size),
      );
      await this.inBatches(this.bulk, assertLocked, (size) => this.store.dropBulk(size));
      await this.inBatches(this.archives, assertLocked, (size) => this.store.dropArchives(size));
      await this.inBatches(this.tombstones, assertLocked, (size) => this.store.forget(tombstoneDays, size));
      await this.inBatches(this.audit, assertLocked, (size) =>
        this.store.dropAudit(auditRetentionDays, size),
      );
    });
  }

  /** Warns once for each process. An upgrade does not delete tasks that earlier releases kept, so the operator must choose a retention. */
  private async reportUndecided(): Promise<void> {
    if (this.hasReported) return;
    const tenants = await this.limits.withoutRetention();
    this.hasReported = true;
    if (tenants.length === 0) return;
    this.logger.warn(
      'tenants of an earlier release keep their ended tasks for ever: set LIMIT_RETENTION_DAYS to a number of days, or to none',
      { tenants: tenants.length, some: tenants.slice(0, MAX_NAMED) },
    );
  }

  private async retentions(): Promise<Retention[]> {
    const tenants = await this.limits.all();
    return tenants.flatMap(({ tenantId, limits: { retentionDays: days } }) =>
      days === null ? [] : [{ tenantId, days }],
    );
  }

  /** Repeat until a batch finds nothing. */
  private async inBatches(
    size: BatchSize,
    assertLocked: () => Promise<void>,
    batch: (size: number) => Promise<DeletedRows>,
  ): Promise<void> {
    const { signal } = this;
    for (;;) {
      signal.throwIfAborted();
      await assertLocked();
      const start = performance.now();
      // Also after a failure: the next sweep then tries fewer rows.
      const deleted = await batch(size.current).finally(() => size.adaptTo(performance.now() - start));
      if (!this.countDeleted(deleted)) return;
      await delay(Math.min((performance.now() - start) * REST_FACTOR, MAX_REST_MS), undefined, { signal });
    }
  }

  /** @returns whether anything was deleted */
  private countDeleted(deleted: DeletedRows): boolean {
    const rows = Object.entries(deleted).filter(([, count]) => count > 0);
    for (const [kind, count] of rows) this.metrics.get(RETENTION_DELETED).inc({ kind }, count);
    return rows.length > 0;
  }
}
