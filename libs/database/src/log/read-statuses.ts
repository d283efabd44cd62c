import { isUuid, TaskState } from '@baton/a2a';
import type { Database, Statement } from '../connection/database.js';
import { eventsIn, firstOf } from './log-rows.js';

/** A status of a task, without its message. */
export interface LoggedStatus {
  sequence: number;
  /** The attempt that wrote it; 0: the platform. */
  attempt: number;
  /** When it was stored. */
  at: Date;
  state: TaskState;
}

/** Events of the log that are looked at: the newest. */
const MAX_EVENTS = 20_000;

/**
 * The state is found in the text of the event, because Postgres refuses to read members of a JSON value with U+0000. A text of a caller cannot
 * be mistaken for it: its quotes are escaped. $1 tenant $2 task $3 limit
 */
const READ_STATUSES: Statement = {
  name: 'task-read-statuses',
  text: `
SELECT sequence, attempt, at, state FROM (
  SELECT ${firstOf('r')} + e.n::int - 1 AS sequence, r.attempt, r.created_at AS at,
    substring(e.payload::text FROM '"state":"(TASK_STATE_[A-Z_]+)"') AS state
  FROM task_events r, ${eventsIn('r')}
  WHERE r.tenant_id = $1 AND r.task_id = $2 AND r.sequence > (
    SELECT max(l.sequence) - ${MAX_EVENTS} FROM task_events l WHERE l.tenant_id = $1 AND l.task_id = $2
  ) AND starts_with(e.payload::text, '{"statusUpdate":')
) s WHERE state IS NOT NULL ORDER BY sequence DESC LIMIT $3`,
};

/** The newest `limit` statuses in the log of a task, the oldest of them first. The first one, `submitted`, is not among them. */
export async function readStatuses(
  database: Database,
  tenantId: string,
  taskId: string,
  limit: number,
): Promise<LoggedStatus[]> {
  if (!isUuid(taskId)) return [];
  // A list: it goes through up to 20,000 events.
  const rows = await database.currentLists.tenantQuery<Omit<LoggedStatus, 'state'> & { state: string }>(
    tenantId,
    READ_STATUSES,
    [tenantId, taskId, limit],
  );
  return rows.toReversed().flatMap((row) => {
    const state = TaskState[row.state as keyof typeof TaskState] as TaskState | undefined;
    return state === undefined ? [] : [{ ...row, state }];
  });
}
