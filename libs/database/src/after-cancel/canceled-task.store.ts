import { TaskState } from '@baton/a2a';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import type { RunKey } from '../dispatch/run-key.js';
import { takeInTurns } from '../sql/take-in-turns.js';

interface CanceledTaskSql {
  /** Column of `tasks`: when a worker takes the task, once it is canceled. NULL: there is nothing to do. */
  column: string;
  /** Names of the prepared statements. */
  names: { note: string; forget: string };
  /** SQL of the condition of a canceled task. */
  isDue: string;
  /** SQL of the time when another worker takes a taken task `t`. */
  takenAgainAt: string;
  /** Columns of a taken task `t`. */
  returning: string;
}

/** SQL: the task is canceled, and the time of this column is over. @param time SQL of the present time */
export const isCanceledAndDue = (column: string, time: string): string =>
  `${column} <= ${time} AND state = ${TaskState.TASK_STATE_CANCELED}`;

/** SQL of the time when another worker takes a task: $2 in ms. */
export const AFTER_PAUSE = "clock_timestamp() + $2::int * interval '1 millisecond'";

/** Tasks that leave work behind when they are canceled. A run notes its task before it begins such work. */
export class CanceledTaskStore<Row extends object> {
  private readonly noteTask: Statement;
  private readonly takeTasks: Statement;
  private readonly forgetTask: Statement;

  constructor(
    protected readonly database: Database,
    { column, names, isDue, takenAgainAt, returning }: CanceledTaskSql,
  ) {
    // $1 tenant $2 task $3 run $4 attempt
    this.noteTask = {
      name: names.note,
      text: `
UPDATE tasks SET ${column} = now()
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND active_run_id = $3 AND attempt = $4 RETURNING id`,
    };
    // $1 limit $2 pause in ms. It has no name: Postgres plans it each time, for the tables as they are then.
    const due = { table: 'tasks', alias: 't', columns: 'tenant_id, id', isDue, since: column, limit: '$1' };
    this.takeTasks = {
      text: `
WITH due AS MATERIALIZED (
${takeInTurns(due)}
)
UPDATE tasks t SET ${column} = ${takenAgainAt}
FROM due WHERE t.tenant_id = ${keyOfTenant('due.tenant_id')} AND t.id = due.id
RETURNING ${returning}`,
    };
    // $1 tenant $2 task
    this.forgetTask = {
      name: names.forget,
      text: `UPDATE tasks SET ${column} = NULL WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2`,
    };
  }

  /** The task may leave such work behind from now on. @returns false if this attempt no longer owns the run */
  async note({ tenantId, taskId, runId, attempt }: RunKey): Promise<boolean> {
    const values = [tenantId, taskId, runId, attempt];
    return (await this.database.tenantQuery(tenantId, this.noteTask, values)).length > 0;
  }

  /**
   * Takes canceled tasks of all tenants for some time.
   * @param forMs the time, after which another worker takes those that were not forgotten
   */
  async takeCanceled(limit: number, forMs: number): Promise<Row[]> {
    return this.database.systemQuery<Row>(this.takeTasks, [limit, forMs]);
  }

  /** The task has no such work any more. */
  async forget(tenantId: string, taskId: string): Promise<void> {
    await this.database.tenantQuery(tenantId, this.forgetTask, [tenantId, taskId]);
  }
}
