import { ProtocolError } from '@baton/a2a';
import { scheduleOf } from './schedule.fixture.js';
import { assertTimes, nextTime } from './schedule-times.js';

/** The next times of a cron expression, in UTC. */
function timesOf(cron: string, timeZone: string, after: string, count: number): string[] {
  const times: string[] = [];
  let from = new Date(after);
  while (times.length < count) {
    from = nextTime(scheduleOf({ cron, timeZone }), from)!;
    times.push(from.toISOString().replace(/^\d{4}-(.*):00\.000Z$/, '$1'));
  }
  return times;
}

describe('the next time of a schedule', () => {
  it('is read in its time zone, on both sides of a change of the clocks', () => {
    const nine = timesOf('0 9 * * *', 'Europe/Berlin', '2026-03-27T12:00:00Z', 3);
    expect(nine).toEqual(['03-28T08:00', '03-29T07:00', '03-30T07:00']);
    const days = timesOf('0 9 * * 1-5', 'America/New_York', '2026-10-30T14:00:00Z', 2);
    expect(days).toEqual(['11-02T14:00', '11-03T14:00']);
    expect(timesOf('30 6 * * *', 'Asia/Kolkata', '2026-01-01T00:00:00Z', 1)).toEqual(['01-01T01:00']);
  });

  it('is an hour later where the clocks leave it out, and comes that day all the same', () => {
    const times = timesOf('30 2 * * *', 'Europe/Berlin', '2026-03-27T12:00:00Z', 3);
    expect(times).toEqual(['03-28T01:30', '03-29T01:30', '03-30T00:30']);
  });

  it('counts once where the clocks bring it twice', () => {
    const times = timesOf('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 2);
    expect(times).toEqual(['10-25T00:30', '10-26T01:30']);
  });

  it('goes by real time where every hour or half of it is meant', () => {
    const hours = timesOf('0 * * * *', 'Europe/Berlin', '2026-10-24T23:30:00Z', 4);
    expect(hours).toEqual(['10-25T00:00', '10-25T01:00', '10-25T02:00', '10-25T03:00']);
    const halves = timesOf('*/30 * * * *', 'Europe/Berlin', '2026-03-29T00:10:00Z', 3);
    expect(halves).toEqual(['03-29T00:30', '03-29T01:00', '03-29T01:30']);
  });

  it('is on the second, with six fields', () => {
    const every = scheduleOf({ cron: '*/2 * * * * *' });
    expect(nextTime(every, new Date('2026-01-01T00:00:01.999Z'))).toEqual(new Date('2026-01-01T00:00:02Z'));
    expect(nextTime(every, new Date('2026-01-01T00:00:02Z'))).toEqual(new Date('2026-01-01T00:00:04Z'));
  });

  it('lies between start and end, both of which count', () => {
    const bounds = { startsAt: new Date('2026-01-02T00:00:00Z'), endsAt: new Date('2026-01-03T00:00:00Z') };
    const daily = scheduleOf({ cron: '@daily', ...bounds });
    expect(nextTime(daily, new Date('2025-12-01T00:00:00Z'))).toEqual(bounds.startsAt);
    expect(nextTime(daily, bounds.startsAt)).toEqual(bounds.endsAt);
    expect(nextTime(daily, bounds.endsAt)).toBeUndefined();
  });

  it('is the only one of a schedule that fires once', () => {
    const at = new Date('2026-01-01T12:34:56.789Z');
    const once = scheduleOf({ cron: null, at });
    expect(nextTime(once, new Date(at.getTime() - 1))).toEqual(at);
    expect(nextTime(once, at)).toBeUndefined();
  });
});

describe('times of a schedule', () => {
  const NOW = new Date('2026-06-01T00:00:00Z');
  const refused = (overrides: Parameters<typeof scheduleOf>[0]): string | undefined => {
    try {
      assertTimes(scheduleOf(overrides), NOW);
      return undefined;
    } catch (error) {
      return error instanceof ProtocolError ? error.detail.violations?.[0]?.field : String(error);
    }
  };
  const at = new Date('2026-07-01T00:00:00Z');
  const before = new Date('2026-05-01T00:00:00Z');

  it.each(['* * * * *', '0 8 * * MON-FRI', '*/10 * * * * *', '0 12 L * *', '@hourly', ' 5 4 * * sun '])(
    'may be %j',
    (cron) => expect(refused({ cron })).toBeUndefined(),
  );

  it.each(['', '* * *', '61 * * * *', 'tomorrow', '@reboot', '0 0 31 2 *', 'H * * * *', '* * * * * * 2027'])(
    'cannot be %j',
    (cron) => expect(refused({ cron })).toBe('cron'),
  );

  it.each(['Mars/Base', '+02:00', 'local', '', 'Europe/Berlin\0'])('are in no zone %j', (timeZone) =>
    expect(refused({ timeZone })).toBe('time_zone'),
  );

  it.each([
    ['cron', { cron: null }],
    ['cron', { at }],
    ['at', { cron: null, at: before }],
    ['starts_at', { cron: null, at, startsAt: at }],
    ['ends_at', { cron: null, at, endsAt: at }],
    ['ends_at', { startsAt: at, endsAt: before }],
    ['ends_at', { endsAt: before }],
  ])('are refused by %s: %j', (field, overrides) => expect(refused(overrides)).toBe(field));

  it.each([
    ['59 59 23 * 2 1#5', 'the fifth Monday of a February'],
    ['0 0 30 2 1#5', 'the same, said otherwise'],
    ['0 0 30,31 2 *', 'never'],
  ])('cannot be %j: it comes too late or %s', (cron) => expect(refused({ cron })).toBe('cron'));

  it('may be a leap day', () => expect(refused({ cron: '0 0 29 2 *' })).toBeUndefined());
});
