import { isUuid } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Database, Statement } from '../connection/database.js';
import { isRunOf } from '../dispatch/run-conditions.js';
import { PARKED, parkedRunOf } from '../dispatch/parked-run.js';
import type { RunRecord } from './run-record.js';

/** $1 tenant $2 task */
const RUNS_OF_TASK: Statement = {
  name: 'runs-of-task-2',
  text: `
SELECT r.id AS "runId", r.state, r.attempt, r.deaths AS crashes, r.worker_id AS "workerId",
  r.start_sequence AS "startSequence", r.created_at AS "createdAt", r.not_before AS "notBefore",
  r.finished_at AS "finishedAt", ${PARKED} AS parked
FROM runs r
WHERE ${isRunOf('r', '$1', '$2')}
ORDER BY r.created_at DESC, r.id DESC LIMIT 100`,
};

/** The newest runs of a task, at most 100, the newest first. */
export async function runsOfTask(database: Database, tenantId: string, taskId: string): Promise<RunRecord[]> {
  if (!isUuid(taskId)) return [];
  type RunRow = Omit<RunRecord, 'parked'> & { parked: unknown };
  const rows = await database.tenantQuery<RunRow & QueryResultRow>(tenantId, RUNS_OF_TASK, [
    tenantId,
    taskId,
  ]);
  return rows.map((row) => ({ ...row, parked: parkedRunOf(row.parked) }));
}
