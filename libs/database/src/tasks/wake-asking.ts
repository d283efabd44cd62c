import { TaskState } from '@baton/a2a';
import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { afterQuestion } from '../dispatch/run-history.js';
import { insertStatusEvent } from '../log/insert-events.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { takeInTurns } from '../sql/take-in-turns.js';
import type { WokenTask } from './task-records.js';
import { INTERRUPTED_STATES, type NewStatus, statusEvent, statusNow } from './task-row.js';

interface WokenTaskRow {
  tenant_id: string;
  id: string;
  context_id: string;
  last_sequence: number;
  push_configs: number;
}

interface Sweep {
  limit: number;
  working: NewStatus;
}

const SWEEP = {
  limit: ['int', ({ limit }) => limit],
  working: ['json', ({ working }) => working.json],
  working_at: ['timestamptz', ({ working }) => working.at],
} satisfies Inputs<Sweep>;

/**
 * Tasks whose question has expired without an answer: they are working again, and the run that has asked waits for a slot as the
 * next attempt. `due` locks the task, and so decides between the time and an answer: whichever comes second finds the task changed.
 * The run is changed before its task: this statement may have begun before the run was written, and does not see it then. The next
 * sweep does.
 *
 * It has no name: it is planned for the tables as they are, not as they once were.
 */
export const WAKE_ASKING = statement(
  undefined,
  { sweep: one(SWEEP) },
  ({ sweep }) => `
WITH due AS MATERIALIZED (
${takeInTurns({
  table: 'tasks',
  alias: 't',
  columns: `tenant_id, id, wakes_run_id, state IN (${INTERRUPTED_STATES}) AND active_run_id IS NULL AS asks`,
  isDue: 'wakes_at <= statement_timestamp()',
  since: 'wakes_at',
  limit: sweep.limit,
})}
), left_over AS (
  UPDATE tasks t SET wakes_at = NULL, wakes_run_id = NULL
  FROM due WHERE NOT due.asks AND t.tenant_id = ${keyOfTenant('due.tenant_id')} AND t.id = due.id
), run AS (
  UPDATE runs r SET state = 'queued', worker_id = NULL, enqueued_at = NULL, not_before = NULL, finished_at = NULL, history = ${afterQuestion()}
  FROM due
  WHERE due.asks AND r.tenant_id = ${keyOfTenant('due.tenant_id')} AND r.id = due.wakes_run_id AND r.state = 'succeeded'
  RETURNING r.tenant_id, r.task_id, r.id, r.attempt
), task AS (
  UPDATE tasks t SET state = ${TaskState.TASK_STATE_WORKING}, status = '{}', status_at = ${sweep.working_at},
    last_sequence = t.last_sequence + 1, active_run_id = run.id, attempt = run.attempt, outcome = NULL, open_bytes = 0,
    wakes_at = NULL
  FROM run WHERE t.tenant_id = ${keyOfTenant('run.tenant_id')} AND t.id = run.task_id
  RETURNING t.tenant_id, t.id, t.context_id, t.last_sequence, t.push_configs
), event AS (
  ${insertStatusEvent(sweep.working, { tenant_id: 't.tenant_id', attempt: '0', from: 'FROM task t' })}
)
SELECT tenant_id, id, context_id, last_sequence, push_configs FROM task`,
);

/**
 * Continues tasks of all tenants whose question has expired without an answer. Their runs wait for a slot then.
 * @param limit how many at most
 */
export async function wakeAsking(database: Database, limit: number): Promise<WokenTask[]> {
  const working = statusNow(TaskState.TASK_STATE_WORKING);
  const values = WAKE_ASKING.values({ sweep: { limit, working } });
  const rows = await database.systemQuery<WokenTaskRow>(WAKE_ASKING, values);
  return rows.map((row) => ({
    tenantId: row.tenant_id,
    taskId: row.id,
    event: { sequence: row.last_sequence, payload: statusEvent(row.id, row.context_id, working.status) },
    hasPushConfigs: row.push_configs > 0,
  }));
}
