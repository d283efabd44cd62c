import { isTerminal } from '@baton/a2a';
import type { DueSchedule, Schedule } from '@baton/database';
import { nextTime } from './schedule-times.js';

/** In milliseconds; a queued time is looked at again after a tenth of what it has waited. */
const SHORTEST_LOOK = 500;
const LONGEST_LOOK = 30_000;

/** What is to be done about a time that has come. */
export type Plan =
  | { kind: 'fire' }
  | { kind: 'pass'; outcome: 'skipped' | 'missed'; reason: string }
  /** Until the task before is over; it is looked at again after so many ms. */
  | { kind: 'wait'; ms: number };

/** Whether so much time has passed that it and those after it were missed, and do not come one by one any more. */
const isLate = ({ now }: DueSchedule, dueAt: Date, lateMs: number): boolean =>
  now.getTime() - dueAt.getTime() > lateMs;

/** Whether its last task is not over; one that waits for its caller is not. */
export const isBusy = ({ lastTaskState }: Pick<Schedule, 'lastTaskState'>): boolean =>
  lastTaskState !== null && !isTerminal(lastTaskState);

/**
 * Decide about the time that has come.
 * @param lateMs a time that is so late was missed
 */
export function planFiring(due: DueSchedule, dueAt: Date, lateMs: number): Plan {
  const { schedule, now } = due;
  const { overlap, missed, isWaiting } = schedule;
  if (missed === 'skip' && !isWaiting && isLate(due, dueAt, lateMs)) {
    return { kind: 'pass', outcome: 'missed', reason: 'no worker was there to fire it in time' };
  }
  if (!isBusy(schedule)) return { kind: 'fire' };
  if (overlap === 'skip') {
    return { kind: 'pass', outcome: 'skipped', reason: 'the task of the time before was not over' };
  }
  if (overlap === 'queue') {
    const ms = (now.getTime() - dueAt.getTime()) / 10;
    return { kind: 'wait', ms: Math.round(Math.min(Math.max(ms, SHORTEST_LOOK), LONGEST_LOOK)) };
  }
  return { kind: 'fire' };
}

/**
 * The time after the one that is settled. Times a little late come one by one; what was missed, or came while one
 * had to wait, is left out.
 * @param made whether a task was made
 */
export function timeAfter(due: DueSchedule, dueAt: Date, lateMs: number, made: boolean): Date | null {
  const { schedule, now } = due;
  const { nextAt, paused, fired, maxCount, isWaiting } = schedule;
  if (paused || (maxCount !== null && fired + (made ? 1 : 0) >= maxCount)) return null;
  // It was changed while it was fired, and has its next time already.
  if (nextAt && nextAt.getTime() !== dueAt.getTime()) return nextAt;
  const after = isWaiting || isLate(due, dueAt, lateMs) ? now : dueAt;
  return nextTime(schedule, after) ?? null;
}
