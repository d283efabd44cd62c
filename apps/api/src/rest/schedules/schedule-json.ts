import { Message, stateName } from '@baton/a2a';
import type { Schedule } from '@baton/tasks';

type Json = Record<string, unknown>;

const timeOf = (date: Date | null): string | null => date?.toISOString() ?? null;

/** A schedule without its message. */
export function encodeSchedule(schedule: Omit<Schedule, 'message'>): Json {
  const { id, name, agent, cron, at, timeZone, overlap, missed, context, last, lastTaskId } = schedule;
  const { startsAt, endsAt, maxCount, paused, fired, nextAt, isWaiting, lastTaskState: state } = schedule;
  return {
    ...{ id, name, agent, cron, at: timeOf(at), time_zone: timeZone, overlap, missed, context },
    ...{ starts_at: timeOf(startsAt), ends_at: timeOf(endsAt), max_count: maxCount, paused, fired },
    ...{ next_at: timeOf(nextAt), waiting: isWaiting },
    last_outcome: last && {
      ...{ outcome: last.outcome, reason: last.reason },
      ...{ due_at: timeOf(last.dueAt), at: timeOf(last.at) },
    },
    last_task: lastTaskId && { request_id: lastTaskId, state: state === null ? null : stateName(state) },
    ...{ created_at: timeOf(schedule.createdAt), updated_at: timeOf(schedule.updatedAt) },
  };
}

/** The same with what is said, in the JSON of A2A 1.0. */
export function encodeScheduleWithMessage(schedule: Schedule): Json {
  const { messageId: _id, role: _role, ...message } = Message.toJSON(schedule.message) as Json;
  return { ...encodeSchedule(schedule), message };
}
