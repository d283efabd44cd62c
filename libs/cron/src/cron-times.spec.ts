import { CronExpressionParser } from 'cron-parser';
import { CronTimes } from './cron-times.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const FROM = Date.UTC(2026, 5, 1);
const UNTIL = Date.UTC(2028, 5, 1);

/** Minutes and hours, whose times the test finds by itself. */
const TIMES: readonly (readonly [
  cron: string,
  minutes: (m: number) => boolean,
  hours: (h: number) => boolean,
])[] = [
  ['0 * * * *', (m) => m === 0, () => true],
  ['30 * * * *', (m) => m === 30, () => true],
  ['*/15 * * * *', (m) => m % 15 === 0, () => true],
  ['7,52 0-23 * * *', (m) => m === 7 || m === 52, () => true],
  ['*/20 2 * * *', (m) => m % 20 === 0, (h) => h === 2],
  ['0 2 * * *', (m) => m === 0, (h) => h === 2],
  ['30 2 * * *', (m) => m === 30, (h) => h === 2],
  ['45 1 * * *', (m) => m === 45, (h) => h === 1],
  ['30 1,2,3 * * *', (m) => m === 30, (h) => h >= 1 && h <= 3],
  ['0 */2 * * *', (m) => m === 0, (h) => h % 2 === 0],
  ['15 1-22 * * *', (m) => m === 15, (h) => h >= 1 && h <= 22],
  ['*/2 0-3 * * *', (m) => m % 2 === 0, (h) => h <= 3],
  ['0 0 * * *', (m) => m === 0, (h) => h === 0],
  ['30 0,23 * * *', (m) => m === 30, (h) => h === 0 || h === 23],
  ['0 12 * * *', (m) => m === 0, (h) => h === 12],
];

interface Change {
  zone: string;
  at: number;
  /** Offsets from UTC, in ms. */
  before: number;
  after: number;
}

/** What the clock shows, as ms since 1970 as if it were UTC. */
function clockOf(zone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  return (instant) => {
    // Such as 6/1/2026, 05:30.
    const [month, day, year, hour, minute] = format.format(instant).match(/\d+/g)!.map(Number);
    return Date.UTC(year!, month! - 1, day, hour, minute);
  };
}

/** The changes of a zone's clocks. */
function changesOf(zone: string, from: number, until: number): Change[] {
  const clock = clockOf(zone);
  const offset = (instant: number): number => clock(instant) - instant;
  const found: Change[] = [];
  let after = offset(from);
  for (let at = from; at < until; at += 2 * DAY) {
    let [low, high] = [at, at + 2 * DAY];
    const before = after;
    after = offset(high);
    if (after === before) continue;
    while (high - low > MINUTE) {
      const middle = low + Math.floor((high - low) / 2 / MINUTE) * MINUTE;
      if (offset(middle) === before) low = middle;
      else high = middle;
    }
    found.push({ zone, at: high, before, after: offset(high) });
  }
  return found;
}

/** All changes of all zones, each once. */
function allChanges(): Change[] {
  const byKind = new Map<string, Change>();
  for (const zone of Intl.supportedValuesOf('timeZone')) {
    for (const change of changesOf(zone, FROM, UNTIL)) {
      byKind.set([change.at, change.before, change.after].join(), change);
    }
  }
  return [...byKind.values()];
}

/** What the clock shows around a change, and when, minute by minute. */
function shownAround({ zone, at }: Change): Map<number, number[]> {
  const clock = clockOf(zone);
  const shown = new Map<number, number[]>();
  for (let instant = at - 5 * HOUR; instant <= at + 26 * HOUR; instant += MINUTE) {
    const local = clock(instant);
    shown.set(local, [...(shown.get(local) ?? []), instant]);
  }
  return shown;
}

/** The instants at which the page of schedules promises a task, around a change. */
function promised(
  shown: ReadonlyMap<number, number[]>,
  before: number,
  [, minutes, hours]: (typeof TIMES)[number],
): number[] {
  const isEveryHour = Array.from({ length: 24 }, (_, hour) => hour).every(hours);
  const times = new Set<number>();
  const [first, last] = [Math.min(...shown.keys()), Math.max(...shown.keys())];
  for (let local = first; local <= last; local += MINUTE) {
    const date = new Date(local);
    if (!minutes(date.getUTCMinutes()) || !hours(date.getUTCHours())) continue;
    const instants = shown.get(local) ?? [];
    if (isEveryHour) for (const instant of instants) times.add(instant);
    else times.add(instants[0] ?? local - before);
  }
  return [...times].sort((a, b) => a - b);
}

const USUAL = ['Europe/Berlin', 'America/New_York', 'Asia/Kolkata', 'Australia/Sydney'];

describe('the times of a cron expression when the clocks change', () => {
  it('are those that the page promises, in every zone', () => {
    const changes = [
      ...allChanges(),
      // Samoa skipped a day.
      ...changesOf('Pacific/Apia', Date.UTC(2011, 11, 28), Date.UTC(2012, 0, 2)),
      ...changesOf('America/Caracas', Date.UTC(2016, 3, 28), Date.UTC(2016, 4, 4)),
    ];
    expect(changes.length).toBeGreaterThan(40);
    for (const change of changes) {
      const shown = shownAround(change);
      for (const time of TIMES) {
        const expected = promised(shown, change.before, time);
        const times = new CronTimes(time[0], change.zone);
        const found: (number | undefined)[] = [];
        // Skipped times may land behind the end of the minutes that were looked at.
        const after = expected[0]! - 1;
        for (let at: number | undefined = after; found.length < expected.length - 1;) {
          at = times.next(at!);
          found.push(at);
        }
        const text = (instants: readonly (number | undefined)[]): string =>
          `${change.zone} ${time[0]} ${instants.map((one) => one && new Date(one).toISOString()).join(' ')}`;
        expect(text(found)).toBe(text(expected.slice(0, found.length)));
      }
    }
  });

  it('follow from any moment, not only from the time before', () => {
    for (const [zone, at] of [
      ['Australia/Lord_Howe', Date.UTC(2027, 3, 3, 15)],
      ['Australia/Lord_Howe', Date.UTC(2026, 9, 3, 15, 30)],
      ['Antarctica/Troll', Date.UTC(2026, 9, 25, 1)],
      ['Europe/Berlin', Date.UTC(2027, 2, 28, 1)],
    ] as const) {
      for (const [cron] of TIMES) {
        const times = new CronTimes(cron, zone);
        let next = times.next(at - 3 * HOUR)!;
        for (let moment = at - 3 * HOUR; moment < at + 6 * HOUR; moment += 7 * MINUTE) {
          while (next <= moment) next = times.next(next)!;
          expect([zone, cron, moment, times.next(moment)]).toEqual([zone, cron, moment, next]);
        }
      }
    }
  });

  it.each(USUAL)('are those of releases before, in %s', (zone) => {
    for (const cron of [
      '0 9 * * 1-5',
      '30 2 * * *',
      '0 * * * *',
      '*/30 * * * *',
      '0 0 L * *',
      '0 8 * * 5L',
      '0 8 1 * 1#2',
      '0 0 29 2 *',
      '*/7 3 1-10/3 */2 *',
      '0 12 * * 0,3',
      '@weekly',
      '15 0 6 * * *',
    ]) {
      const times = new CronTimes(cron, zone);
      const before = CronExpressionParser.parse(cron, { tz: zone, currentDate: new Date(FROM) });
      let at = FROM;
      for (let count = 0; count < 25; count++) {
        at = times.next(at)!;
        expect([cron, new Date(at)]).toEqual([cron, before.next().toDate()]);
      }
    }
  });
});

describe('the search for a time', () => {
  it('is short for every expression, also where there is none', () => {
    const expressions = ['59 59 23 * 2 1#5', '0 0 29 2 1#5', '59 23 31 12 *', '* * * * * *'];
    // CPU time: other processes on the machine do not count.
    const started = process.cpuUsage();
    let searches = 0;
    for (const zone of ['Australia/Lord_Howe', 'Antarctica/Troll', 'Africa/Casablanca', 'UTC']) {
      for (const cron of expressions) {
        const times = new CronTimes(cron, zone);
        for (let at = FROM; at < UNTIL; at += 20 * DAY, searches++) times.next(at);
      }
    }
    const { user, system } = process.cpuUsage(started);
    expect((user + system) / 1000 / searches).toBeLessThan(10);
  });

  it('finds none where the next is more than eight years away', () => {
    expect(new CronTimes('59 59 23 * 2 1#5', 'UTC').next(FROM)).toBeUndefined();
    expect(new CronTimes('0 0 29 2 *', 'UTC').next(Date.UTC(2096, 2, 1))).toBe(Date.UTC(2104, 1, 29));
  });
});
