/** Up to this difference, the clock of the machine counts as equal to that of Postgres. */
const TOLERANCE_MS = 1_000;

/** One reading of the clock of Postgres. */
export interface ClockReading {
  /** Time of Postgres when it answered, in ms since 1970. */
  serverMs: number;
  /** When the question was sent and when the answer was there, in ms of the monotonic clock (`performance.now()`). */
  sentAt: number;
  receivedAt: number;
}

/** Time of Postgres minus that of the monotonic clock, as NTP computes it: the answer took as long as the question. */
const baseOf = ({ serverMs, sentAt, receivedAt }: ClockReading): number =>
  serverMs - (sentAt + receivedAt) / 2;

/** How uncertain a reading is. It grows with a slow answer, or a process that was stopped meanwhile. */
const errorOf = ({ sentAt, receivedAt }: ClockReading): number => (receivedAt - sentAt) / 2;

/**
 * The time by which this process accepts tokens and writes timestamps: that of Postgres, which all processes share. While the clock
 * of the machine agrees with that of Postgres, it is used. If it is wrong or jumps, the monotonic clock continues from the last
 * reading of Postgres.
 */
export class Clock {
  private base: number | undefined;
  private errorMs = Infinity;

  /** In ms since 1970. Before the first reading, the time of the machine. */
  now(): number {
    const own = Date.now();
    if (this.base === undefined) return own;
    const server = performance.now() + this.base;
    return Math.abs(own - server) <= TOLERANCE_MS ? own : Math.trunc(server);
  }

  date(): Date {
    return new Date(this.now());
  }

  /** Takes over a reading. A reading whose uncertainty exceeds the difference changes nothing. */
  adjust(reading: ClockReading): void {
    const [base, errorMs] = [baseOf(reading), errorOf(reading)];
    const isExplained = this.base !== undefined && Math.abs(base - this.base) <= errorMs + this.errorMs;
    if (isExplained && errorMs >= this.errorMs) return;
    [this.base, this.errorMs] = [base, errorMs];
  }

  /**
   * Time of the machine minus that of Postgres, in ms; 0 if the uncertainty of the reading explains it, and before the first
   * reading.
   */
  get offsetMs(): number {
    if (this.base === undefined) return 0;
    const offset = Date.now() - (performance.now() + this.base);
    return Math.abs(offset) <= this.errorMs ? 0 : offset - Math.sign(offset) * this.errorMs;
  }
}

/** The clock of this process. It has one, because it has one database. */
export const clock = new Clock();
