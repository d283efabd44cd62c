import { UsageStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { FailureLog, Logger } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { RepeatedWork } from '../core/repeated-work.js';

/** How often a worker looks whether a count is due. */
const LOOK_MS = 30_000;
/** What is added up with every turn is summed up anew after this time. */
const DUE_SECONDS = 600;
/** After each slice of a count the database rests this many times as long as it took. */
const REST = 5;

/**
 * Sums up what the tenants with a limit of stored bytes have stored, in slices. Every turn adds its bytes to the sum of
 * its tenant; the count finds what was there before the limit, and what a run that died on every attempt has left out.
 */
@Injectable()
export class UsageCount implements OnModuleInit, OnModuleDestroy {
  private readonly repeated: RepeatedWork;

  constructor(
    private readonly store: UsageStore,
    private readonly limits: LimitsService,
    logger: Logger,
  ) {
    this.repeated = new RepeatedWork({
      everyMs: LOOK_MS,
      work: () => this.countDue(),
      log: new FailureLog('The count of stored bytes', logger),
    });
  }

  onModuleInit(): void {
    this.repeated.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.repeated.stop();
  }

  /** Count every tenant whose count is due: a slice of each, again and again, so that none waits for a large one. */
  async countDue(): Promise<void> {
    const tenants = await this.limits.all();
    const limited = tenants.filter(({ limits }) => limits.storedBytes !== null);
    const ids = limited.map(({ tenantId }) => tenantId);
    const due = new Set(await this.store.due(ids, DUE_SECONDS));
    while (due.size > 0) {
      for (const tenantId of due) {
        const since = performance.now();
        if (await this.store.count(tenantId, DUE_SECONDS)) due.delete(tenantId);
        await delay((performance.now() - since) * REST, undefined, { signal: this.repeated.signal });
      }
    }
  }
}
