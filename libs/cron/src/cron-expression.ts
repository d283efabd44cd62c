import { CronExpressionParser } from 'cron-parser';

export const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** The longest gap between two leap days, in days. A search ends here. */
const MAX_DAYS = 8 * 366 + 1;

/**
 * The times of a cron expression on a clock that never changes: local times, as milliseconds since 1970 as if they were
 * UTC. cron-parser reads the expression. It does not search: its search gives up on some changes of the clocks, after half a
 * second of computing. This search looks at each day once, for eight years at most, in less than a millisecond.
 */
export class CronExpression {
  private readonly seconds: readonly number[];
  private readonly minutes: readonly number[];
  private readonly hours: readonly number[];
  private readonly isMonth: ReadonlySet<number>;
  private readonly fields: ReturnType<typeof CronExpressionParser.parse>['fields'];

  /** @throws Error with a plain reason if it is not a cron expression */
  constructor(cron: string) {
    this.fields = CronExpressionParser.parse(cron, { tz: 'UTC' }).fields;
    const { second, minute, hour, month } = this.fields;
    this.seconds = second.values;
    this.minutes = minute.values;
    this.hours = hour.values;
    this.isMonth = new Set(month.values);
  }

  /** Whether it has a time in every hour of a day. */
  get isEveryHour(): boolean {
    return this.hours.length === 24;
  }

  /** The first local time after `after`; undefined = there is none within eight years. */
  next(after: number): number | undefined {
    const from = Math.floor(after / SECOND_MS) * SECOND_MS + SECOND_MS;
    const firstDay = Math.floor(from / DAY_MS);
    for (let day = firstDay; day <= firstDay + MAX_DAYS; day++) {
      if (!this.isDay(day * DAY_MS)) continue;
      const time = this.timeOfDay(day === firstDay ? from - day * DAY_MS : 0);
      if (time !== undefined) return day * DAY_MS + time;
    }
    return undefined;
  }

  /** The first time of a day that is not before `from`, both in ms since midnight. */
  private timeOfDay(from: number): number | undefined {
    const fromHour = Math.floor(from / HOUR_MS);
    for (const hour of this.hours) {
      if (hour < fromHour) continue;
      const time = this.timeOfHour(Math.max(0, from - hour * HOUR_MS));
      if (time !== undefined) return hour * HOUR_MS + time;
    }
    return undefined;
  }

  private timeOfHour(from: number): number | undefined {
    const fromMinute = Math.floor(from / MINUTE_MS);
    for (const minute of this.minutes) {
      if (minute < fromMinute) continue;
      const fromSecond = Math.max(0, from - minute * MINUTE_MS) / SECOND_MS;
      const second = this.seconds.find((one) => one >= fromSecond);
      if (second !== undefined) return minute * MINUTE_MS + second * SECOND_MS;
    }
    return undefined;
  }

  /** With both a day of the month and a weekday, one of them is enough. */
  private isDay(midnight: number): boolean {
    const date = new Date(midnight);
    if (!this.isMonth.has(date.getUTCMonth() + 1)) return false;
    const { dayOfMonth, dayOfWeek } = this.fields;
    if (dayOfMonth.isWildcard) return dayOfWeek.isWildcard || this.isWeekday(date);
    return this.isDayOfMonth(date) || (!dayOfWeek.isWildcard && this.isWeekday(date));
  }

  private isDayOfMonth(date: Date): boolean {
    const { values, hasLastChar } = this.fields.dayOfMonth;
    const isLast = new Date(date.getTime() + DAY_MS).getUTCDate() === 1;
    return (values as readonly unknown[]).includes(date.getUTCDate()) || (hasLastChar && isLast);
  }

  private isWeekday(date: Date): boolean {
    const { values, hasLastChar, nthDay } = this.fields.dayOfWeek;
    const [weekday, week] = [date.getUTCDay(), Math.ceil(date.getUTCDate() / 7)];
    if ((values as readonly unknown[]).includes(weekday) && (nthDay <= 0 || nthDay === week)) return true;
    if (!hasLastChar || new Date(date.getTime() + 7 * DAY_MS).getUTCMonth() === date.getUTCMonth())
      return false;
    return values.some((value) => parseInt(String(value), 10) % 7 === weekday);
  }
}
