/** If Postgres stays slow but answers for this many leases, expired leases may be reclaimed all the same. */
const SLOW_LEASES = 10;

/**
 * Decides whether an expired lease means a dead worker. While Postgres is away or too slow for heartbeats, no worker
 * can extend its leases. When Postgres is back, the workers first get the time of one lease. A process that was itself
 * cut off or stopped cannot tell whether Postgres was available. It waits as well.
 *
 * Times are milliseconds of a monotonic clock.
 */
export class ReclaimGuard {
  private healthySince: number | undefined;
  private answeringSince: number | undefined;
  private lastAnswer: number | undefined;

  /** @param sweepMs longest pause between two answers when nothing is wrong */
  constructor(
    private readonly leaseMs: number,
    private readonly sweepMs: number,
  ) {}

  /** Postgres has committed something at `at`. */
  answered(at: number): void {
    const slow = at - (this.lastAnswer ?? at) > this.sweepMs + this.leaseMs / 2;
    // A process that has just started was not cut off. Workers that were cut off get half a lease.
    if (this.lastAnswer === undefined) this.healthySince = at - this.leaseMs / 2;
    else if (slow) this.healthySince = at;
    this.healthySince ??= at;
    this.answeringSince ??= at;
    this.lastAnswer = at;
  }

  /** Postgres has not answered, noticed at `at`. */
  failed(at: number): void {
    this.lastAnswer = at;
    this.healthySince = undefined;
    this.answeringSince = undefined;
  }

  /** Whether a lease that had expired by the last answer may be reclaimed. */
  get mayReclaim(): boolean {
    const { healthySince, answeringSince, lastAnswer } = this;
    if (healthySince === undefined || answeringSince === undefined || lastAnswer === undefined) return false;
    return (
      lastAnswer - healthySince >= this.leaseMs || lastAnswer - answeringSince >= this.leaseMs * SLOW_LEASES
    );
  }
}
