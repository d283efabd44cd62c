/** A row of a log, each column as SQL. Unset columns are NULL. */
interface EventSql {
  tenant_id: string;
  task_id: string;
  /** Sequence of its last event. The statement takes it from `tasks.last_sequence`, as `runs/append.ts` does: that numbers the events. */
  sequence: string;
  /** Sequence of its first event; NULL = it has one event. */
  first_sequence?: string;
  attempt: string;
  payload: string;
  /** The number of its artifact (`artifactKey`); 0 = it belongs to none. */
  artifact: string;
  /** Unset where the payload is small. */
  bytes?: string;
}

/** Columns of the first event of a task: it belongs to no attempt and no artifact. */
export const FIRST_EVENT = { sequence: '1', attempt: '0', artifact: '0' };

/**
 * SQL that writes rows of a log.
 * @param row its columns, as SQL
 * @param from the FROM clause of the SELECT
 */
export const insertEvents = (
  row: EventSql,
  from: string,
): string => `INSERT INTO task_events (${Object.keys(row).join(', ')})
  SELECT ${Object.values(row).join(', ')}
  ${from}`;

/**
 * SQL that writes a status event of tasks that the statement has changed.
 * @param status SQL of the ProtoJSON of a TaskStatus
 * @param tasks what the rows `t` come from, with their id and `last_sequence`
 */
export const insertStatusEvent = (
  status: string,
  tasks: { tenant_id: string; attempt: string; from: string },
): string =>
  insertEvents(
    {
      tenant_id: tasks.tenant_id,
      task_id: 't.id',
      sequence: 't.last_sequence',
      attempt: tasks.attempt,
      // Without the ids of its task, see log-rows.ts.
      payload: `('{"statusUpdate":{"status":' || ${status}::text || '}}')::json`,
      artifact: '0',
    },
    tasks.from,
  );
