import { AgentCatalogStore, FailingNextStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';

/** Shortest pause: it counts the runs of a day. */
const PAUSE_MS = 5_000;

/**
 * Ends the share of versions with the label `next` that fail too often. Postgres counts and decides, so that two workers that do this
 * at once end it once.
 */
@Injectable()
export class FailingNextWatch extends RepeatedWork {
  private begunAt = -PAUSE_MS;

  constructor(
    private readonly failing: FailingNextStore,
    private readonly entries: AgentCatalogStore,
    leader: SweepLeader,
    private readonly messaging: Messaging,
    private readonly logger: Logger,
  ) {
    super({ log: { name: 'The watch of versions with the label "next"', logger } });
    leader.on('triedVersions', () => {
      if (performance.now() - this.begunAt >= PAUSE_MS) this.wake();
    });
  }

  async runOnce(): Promise<void> {
    this.begunAt = performance.now();
    for (const next of await this.failing.find()) {
      if (!(await this.entries.endNext(next))) continue;
      const { tenantId, slug: agent, ended } = next;
      this.logger.warn('a version has lost the label "next": too many of its runs failed', {
        tenantId,
        agent,
        ...ended,
      });
      // If it is lost, other processes still read the change within a second.
      await this.messaging.publishControl({ type: 'catalog-changed', tenantId }).catch(() => undefined);
    }
  }
}
