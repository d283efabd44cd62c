import { runningTimeout } from '@baton/postgres';

/** Part of the connections of a process that one tenant may have at the same time. */
const TENANT_SHARE = 0.5;
/** Part of the connections that no tenant gets, rounded down: a heartbeat or a sweep must not wait for slow statements of tenants. */
const PLATFORM_SHARE = 0.125;
/** A pool of so few connections has no shares: a transaction that reads on a second connection would wait for itself. */
const SMALL_POOL = 2;
/** Part of the connections that lists, searches and sums of all tenants may have, rounded down, but one at least. */
const LIST_SHARE = 0.25;

/** Numbers of connections. */
interface Bounds {
  /** All. */
  size: number;
  /** Maximum of one tenant. */
  ofTenant: number;
  /** Connections that no tenant gets. */
  ofPlatform: number;
}

interface ConnectionWaiter {
  resolve(): void;
  timer: NodeJS.Timeout;
}

/** The connections that a tenant has, and its callers that wait for one. */
interface TenantConnections {
  held: number;
  readonly waiting: ConnectionWaiter[];
}

/**
 * Shares of tenants in the connections of a process. Without them, the slow reads of one tenant would hold all connections, and the
 * statements of others would wait behind them. No tenant has more than half of the connections, and the tenant that has the fewest gets
 * the next one. The platform, which works for all tenants, has no bound, comes first, and finds a connection that tenants leave to it.
 */
export class ConnectionShares {
  private readonly shares = new Map<string, TenantConnections>();
  private held = 0;

  private constructor(
    private readonly bounds: Bounds,
    private readonly waitMs: number,
    private readonly platform: string | undefined,
  ) {}

  /**
   * Shares in all connections.
   * @param size connections of the process
   * @param waitMs how long a caller waits
   * @param platform the holder without a bound
   */
  static ofPool(size: number, waitMs: number, platform: string): ConnectionShares {
    const ofTenant = size <= SMALL_POOL ? size : Math.ceil(size * TENANT_SHARE);
    return new ConnectionShares(
      { size, ofTenant, ofPlatform: Math.floor(size * PLATFORM_SHARE) },
      waitMs,
      platform,
    );
  }

  /**
   * Shares in the connections that lists may have. All holders are tenants.
   * @param poolSize connections of the process
   * @param waitMs how long a caller waits
   */
  static ofLists(poolSize: number, waitMs: number): ConnectionShares {
    const size = Math.max(1, Math.floor(poolSize * LIST_SHARE));
    return new ConnectionShares(
      { size, ofTenant: Math.ceil(size * TENANT_SHARE), ofPlatform: 0 },
      waitMs,
      undefined,
    );
  }

  /** Callers that wait because all connections are taken (`all`), or because their tenant has its share (`share`). */
  get waiting(): { all: number; share: number } {
    const counts = { all: 0, share: 0 };
    for (const [holder, share] of this.shares)
      counts[this.hasShare(holder, share) ? 'share' : 'all'] += share.waiting.length;
    return counts;
  }

  /**
   * Resolves when the holder may have a further connection. `give` must be called when it has it no longer.
   * @throws Error like the pool, after `waitMs`
   */
  async take(holder: string): Promise<void> {
    const share = this.shares.get(holder) ?? { held: 0, waiting: [] };
    this.shares.set(holder, share);
    if (this.mayHave(holder, share)) this.grant(share);
    else await this.wait(holder, share);
  }

  /** The holder has one connection less. */
  give(holder: string): void {
    const share = this.shares.get(holder);
    if (!share) return;
    share.held -= 1;
    this.held -= 1;
    this.forget(holder, share);
    this.serveNext();
  }

  private wait(holder: string, share: TenantConnections): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = runningTimeout(() => {
        share.waiting.splice(share.waiting.indexOf(waiter), 1);
        this.forget(holder, share);
        reject(new Error('timeout exceeded when trying to connect'));
      }, this.waitMs);
      const waiter: ConnectionWaiter = { resolve, timer };
      share.waiting.push(waiter);
    });
  }

  /** The longest waiting caller of the next holder. */
  private serveNext(): void {
    const holder = this.nextHolder();
    const share = holder === undefined ? undefined : this.shares.get(holder);
    const next = share?.waiting.shift();
    if (holder === undefined || !share || !next) return;
    clearInterval(next.timer);
    // Among those with as many connections, it comes last now.
    this.shares.delete(holder);
    this.shares.set(holder, share);
    this.grant(share);
    next.resolve();
  }

  /** The platform, else the tenant that waits and has the fewest connections. */
  private nextHolder(): string | undefined {
    let next: string | undefined;
    let fewest = Infinity;
    for (const [holder, share] of this.shares) {
      if (share.waiting.length === 0 || !this.mayHave(holder, share)) continue;
      if (holder === this.platform) return holder;
      if (share.held >= fewest) continue;
      [next, fewest] = [holder, share.held];
    }
    return next;
  }

  private grant(share: TenantConnections): void {
    share.held += 1;
    this.held += 1;
  }

  private mayHave(holder: string, share: TenantConnections): boolean {
    const { size, ofPlatform } = this.bounds;
    const max = holder === this.platform ? size : size - ofPlatform;
    return this.held < max && !this.hasShare(holder, share);
  }

  private hasShare(holder: string, { held }: TenantConnections): boolean {
    return holder !== this.platform && held >= this.bounds.ofTenant;
  }

  private forget(holder: string, { held, waiting }: TenantConnections): void {
    if (held === 0 && waiting.length === 0) this.shares.delete(holder);
  }
}
