import { CronExpression } from './cron-expression.js';
import { ZoneClock } from './zone-clock.js';

/** Maximum number of changes of the clocks that a search passes. Two years have four. */
const MAX_CHANGES = 64;

/**
 * The times of a cron expression in a time zone. All times are ms since 1970. A search takes well under a millisecond for
 * every expression and zone.
 *
 * An expression with a time in every hour fires whenever the clock shows one of its times, so it follows real time. Other
 * expressions have local times: one that the clocks skip is later by as much as they skip, and one that they show twice
 * counts once, the first time.
 */
export class CronTimes {
  private readonly expression: CronExpression;
  private readonly clock: ZoneClock;

  /** @throws Error with a plain reason if the expression or the time zone is invalid */
  constructor(cron: string, timeZone: string) {
    this.expression = new CronExpression(cron);
    this.clock = new ZoneClock(timeZone);
  }

  /** The first time after `after`; undefined = there is none within eight years. */
  next(after: number): number | undefined {
    return this.expression.isEveryHour ? this.nextShown(after) : this.nextLocal(after);
  }

  private nextShown(after: number): number | undefined {
    let from = after;
    for (let changes = 0; changes < MAX_CHANGES; changes++) {
      const offset = this.clock.offset(from);
      const local = this.expression.next(from + offset);
      if (local === undefined) return undefined;
      const instant = local - offset;
      if (this.clock.offset(instant) === offset) return instant;
      // The clocks change before. The clock that shows the time of the change is the new one.
      const change = this.clock.changeBetween(from, instant);
      const atChange = this.expression.next(change - 1 + this.clock.offset(change));
      if (atChange === change + this.clock.offset(change)) return change;
      from = change;
    }
    return undefined;
  }

  private nextLocal(after: number): number | undefined {
    const skipped = this.nextSkipped(after);
    const next = this.nextLocated(after);
    if (skipped === undefined || next === undefined) return skipped ?? next;
    return Math.min(skipped, next);
  }

  /** A time that the clocks have skipped shortly before `after`, and that is later for that. */
  private nextSkipped(after: number): number | undefined {
    const skip = this.clock.skipBefore(after);
    if (!skip) return undefined;
    const local = this.expression.next(after + skip.offset);
    const end = skip.change + this.clock.offset(skip.change);
    return local === undefined || local >= end ? undefined : local - skip.offset;
  }

  private nextLocated(after: number): number | undefined {
    let from = after + this.clock.offset(after);
    for (let changes = 0; changes < MAX_CHANGES; changes++) {
      const local = this.expression.next(from);
      if (local === undefined) return undefined;
      const { instant, kind, change } = this.clock.locate(local);
      if (kind === 'skipped') return this.earlierOf(instant, change);
      if (instant > after) return instant;
      // It was shown before `after`, and is shown again now. Go on where the clock shows new times.
      from = change + this.clock.offset(change - 1) - 1;
    }
    return undefined;
  }

  /** A skipped time, or the first one that the clock shows after the change: `30 2,3 * * *` has 3:30 before 2:59. */
  private earlierOf(skipped: number, change: number): number {
    const offset = this.clock.offset(change);
    const shown = this.expression.next(change + offset - 1);
    return shown === undefined ? skipped : Math.min(skipped, shown - offset);
  }
}
