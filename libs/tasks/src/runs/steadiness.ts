/** After so many leases of answers, however slow, a lease that has run out counts all the same. */
const SLOW_LEASES = 10;

/**
 * Whether Postgres has answered this process well enough that a silent lease means a dead worker. While Postgres
 * is away, or too slow for heartbeats, no worker can extend its leases: when it is back, they must get the time
 * to. A process that was itself cut off or stopped knows nothing of that time, so it waits as well.
 *
 * Times are milliseconds of a clock that never jumps.
 */
export class Steadiness {
  private steadySince: number | undefined;
  private answeringSince: number | undefined;
  private lastAnswer: number | undefined;

  /** @param sweepMs longest pause between two questions when nothing is wrong */
  constructor(
    private readonly leaseMs: number,
    private readonly sweepMs: number,
  ) {}

  /** Postgres has committed at `at`. */
  answered(at: number): void {
    const slow = at - (this.lastAnswer ?? at) > this.sweepMs + this.leaseMs / 2;
    // One that has just started was not cut off: half the time is enough for whoever was.
    if (this.lastAnswer === undefined) this.steadySince = at - this.leaseMs / 2;
    else if (slow) this.steadySince = at;
    this.steadySince ??= at;
    this.answeringSince ??= at;
    this.lastAnswer = at;
  }

  /** Postgres did not answer. */
  failed(at: number): void {
    this.lastAnswer = at;
    this.steadySince = undefined;
    this.answeringSince = undefined;
  }

  /** Whether a lease that had run out by the last answer may be taken. */
  get isSteady(): boolean {
    const { steadySince, answeringSince, lastAnswer } = this;
    if (steadySince === undefined || answeringSince === undefined || lastAnswer === undefined) return false;
    return (
      lastAnswer - steadySince >= this.leaseMs || lastAnswer - answeringSince >= this.leaseMs * SLOW_LEASES
    );
  }
}
