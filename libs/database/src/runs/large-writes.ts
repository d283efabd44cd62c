import { RecentHolders, TimeShare } from '@baton/telemetry';
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
export class LargeWrites {
  private readonly tenants = new RecentHolders(ACTIVE_MS);
  /** Of tenants that have not paid yet. */
  private readonly shares = new Map<string, TimeShare>();

  /** The tenant writes something, large or small. */
  see(tenantId: string): void {
    this.tenants.see(tenantId);
  }

  /** Executes a large write of the tenant when it is its turn. */
  async take<Result>(tenantId: string, write: () => Promise<Result>): Promise<Result> {
    if (!this.tenants.hasOthers(tenantId)) return write();
    const waitMs = this.shares.get(tenantId)?.waitMs ?? 0;
    if (waitMs > 0) await delay(waitMs);
    const beganAt = performance.now();
    try {
      return await write();
    } finally {
      this.count(tenantId, performance.now() - beganAt);
    }
  }

  private count(tenantId: string, tookMs: number): void {
    for (const [tenant, { isPaid }] of this.shares) if (isPaid) this.shares.delete(tenant);
    const share = this.shares.get(tenantId) ?? new TimeShare(LARGE_WRITES_SHARE, BURST_MS);
    this.shares.set(tenantId, share);
    share.use(Math.min(tookMs, MAX_COUNTED_MS));
  }
}
