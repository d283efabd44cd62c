import { ProtocolError } from '@baton/a2a';
import { ComputePool, ComputeRefused } from '@baton/compute';
import type { ScheduleTimes } from '@baton/database';
import { CronExpressionParser } from 'cron-parser';

const MAX_CRON = 200;
const MAX_ZONE = 64;
/** The longest gap between two leap days. The search for the next time takes longer for longer gaps. */
const MAX_GAP_MS = (8 * 366 + 1) * 86_400_000;
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
 * The first time after `after`; undefined = there is none. A time that the clocks skip in spring is an hour later. A time
 * that comes twice in autumn counts once. An expression for every hour or minute follows real time.
 */
export function nextTime(times: ScheduleTimes, after: Date): Date | undefined {
  const { cron, at, timeZone: tz, startsAt, endsAt } = times;
  if (at) return at > after ? at : undefined;
  if (cron === null) return undefined;
  // A time that equals the start counts.
  const start = startsAt ? startsAt.getTime() - 1 : -Infinity;
  const currentDate = new Date(Math.max(after.getTime(), start));
  const next = CronExpressionParser.parse(cron, { tz, currentDate }).next().toDate();
  return endsAt && next > endsAt ? undefined : next;
}

/**
 * Check that the times are valid and that one of them is in the future. Rejects with `invalid-params`, which names the
 * field. A thread searches the first time of a cron expression, because the search may take long.
 */
export async function assertTimes(
  pool: ComputePool,
  tenantId: string,
  times: ScheduleTimes,
  now: Date,
): Promise<void> {
  assertForm(times);
  if (times.cron !== null) await assertFound(pool, tenantId, times.cron, times, now);
  if (nextTime(times, now)) return;
  if (times.at) throw ProtocolError.invalidParams('at', 'has passed: give a time in the future');
  throw ProtocolError.invalidParams('ends_at', 'leaves no time for cron: make it later');
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

async function assertFound(
  pool: ComputePool,
  tenantId: string,
  cron: string,
  { timeZone, startsAt }: ScheduleTimes,
  now: Date,
): Promise<void> {
  const after = startsAt && startsAt > now ? startsAt : now;
  const found = await pool.nextTime(tenantId, { cron, timeZone }, after).catch((error: unknown) => {
    if (!(error instanceof ComputeRefused)) throw error;
    if (error.limit === 'computeWaiting') throw error.asLimit();
    return { problem: error.message };
  });
  if (!(found instanceof Date)) throw refuseCron(found.problem);
  if (found.getTime() - after.getTime() > MAX_GAP_MS)
    throw refuseCron('has no time within the next eight years');
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
