import { AgentCatalogStore, UsageStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { RepeatedWork } from '../core/repeated-work.js';

/** How often a worker checks whether a count is due. */
const CHECK_MS = 30_000;
/** The usage of a tenant with a limit is counted again after this time. */
const DUE_SECONDS = 600;
/** The usage of a tenant without a limit is counted again after this time. */
const UNLIMITED_DUE_SECONDS = 3_600;
/** The pause after each slice of a count, as a multiple of the slice's duration. */
const REST = 5;

/**
 * Counts the stored bytes of all tenants, in slices. Every turn adds its bytes to the sum of its tenant. The count adds the
 * bytes from before it, those of runs that died on every attempt, and the new messages of tenants without a limit. Deleted
 * agents whose last task is gone make room first.
 */
@Injectable()
export class UsageCount extends RepeatedWork {
  constructor(
    private readonly store: UsageStore,
    private readonly agents: AgentCatalogStore,
    private readonly limits: LimitsService,
    logger: Logger,
  ) {
    super({ everyMs: CHECK_MS, log: { name: 'The count of stored bytes', logger } });
  }

  /** Count every tenant whose count is due. Tenants take turns slice by slice, so none waits for a large one. */
  async runOnce(): Promise<void> {
    const tenants = await this.limits.all();
    const ages = tenants.map(({ tenantId, limits }) => ({
      tenantId,
      seconds: limits.storedBytes === null ? UNLIMITED_DUE_SECONDS : DUE_SECONDS,
    }));
    const due = new Set(await this.store.due(ages));
    for (const tenantId of due) await this.agents.purge(tenantId);
    while (due.size > 0) {
      for (const tenantId of due) {
        const since = performance.now();
        if (await this.store.count(tenantId, DUE_SECONDS)) due.delete(tenantId);
        await delay((performance.now() - since) * REST, undefined, { signal: this.signal });
      }
    }
  }
}
