import type { ScheduleRecord } from '../observations.js';
import type { Finding } from './finding.js';

/** A schedule that is later than this when all faults are over does not fire any more. */
const MAX_LATE_MS = 15_000;

/** Each due time of a schedule is exactly one task, or one recorded time without a task. */
export function* checkSchedule(schedule: ScheduleRecord): Generator<Finding> {
  const { name, first, everyMs, next, readAt, fired, passed, isBusy } = schedule;
  const task = `schedule ${name}`;
  // A task of the next time may exist already, while its worker still has to record it.
  const tasks = schedule.tasks.filter((dueAt) => next === undefined || dueAt < next);
  const late = next === undefined ? 0 : readAt - next;
  if (late > MAX_LATE_MS && !isBusy) yield { defect: 'stuck', task, detail: `it is ${late} ms late` };
  for (const dueAt of tasks) {
    const isDue =
      dueAt >= first && (everyMs === undefined ? dueAt === first : (dueAt - first) % everyMs === 0);
    const detail = `a task for ${new Date(dueAt).toISOString()}, which is no time of it`;
    if (!isDue) yield { defect: 'mistimed', task, detail };
  }
  if (new Set(schedule.tasks).size < schedule.tasks.length) {
    yield { defect: 'mistimed', task, detail: 'one of its times has made two tasks' };
  }
  if (tasks.length !== fired) {
    yield { defect: 'mistimed', task, detail: `${tasks.length} tasks, and it counts ${fired}` };
  }
  const due = everyMs === undefined ? Number(next === undefined) : ((next ?? first) - first) / everyMs;
  if (due !== fired + passed) {
    const detail = `${due} times were due, ${fired} made a task, ${passed} are recorded without one`;
    yield { defect: 'mistimed', task, detail };
  }
}
