import { TaskState } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import type { RunKey } from '../dispatch/run-key.js';
import { takeInTurns } from '../sql/take-in-turns.js';

/** A canceled task that may have steps to undo. */
export interface CanceledSteps {
  tenantId: string;
  taskId: string;
}

/** Time that its code has to stop after the cancel. What a step has done by then is found. */
const STOP_TIME = "interval '3 seconds'";

/** SQL: the steps of a task are to be undone. @param time SQL of the present time */
export const isUndoDue = (time: string): string => `compensates_at <= ${time}
  AND state = ${TaskState.TASK_STATE_CANCELED} AND status_at <= ${time} - ${STOP_TIME}`;

/** $1 tenant $2 task $3 run $4 attempt */
const NOTE: Statement = {
  name: 'task-note-compensable',
  text: `
UPDATE tasks SET compensates_at = now()
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND active_run_id = $3 AND attempt = $4 RETURNING id`,
};

/** Takes them for a while: $1 limit $2 until another worker may take them, in ms. It has no name: it is planned for the tables as they are. */
const TAKE: Statement = {
  text: `
WITH due AS MATERIALIZED (
${takeInTurns({
  table: 'tasks',
  alias: 't',
  columns: 'tenant_id, id',
  isDue: isUndoDue('statement_timestamp()'),
  since: 'compensates_at',
  limit: '$1',
})}
)
UPDATE tasks t SET compensates_at = clock_timestamp() + $2::int * interval '1 millisecond'
FROM due WHERE t.tenant_id = ${keyOfTenant('due.tenant_id')} AND t.id = due.id
RETURNING t.tenant_id, t.id`,
};

/** $1 tenant $2 task */
const FORGET: Statement = {
  name: 'task-forget-compensations',
  text: `UPDATE tasks SET compensates_at = NULL WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2`,
};

/**
 * The pause is as long as it has waited since the cancel, and bounded: the agent may be enabled again. $1 tenant $2 task
 * $3 longest pause in ms
 */
const POSTPONE: Statement = {
  name: 'task-postpone-compensations',
  text: `
UPDATE tasks SET compensates_at = clock_timestamp() + least(clock_timestamp() - status_at, $3::int * interval '1 millisecond')
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND compensates_at IS NOT NULL`,
};

/** Tasks that have begun steps with `compensate`: a cancel must not forget them. */
@Injectable()
export class CompensationStore {
  constructor(private readonly database: Database) {}

  /** The task may have steps to undo from now on. @returns false if this attempt no longer owns the run */
  async note({ tenantId, taskId, runId, attempt }: RunKey): Promise<boolean> {
    const values = [tenantId, taskId, runId, attempt];
    return (await this.database.tenantQuery(tenantId, NOTE, values)).length > 0;
  }

  /**
   * Takes canceled tasks of all tenants for some time.
   * @param forMs the time, after which another worker takes those that were not forgotten
   */
  async takeCanceled(limit: number, forMs: number): Promise<CanceledSteps[]> {
    const rows = await this.database.systemQuery<{ tenant_id: string; id: string }>(TAKE, [limit, forMs]);
    return rows.map((row) => ({ tenantId: row.tenant_id, taskId: row.id }));
  }

  /** No task could be made for it: it is taken again after a pause that grows. @param longestMs of a pause */
  async postpone(tenantId: string, taskId: string, longestMs: number): Promise<void> {
    await this.database.tenantQuery(tenantId, POSTPONE, [tenantId, taskId, longestMs]);
  }

  /** Forgets the steps to undo: another task undoes them, or the task has none. */
  async forget(tenantId: string, taskId: string): Promise<void> {
    await this.database.tenantQuery(tenantId, FORGET, [tenantId, taskId]);
  }
}
