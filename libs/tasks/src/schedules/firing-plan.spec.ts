import { TaskState } from '@baton/a2a';
import type { FiringOutcome, Schedule } from '@baton/database';
import { nextFiring, planFiring } from './firing-plan.js';
import { scheduleOf } from './schedule.fixture.js';

const DUE = new Date('2026-06-01T12:00:00Z');
const LATE_MS = 60_000;
const after = (ms: number): Date => new Date(DUE.getTime() + ms);
const plan = (overrides: Partial<Schedule>, lateBy = 5) =>
  planFiring({ schedule: scheduleOf(overrides), now: after(lateBy) }, DUE, LATE_MS);
const following = (overrides: Partial<Schedule>, lateBy = 5, outcome: FiringOutcome = 'started') => {
  const due = { schedule: scheduleOf({ nextAt: DUE, ...overrides }), now: after(lateBy) };
  return nextFiring(due, DUE, LATE_MS, outcome);
};
const next = (...args: Parameters<typeof following>) => following(...args).nextAt;

const WORKING = { lastTaskId: 'task', lastTaskState: TaskState.TASK_STATE_WORKING };

describe('what is done about a time that has come', () => {
  it.each([
    ['there is no task before', {}],
    ['the task before is gone', { lastTaskId: 'task' }],
    ['the task before has ended', { ...WORKING, lastTaskState: TaskState.TASK_STATE_FAILED }],
    ['they may overlap', { ...WORKING, overlap: 'allow' as const }],
    ['the one before is canceled', { ...WORKING, overlap: 'cancel-previous' as const }],
  ])('it is fired when %s', (_why, overrides) => expect(plan(overrides)).toEqual({ kind: 'fire' }));

  it('it is skipped while the task before is at work, or waits for its caller', () => {
    expect(plan(WORKING)).toMatchObject({ kind: 'pass', outcome: 'skipped' });
    const asking = { ...WORKING, lastTaskState: TaskState.TASK_STATE_INPUT_REQUIRED };
    expect(plan(asking)).toMatchObject({ kind: 'pass', outcome: 'skipped' });
  });

  it('it waits for the end of the task before', () => {
    const queued = { ...WORKING, overlap: 'queue' as const };
    expect(plan(queued)).toEqual({ kind: 'wait', ms: 30_000 });
  });

  it('it is fired or given up when it was missed, by the setting of the schedule', () => {
    expect(plan({}, LATE_MS + 1)).toEqual({ kind: 'fire' });
    expect(plan({ missed: 'skip' }, LATE_MS)).toEqual({ kind: 'fire' });
    expect(plan({ missed: 'skip' }, LATE_MS + 1)).toMatchObject({ kind: 'pass', outcome: 'missed' });
  });

  it('it is not missed when it only had to wait', () => {
    const waited = { missed: 'skip' as const, overlap: 'queue' as const, isWaiting: true };
    expect(plan(waited, 3 * LATE_MS)).toEqual({ kind: 'fire' });
  });
});

describe('the time after', () => {
  it('is the very next, also when this one came a little late', () => {
    expect(next({})).toEqual(after(60_000));
    expect(next({ cron: '* * * * * *' }, 30_000)).toEqual(after(1_000));
  });

  it('is the next to come when times were missed, or had to wait', () => {
    expect(next({}, 10 * 60_000 + 1)).toEqual(after(11 * 60_000));
    expect(next({ isWaiting: true, cron: '* * * * * *' }, 30_000)).toEqual(after(31_000));
  });

  it('leaves no time uncounted', () => {
    const none = { skipped: 0, missed: 0, refused: 0 };
    const minute = 60_000;
    expect(following({}).passed).toEqual(none);
    expect(following({}, 5, 'skipped').passed).toEqual({ ...none, skipped: 1 });
    expect(following({}, 5, 'refused').passed).toEqual({ ...none, refused: 1 });
    expect(following({}, 10 * minute + 1).passed).toEqual({ ...none, missed: 10 });
    expect(following({}, 10 * minute + 1, 'missed').passed).toEqual({ ...none, missed: 11 });
    expect(following({ isWaiting: true }, 3 * minute).passed).toEqual({ ...none, skipped: 3 });
    expect(following({ cron: '* * * * * *' }, 86_400_000).passed).toEqual({ ...none, missed: 1_000 });
  });

  it.each([
    ['no time within eight years', { cron: '59 59 23 * 2 1#5' }],
    ['an unknown time zone', { timeZone: 'Mars/Base' }],
    ['an expression that cannot be read', { cron: '61 * * * *' }],
  ])('cannot be computed with %s: the schedule is paused with the reason', (_why, overrides) => {
    const { nextAt, passed, pauseReason } = following(overrides, 5, 'skipped');
    expect([nextAt, passed.skipped]).toEqual([null, 1]);
    expect(pauseReason).toMatch(
      /^its next time cannot be computed: cron .+ Change cron or time_zone, then resume it\.$/,
    );
  });

  it('is absent when it fires once, has ended, is paused or has made its maximum', () => {
    expect(next({ cron: null, at: DUE })).toBeNull();
    expect(next({ endsAt: after(59_999) })).toBeNull();
    expect(next({ paused: true, nextAt: null, pendingAt: DUE })).toBeNull();
    expect(next({ maxCount: 3, fired: 2 })).toBeNull();
    expect(next({ maxCount: 3, fired: 2 }, 5, 'skipped')).toEqual(after(60_000));
  });

  it('is what it was changed to while this one was fired', () => {
    expect(next({ nextAt: after(7_000), pendingAt: DUE })).toEqual(after(7_000));
  });
});
