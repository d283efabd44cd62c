import { UsageHoursStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { SweepLeader } from '../core/sweep-leader.js';
import { RepeatedWork } from '../core/repeated-work.js';

/** Usage is shown by the hour: a minute late is soon enough. */
const EVERY_MS = 60_000;
/**
 * A task is added this long after its end. The end may be stored later than its timestamp: a worker keeps on trying while
 * Postgres is away, as long as it has its lease.
 */
const LAG_MS = 600_000;
/** Tasks of one transaction, so that it stays short. */
const SLICE_TASKS = 2_000;
/** The pause after each slice, as a multiple of its duration. */
const REST = 3;

/**
 * Adds ended tasks to the hours of `/v1/usage`, so that a report reads hours instead of tasks. One worker does it for all. After
 * an outage of Postgres it waits until ends of tasks from before the outage are stored.
 */
@Injectable()
export class UsageRollup extends RepeatedWork {
  /** Since when Postgres has answered each time. */
  private steadySince = performance.now();

  constructor(
    private readonly store: UsageHoursStore,
    private readonly leader: SweepLeader,
    logger: Logger,
  ) {
    super({ everyMs: EVERY_MS, log: { name: 'The roll-up of usage', logger } });
  }

  async runOnce(): Promise<void> {
    if (!this.leader.isLeader) {
      this.steadySince = performance.now();
      return;
    }
    try {
      const due = new Set(await this.store.due(LAG_MS));
      if (performance.now() - this.steadySince < LAG_MS) return;
      while (due.size > 0) {
        for (const tenantId of due) {
          const start = performance.now();
          if ((await this.store.rollUp(tenantId, LAG_MS, SLICE_TASKS)) < SLICE_TASKS) due.delete(tenantId);
          await delay((performance.now() - start) * REST, undefined, { signal: this.signal });
        }
      }
    } catch (error) {
      this.steadySince = performance.now();
      throw error;
    }
  }
}
