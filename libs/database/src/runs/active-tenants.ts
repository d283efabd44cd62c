/** For so long a tenant counts as active after a write, in ms. */
const RECENT_MS = 1000;

interface Write {
  tenantId: string;
  at: number;
}

/** Whether other tenants write in this process beside one. It remembers two tenants, and so costs nothing. */
export class ActiveTenants {
  private latest: Write | undefined;
  /** The latest of another tenant than `latest`. */
  private other: Write | undefined;

  saw(tenantId: string): void {
    if (this.latest?.tenantId !== tenantId) this.other = this.latest;
    this.latest = { tenantId, at: performance.now() };
  }

  hasOthers(tenantId: string): boolean {
    const last = this.latest?.tenantId === tenantId ? this.other : this.latest;
    return last !== undefined && performance.now() - last.at < RECENT_MS;
  }
}
