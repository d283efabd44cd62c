import { RecentHolders } from '@baton/telemetry';
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
  /** When the time that a tenant has taken is paid: a ms of it for `1 / LARGE_WRITES_SHARE` ms. Past times are dropped. */
  private readonly paidAt = new Map<string, number>();

  /** The tenant writes something, large or small. */
  see(tenantId: string): void {
    this.tenants.see(tenantId);
  }

  /** Executes a large write of the tenant when it is its turn. */
  async take<Result>(tenantId: string, write: () => Promise<Result>): Promise<Result> {
    if (!this.tenants.hasOthers(tenantId)) return write();
    const aheadMs = (this.paidAt.get(tenantId) ?? 0) - performance.now() - BURST_MS / LARGE_WRITES_SHARE;
    if (aheadMs > 0) await delay(aheadMs);
    const beganAt = performance.now();
    try {
      return await write();
    } finally {
      this.pay(tenantId, performance.now() - beganAt);
    }
  }

  private pay(tenantId: string, tookMs: number): void {
    const now = performance.now();
    for (const [tenant, at] of this.paidAt) if (at <= now) this.paidAt.delete(tenant);
    const from = this.paidAt.get(tenantId) ?? now - tookMs;
    this.paidAt.set(tenantId, from + Math.min(tookMs, MAX_COUNTED_MS) / LARGE_WRITES_SHARE);
  }
}
