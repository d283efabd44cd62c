import type { Schedule } from '@baton/database';
import type { TickTimes } from '@baton/messaging';

/** The schedule's ticks on the queue. The queue may tick more often than the schedule fires. Postgres decides. */
export const ticksOf = ({ tenantId, id, ...schedule }: Omit<Schedule, 'message'>): TickTimes => {
  const { cron, at, timeZone, startsAt } = schedule;
  return {
    tenantId,
    scheduleId: id,
    timeZone,
    ...(cron !== null && { cron }),
    ...(at && { at }),
    ...(startsAt && { startsAt }),
  };
};
