import { isUuid } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Database, Statement } from '../connection/database.js';
import { isRunOf } from '../dispatch/run-conditions.js';
import type { RunRecord } from './run-record.js';

/** $1 tenant $2 task */
const RUNS_OF_TASK: Statement = {
  name: 'runs-of-task',
  text: `
SELECT r.id AS "runId", r.state, r.attempt, r.deaths AS crashes, r.worker_id AS "workerId",
  r.start_sequence AS "startSequence", r.created_at AS "createdAt", r.not_before AS "notBefore",
  r.finished_at AS "finishedAt"
FROM runs r
WHERE ${isRunOf('r', '$1', '$2')}
ORDER BY r.created_at DESC, r.id DESC LIMIT 100`,
};

/** The newest runs of a task, at most 100, the newest first. */
export async function runsOfTask(database: Database, tenantId: string, taskId: string): Promise<RunRecord[]> {
  if (!isUuid(taskId)) return [];
  return database.tenantQuery<RunRecord & QueryResultRow>(tenantId, RUNS_OF_TASK, [tenantId, taskId]);
}
