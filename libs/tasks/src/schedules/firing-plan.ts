import { isTerminal } from '@baton/a2a';
import type { DueSchedule, Schedule } from '@baton/database';
import { nextTime } from './schedule-times.js';

/** A queued time is checked again after a tenth of the time that it has waited, within these bounds (ms). */
const SHORTEST_LOOK = 500;
const LONGEST_LOOK = 30_000;

/** What to do about a time that is due. */
export type Plan =
  | { kind: 'fire' }
  | { kind: 'pass'; outcome: 'skipped' | 'missed'; reason: string }
  /** The previous task is not over. Check again after `ms`. */
  | { kind: 'wait'; ms: number };

/** Whether the time counts as missed. Missed times are not fired one by one. */
const isLate = ({ now }: DueSchedule, dueAt: Date, lateMs: number): boolean =>
  now.getTime() - dueAt.getTime() > lateMs;

/** Whether the schedule's last task is not over. A task that waits for its caller is not over. */
export const isBusy = ({ lastTaskState }: Pick<Schedule, 'lastTaskState'>): boolean =>
  lastTaskState !== null && !isTerminal(lastTaskState);

/**
 * Decide what to do about the time that is due.
 * @param lateMs a time that is later than this counts as missed
 */
export function planFiring(due: DueSchedule, dueAt: Date, lateMs: number): Plan {
  const { schedule, now } = due;
  const { overlap, missed, isWaiting } = schedule;
  if (missed === 'skip' && !isWaiting && isLate(due, dueAt, lateMs)) {
    return { kind: 'pass', outcome: 'missed', reason: 'no worker fired it in time' };
  }
  if (!isBusy(schedule)) return { kind: 'fire' };
  if (overlap === 'skip') {
    return { kind: 'pass', outcome: 'skipped', reason: 'the previous task had not ended' };
  }
  if (overlap === 'queue') {
    const ms = (now.getTime() - dueAt.getTime()) / 10;
    return { kind: 'wait', ms: Math.round(Math.min(Math.max(ms, SHORTEST_LOOK), LONGEST_LOOK)) };
  }
  return { kind: 'fire' };
}

/**
 * The time after `dueAt`; null = there is none. Times that are a little late are fired one by one. Times that were
 * missed, or that came while another one waited, are skipped.
 * @param made whether `dueAt` has made a task
 */
export function timeAfter(due: DueSchedule, dueAt: Date, lateMs: number, made: boolean): Date | null {
  const { schedule, now } = due;
  const { nextAt, paused, fired, maxCount, isWaiting } = schedule;
  if (paused || (maxCount !== null && fired + (made ? 1 : 0) >= maxCount)) return null;
  // The schedule was changed while it was fired. The change has set the next time.
  if (nextAt && nextAt.getTime() !== dueAt.getTime()) return nextAt;
  const after = isWaiting || isLate(due, dueAt, lateMs) ? now : dueAt;
  return nextTime(schedule, after) ?? null;
}
