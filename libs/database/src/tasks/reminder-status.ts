import type { ReminderStatus } from './task-records.js';
import { INTERRUPTED_STATES } from './task-row.js';

/** What the row of a task has of its reminders (`TaskReminderStore`). */
export interface ReminderColumns {
  reminds_at: Date | null;
  reminder: StoredReminder | null;
  status_at: Date;
}

interface StoredReminder {
  kind: ReminderStatus['kind'] | 'done';
  escalateMs?: number | null;
  sent?: Partial<Record<ReminderStatus['kind'], { at: string; webhooks: number }>> | null;
}

/** SQL of these columns. A task that no longer asks may still have a reminder. */
export const reminderColumns = (tasks: string): string => `${tasks}.reminds_at, ${tasks}.status_at,
  CASE WHEN ${tasks}.state IN (${INTERRUPTED_STATES}) AND ${tasks}.active_run_id IS NULL THEN ${tasks}.reminder END AS reminder`;

/** The reminders of what a task asks now, in the order in which they come. */
export function remindersOf({
  reminder,
  reminds_at: remindsAt,
  status_at: since,
}: ReminderColumns): ReminderStatus[] {
  if (!reminder) return [];
  const { kind, escalateMs, sent } = reminder;
  const statusOf = (of: ReminderStatus['kind'], dueAt: Date | null): ReminderStatus => {
    const notice = sent?.[of];
    return { kind: of, dueAt, sentAt: notice ? new Date(notice.at) : null, webhooks: notice?.webhooks ?? 0 };
  };
  const found: ReminderStatus[] = [];
  if (kind === 'reminder') found.push(statusOf('reminder', remindsAt));
  else if (sent?.reminder) found.push(statusOf('reminder', null));
  if (kind === 'escalation') found.push(statusOf('escalation', remindsAt));
  else if (sent?.escalation) found.push(statusOf('escalation', null));
  else if (escalateMs != null) found.push(statusOf('escalation', new Date(since.getTime() + escalateMs)));
  return found;
}
