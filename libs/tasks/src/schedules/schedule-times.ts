import { ProtocolError } from '@baton/a2a';
import { CronTimes } from '@baton/cron';
import type { ScheduleTimes } from '@baton/database';
import { NoTimeError } from './no-time-error.js';

/** Maximum characters of an expression. Each line of a list has it. */
const MAX_CRON = 200;
/** The longest name of a time zone has 32 characters. */
const MAX_ZONE = 64;
/** Maximum characters of the reason of a refusal, in each line of a list. */
const MAX_REASON = 300;
/** Maximum number of passed times that are counted one by one. */
export const MAX_PASSED = 1_000;
const FORMS = 'five fields (minute hour day month weekday), six with seconds first, or @hourly, @daily, …';
const NICKNAMES: ReadonlySet<string> = new Set([
  '@secondly',
  '@minutely',
  '@hourly',
  '@daily',
  '@weekly',
  '@weekdays',
  '@weekends',
  '@monthly',
  '@yearly',
]);
const ZONE = /^[A-Za-z][\w+-]*(\/[\w+-]+){0,2}$/;

/**
 * The first time after `after`; undefined = there is none. When the clocks change, see `CronTimes`.
 * @throws NoTimeError if the expression or the time zone cannot be read, or has no time within eight years
 */
export function nextTime(times: ScheduleTimes, after: Date): Date | undefined {
  return timesAfter(times, after).next().value;
}

/**
 * How many times are after `after` and not after `until`.
 * @returns at most `MAX_PASSED`
 * @throws NoTimeError as `nextTime` does
 */
export function countTimes(times: ScheduleTimes, after: Date, until: Date): number {
  let count = 0;
  for (const time of timesAfter(times, after)) {
    if (time > until || count === MAX_PASSED) break;
    count += 1;
  }
  return count;
}

function* timesAfter(
  { cron, at, timeZone, startsAt, endsAt }: ScheduleTimes,
  after: Date,
): Generator<Date, undefined> {
  if (at && at > after) yield at;
  if (cron === null) return;
  const times = readTimes(cron, timeZone);
  // A time that equals the start counts.
  let last = Math.max(after.getTime(), startsAt ? startsAt.getTime() - 1 : -Infinity);
  for (;;) {
    const next = times.next(last);
    if (next === undefined)
      throw new NoTimeError('has no time within the next eight years: choose a day that its months have');
    if (endsAt && next > endsAt.getTime()) return;
    yield new Date(next);
    last = next;
  }
}

function readTimes(cron: string, timeZone: string): CronTimes {
  try {
    return new CronTimes(cron, timeZone);
  } catch (error) {
    throw new NoTimeError((error instanceof Error ? error.message : 'cannot be read').slice(0, MAX_REASON));
  }
}

/** Check that the times are valid and that one of them is in the future. Throws `invalid-params`, which names the field. */
export function assertTimes(times: ScheduleTimes, now: Date): void {
  assertForm(times);
  if (findNext(times, now)) return;
  if (times.at) throw ProtocolError.invalidParams('at', 'has passed: give a time in the future');
  throw ProtocolError.invalidParams('ends_at', 'leaves no time for cron: make it later');
}

function findNext(times: ScheduleTimes, now: Date): Date | undefined {
  try {
    return nextTime(times, now);
  } catch (error) {
    throw error instanceof NoTimeError ? refuseCron(error.message) : error;
  }
}

function assertForm(times: ScheduleTimes): void {
  const { cron, at, timeZone, startsAt, endsAt } = times;
  if ((cron === null) === (at === null)) {
    throw ProtocolError.invalidParams('cron', 'give either cron, to repeat, or at, for one time');
  }
  assertTimeZone(timeZone);
  if (at && (startsAt ?? endsAt)) {
    throw ProtocolError.invalidParams(startsAt ? 'starts_at' : 'ends_at', 'works with cron, not with at');
  }
  if (startsAt && endsAt && startsAt > endsAt) {
    throw ProtocolError.invalidParams('ends_at', 'is before starts_at: make it later');
  }
  if (cron !== null) assertCron(cron);
}

function assertTimeZone(timeZone: string): void {
  try {
    if (timeZone.length > MAX_ZONE || !ZONE.test(timeZone)) throw new RangeError();
    new Intl.DateTimeFormat('en', { timeZone });
  } catch {
    throw ProtocolError.invalidParams(
      'time_zone',
      'is unknown: give an IANA name such as Europe/Berlin or UTC',
    );
  }
}

const refuseCron = (why: string): ProtocolError =>
  ProtocolError.invalidParams('cron', `${why}: give ${FORMS}`);

function assertCron(cron: string): void {
  if (cron.length > MAX_CRON) throw refuseCron(`is longer than ${MAX_CRON} characters`);
  const fields = cron.trim().split(/\s+/);
  if (cron.startsWith('@') ? !NICKNAMES.has(cron) : fields.length < 5 || fields.length > 6) {
    throw refuseCron(`"${cron.slice(0, 40)}" is not a cron expression`);
  }
  // H is a hash. Each process would compute another time for it.
  if (/(^|[\s,])H/.test(cron)) throw refuseCron('H is not supported');
}
