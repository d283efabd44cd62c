import type { GivenUp } from '@baton/postgres';
import { Database, type DatabaseOptions } from '../../connection/database.js';
import { heartbeat } from './heartbeat.js';
import { type LeaseKey, type LostLease, nameOf } from './lease-key.js';

export interface BeatOptions {
  databaseUrl: string;
  systemKey?: string | undefined;
  workerId: string;
  leaseMs: number;
  heartbeatMs: number;
  /** Maximum silence of the main thread before its runs are given up, in milliseconds. */
  loopStallMs: number;
}

/** Messages of the lease thread. */
export type HeartbeatEvent =
  | { type: 'lost'; leases: LostLease[] }
  | { type: 'failed'; reason: string }
  | { type: 'back' }
  | { type: 'stalled'; forMs: number }
  | { type: 'timeout'; what: GivenUp }
  | { type: 'session'; name: string | undefined };

/**
 * Pause after a failed beat. It is short: when Postgres is back, the leases must be extended before the sweeper may take
 * them.
 */
const RETRY_MS = 200;

/**
 * Extends the leases of a process again and again, over a connection of its own, until it is closed. A main thread that
 * is silent for long counts as dead. Its leases then expire.
 */
export class LeaseBeat {
  private readonly database: Database;
  private timer: NodeJS.Timeout | undefined;
  private closed = false;
  private failing = false;
  private stalled = false;

  /**
   * @param held the leases to extend, as of now
   * @param silentForMs how long the main thread has not answered
   * @param publish called with each result of a heartbeat
   */
  constructor(
    private readonly options: BeatOptions,
    private readonly held: () => LeaseKey[],
    private readonly silentForMs: () => number,
    private readonly publish: (event: HeartbeatEvent) => void,
  ) {
    this.database = new Database({
      ...connectionOf(options),
      onGivenUp: (what) => this.publish({ type: 'timeout', what }),
      onSession: (name) => this.publish({ type: 'session', name }),
    });
    // At once: until its session is in the table, other workers wait for the ends of its leases.
    this.schedule(0);
  }

  async close(): Promise<void> {
    this.closed = true;
    clearTimeout(this.timer);
    await this.database.close();
  }

  private schedule(afterMs: number): void {
    if (this.closed) return;
    this.timer = setTimeout(() => {
      void this.beat().then((ok) => this.schedule(ok ? this.options.heartbeatMs : RETRY_MS));
    }, afterMs);
  }

  private async beat(): Promise<boolean> {
    // After a failure it continues without leases, to find out when Postgres is back. And its session in the table shows that the worker lives.
    const keys = this.held();
    const isConnected = this.database.connections.idle > 0;
    const isIdle = keys.length === 0 && isConnected && !this.failing;
    if (isIdle || this.isStalled()) return true;
    const { workerId, leaseMs } = this.options;
    try {
      this.report(await heartbeat(this.database, keys, workerId, leaseMs));
      return true;
    } catch (error) {
      if (!this.failing && !this.closed) this.publish({ type: 'failed', reason: messageOf(error) });
      this.failing = true;
      return false;
    }
  }

  private report(lost: LostLease[]): void {
    if (this.failing) this.publish({ type: 'back' });
    this.failing = false;
    if (lost.length === 0) return;
    // A run that was released meanwhile is not lost.
    const held = new Set(this.held().map(nameOf));
    const leases = lost.filter((lease) => held.has(nameOf(lease)));
    if (leases.length > 0) this.publish({ type: 'lost', leases });
  }

  private isStalled(): boolean {
    const forMs = this.silentForMs();
    const stalled = forMs > this.options.loopStallMs;
    if (stalled && !this.stalled) this.publish({ type: 'stalled', forMs });
    this.stalled = stalled;
    return stalled;
  }
}

/** As in @baton/telemetry, which this thread does not load. */
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/**
 * An answer that takes longer than a lease is of no use: better a new connection. Whether row-level security binds
 * the role was checked when the process started, and heartbeats are for the runs of all tenants anyway.
 */
const connectionOf = ({ databaseUrl, systemKey, leaseMs }: BeatOptions): DatabaseOptions => ({
  url: databaseUrl,
  systemKey,
  poolSize: 1,
  keepsIdle: true,
  allowRlsBypass: true,
  timeouts: { connectMs: leaseMs, statementMs: leaseMs, answerMs: leaseMs },
});
