import { isTerminal } from '@baton/a2a';
import type { DueSchedule, FiringOutcome, PassedTimes, Schedule } from '@baton/database';
import { countTimes, nextTime } from './schedule-times.js';
import { NoTimeError } from './no-time-error.js';

/** A waiting schedule is due when its previous task has ended, and after this time in any case, in ms. */
const MAX_WAIT_MS = 30_000;

/** The action for a due time. */
export type FiringPlan =
  | { kind: 'fire' }
  | { kind: 'pass'; outcome: 'skipped' | 'missed'; reason: string }
  /** The previous task is not over. Wait for its end, and check again after `ms` in any case. */
  | { kind: 'wait'; ms: number };

/** Whether the time counts as missed. Missed times are not fired one by one. */
const isLate = ({ now }: DueSchedule, dueAt: Date, lateMs: number): boolean =>
  now.getTime() - dueAt.getTime() > lateMs;

/** Whether the schedule's last task is not over. A task that waits for its caller is not over. */
export const isBusy = ({ lastTaskState }: Pick<Schedule, 'lastTaskState'>): boolean =>
  lastTaskState !== null && !isTerminal(lastTaskState);

/**
 * Decides whether to fire the due time, to pass it, or to wait.
 * @param lateMs a time that is later than this counts as missed
 */
export function planFiring(due: DueSchedule, dueAt: Date, lateMs: number): FiringPlan {
  const { schedule } = due;
  const { overlap, missed, isWaiting } = schedule;
  if (missed === 'skip' && !isWaiting && isLate(due, dueAt, lateMs)) {
    return { kind: 'pass', outcome: 'missed', reason: 'no worker fired it in time' };
  }
  if (!isBusy(schedule)) return { kind: 'fire' };
  if (overlap === 'skip') {
    return { kind: 'pass', outcome: 'skipped', reason: 'the previous task had not ended' };
  }
  if (overlap === 'queue') {
    return { kind: 'wait', ms: MAX_WAIT_MS };
  }
  return { kind: 'fire' };
}

/** The state after a handled time. */
export interface NextFiring {
  /** Null = there is none. */
  nextAt: Date | null;
  /** Number of times without a task: the handled one, and those between it and `nextAt`. */
  passed: PassedTimes;
  /** The next time cannot be computed, and why. The schedule has to be paused. */
  pauseReason: string | null;
}

/**
 * The next due time after the handled time `dueAt`. Times that are a little late are fired one by one. Missed times make no task and are
 * counted. So are times that came while another one waited.
 * @param lateMs a time that is later than this counts as missed
 * @param outcome the outcome of `dueAt`
 */
export function nextFiring(
  due: DueSchedule,
  dueAt: Date,
  lateMs: number,
  outcome: FiringOutcome,
): NextFiring {
  const passed: PassedTimes = { skipped: 0, missed: 0, refused: 0 };
  if (outcome !== 'started') passed[outcome] += 1;
  try {
    const { nextAt, count } = nextDueTime(due, dueAt, lateMs, outcome === 'started');
    passed[due.schedule.isWaiting ? 'skipped' : 'missed'] += count;
    return { nextAt, passed, pauseReason: null };
  } catch (error) {
    if (!(error instanceof NoTimeError)) throw error;
    const pauseReason = `its next time cannot be computed: cron ${error.message}. Change cron or time_zone, then resume it.`;
    return { nextAt: null, passed, pauseReason };
  }
}

/** The next due time, and the number of times that have passed before it. */
function nextDueTime(
  due: DueSchedule,
  dueAt: Date,
  lateMs: number,
  hasStarted: boolean,
): { nextAt: Date | null; count: number } {
  const { schedule, now } = due;
  const { nextAt, paused, fired, maxCount, isWaiting } = schedule;
  if (paused || (maxCount !== null && fired + (hasStarted ? 1 : 0) >= maxCount))
    return { nextAt: null, count: 0 };
  // The schedule was changed while it was fired. The change has set the next time.
  if (nextAt && nextAt.getTime() !== dueAt.getTime()) return { nextAt, count: 0 };
  const isBehind = now > dueAt && (isWaiting || isLate(due, dueAt, lateMs));
  const count = isBehind ? countTimes(schedule, dueAt, now) : 0;
  return { nextAt: nextTime(schedule, isBehind ? now : dueAt) ?? null, count };
}
