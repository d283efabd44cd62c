import { RecentHolders, TimeShares } from '@baton/telemetry';
import { setTimeout as delay } from 'node:timers/promises';

/** Part of the time that the large writes of one tenant may take in a process while other tenants write. */
const LARGE_WRITES_SHARE = 0.25;
/** Time in ms of large writes that a tenant may take at once before its share counts: some 20 MB. */
const BURST_MS = 500;
/** Maximum time in ms that counts for a write. A longer one waited for Postgres, and not for its own bytes. */
const MAX_COUNTED_MS = 250;
/** How long a tenant counts as active after its last write, in ms. A person who calls an agent again is still active. */
const ACTIVE_MS = 10_000;

/**
 * A share of the time for the large writes of a tenant. Each byte that a run appends costs a worker, Postgres, Redis and an API some time,
 * and sixty runs that append without end keep all cores busy. While other tenants write, a tenant that is ahead of its share waits. Then its
 * runs wait for the log, and their agents for them.
 */
export class LargeWriteShares {
  private readonly tenants = new RecentHolders(ACTIVE_MS);
  private readonly shares = new TimeShares({ share: LARGE_WRITES_SHARE, burstMs: BURST_MS });

  /** Notes a write of the tenant, large or small. While it is recent, other tenants are held to their share. */
  noteWrite(tenantId: string): void {
    this.tenants.noteUse(tenantId);
  }

  /** Executes a large write of the tenant. It waits first while other tenants write and the tenant is ahead of its share. */
  async runLargeWrite<Result>(tenantId: string, write: () => Promise<Result>): Promise<Result> {
    if (!this.tenants.hasOthers(tenantId)) return write();
    const waitMs = this.shares.waitMs(tenantId);
    if (waitMs > 0) await delay(waitMs);
    const beganAt = performance.now();
    try {
      return await write();
    } finally {
      this.shares.use(tenantId, Math.min(performance.now() - beganAt, MAX_COUNTED_MS));
    }
  }
}
