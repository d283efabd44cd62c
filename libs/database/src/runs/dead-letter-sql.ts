import type { Statement } from '../connection/database.js';

export interface DeadLetterRow {
  tenant_id: string;
  run_id: string;
  task_id: string;
  agent_id: string;
  reason: string;
  attempts: number;
  died_at: Date;
  redelivered_at: Date | null;
  redelivered_task_id: string | null;
}
/** What is needed to say it again; null = the task is no longer kept. */
export interface SaidRow {
  message: object | null;
  context_id: string;
  extensions: string[] | null;
}

const COLUMNS = `d.tenant_id, d.run_id, d.task_id, d.agent_id, d.reason, d.attempts, d.died_at,
  d.redelivered_at, d.redelivered_task_id`;

/** $1 tenant, NULL = all $2 and $3 the last row of the page before: when it died, and its run; NULL = none $4 limit */
export const LIST: Statement = {
  name: 'dead-letter-list',
  text: `
SELECT ${COLUMNS} FROM dead_letters d
WHERE ($1::uuid IS NULL OR d.tenant_id = $1)
  AND ($2::timestamptz IS NULL OR (d.died_at, d.run_id) < ($2, $3::uuid))
ORDER BY d.died_at DESC, d.run_id DESC LIMIT $4`,
};

/** $1 run, $2 tenant, NULL = any */
export const FIND: Statement = {
  name: 'dead-letter-find',
  text: `SELECT ${COLUMNS} FROM dead_letters d WHERE d.run_id = $1 AND ($2::uuid IS NULL OR d.tenant_id = $2)`,
};

/** The message with which the turn began: $1 tenant $2 run */
export const READ_SAID: Statement = {
  name: 'dead-letter-read-said',
  text: `
SELECT t.context_id, r.extensions, (
  SELECT message FROM task_messages
  WHERE tenant_id = $1 AND task_id = r.task_id AND sequence = r.start_sequence
) AS message
FROM (SELECT * FROM runs WHERE tenant_id = $1 AND id = $2) r, LATERAL (
  SELECT context_id FROM tasks WHERE tenant_id = $1 AND id = r.task_id
) t`,
};

/**
 * Says which task the redelivery makes: $1 tenant $2 run $3 its id, if it is the first $4 whether once more. The id
 * is kept before the task is made: whoever comes again, also after a crash in between, makes that very task.
 */
export const RESERVE: Statement = {
  name: 'dead-letter-reserve',
  text: `
UPDATE dead_letters d SET
  redelivered_task_id = CASE
    WHEN redelivered_at IS NULL THEN COALESCE(redelivered_task_id, $3) WHEN $4 THEN $3 ELSE redelivered_task_id END,
  redelivered_at = CASE WHEN $4 THEN NULL ELSE redelivered_at END
WHERE tenant_id = $1 AND run_id = $2
RETURNING ${COLUMNS}`,
};

/** $1 tenant $2 run $3 the task that is there now */
export const CONFIRM: Statement = {
  name: 'dead-letter-confirm',
  text: `
UPDATE dead_letters SET redelivered_at = now()
WHERE tenant_id = $1 AND run_id = $2 AND redelivered_task_id = $3 AND redelivered_at IS NULL`,
};
