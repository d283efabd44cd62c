import { loadEnvironment } from '@baton/config';
import type { DueSchedule, RunStore, Schedule, ScheduleStore } from '@baton/database';
import type { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { SweepLeader } from '../core/sweep-leader.js';
import { ScheduleClock } from './schedule-clock.js';
import type { ScheduleAdvancer } from './schedule-advancer.js';
import { scheduleOf } from './schedule.fixture.js';

const AT = new Date(0);
const TICK = { tenantId: 'tenant', scheduleId: 'schedule', dueAt: AT };

let published: unknown[];
beforeEach(() => {
  published = [];
});

/** A clock whose store has that to fire, and whose advancer finds that next time. */
function clock(options: {
  due?: Partial<Schedule>;
  stored?: Partial<Schedule>;
  next?: Date | null | undefined;
  queueIsAway?: boolean;
  queueHangs?: boolean;
}): ScheduleClock {
  const { due, stored, next, queueIsAway, queueHangs } = options;
  const found: DueSchedule[] = due ? [{ schedule: scheduleOf(due), now: AT }] : [];
  const tell = async (...words: unknown[]): Promise<void> => {
    published.push(words);
    if (queueIsAway) throw new Error('away');
  };
  const store = {
    takeOne: async () => found[0],
    takeDue: async () => found.splice(0),
    find: async () => stored && scheduleOf(stored),
  };
  const messaging = {
    setTicks: (times: unknown) => (queueHangs ? new Promise(() => undefined) : tell('tick', times)),
    stopTicks: (id: string) => tell('stop', id),
  };
  return new ScheduleClock(
    store as unknown as ScheduleStore,
    { advance: async () => next } as unknown as ScheduleAdvancer,
    messaging as unknown as Messaging,
    loadEnvironment({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }),
    new SweepLeader({} as RunStore),
    Logger.silent(),
  );
}

describe('a tick of the queue leads to', () => {
  it.each([
    ['no change, while there is a next time', { due: {}, next: AT }, []],
    ['no change, for a time that waits or that another worker advances', { due: {}, next: undefined }, []],
    ['no change, when another worker was faster', { stored: { nextAt: AT } }, []],
    ['a stop after the last time', { due: {}, next: null }, [['stop', 'schedule']]],
    ['a stop when the schedule is paused', { stored: { nextAt: null } }, [['stop', 'schedule']]],
    ['a stop when the schedule is gone', {}, [['stop', 'schedule']]],
  ])('%s', async (_what, options, expected) => {
    await clock(options).take(TICK);
    expect(published).toEqual(expected);
  });

  it('is lost on a queue that is away, and does no harm', async () => {
    await expect(clock({ queueIsAway: true }).take(TICK)).resolves.toBeUndefined();
  });
});

describe('the repair of lost ticks schedules', () => {
  const EVERY_MINUTE = { tenantId: 'tenant', scheduleId: 'schedule', cron: '* * * * *', timeZone: 'UTC' };

  it('the times of the schedule, if there is one to come', async () => {
    await clock({ due: {}, next: AT }).runOnce();
    expect(published).toEqual([['tick', EVERY_MINUTE]]);
  });

  it.each([null, undefined])('nothing when the next time is %s', async (next) => {
    await clock({ due: {}, next }).runOnce();
    expect(published).toEqual([]);
  });

  it('is lost on a queue that is away, and does no harm', async () => {
    await expect(clock({ due: {}, next: AT, queueIsAway: true }).runOnce()).resolves.toBeUndefined();
  });

  it('delays no schedule on a queue that does not answer', async () => {
    await expect(clock({ due: {}, next: AT, queueHangs: true }).runOnce()).resolves.toBeUndefined();
  });
});
