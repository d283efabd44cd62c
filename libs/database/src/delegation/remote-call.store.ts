import { TaskState } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import type { RunKey } from '../dispatch/run-key.js';
import { takeInTurns } from '../sql/take-in-turns.js';

/** A canceled task that may have calls in progress at tool servers. */
export interface CanceledCalls {
  tenantId: string;
  taskId: string;
  agentId: string;
  owner: string | null;
}

interface CanceledCallsRow {
  tenant_id: string;
  id: string;
  agent_id: string;
  owner: string | null;
}

/** $1 tenant $2 task $3 run $4 attempt */
const NOTE: Statement = {
  name: 'task-note-remote-call',
  text: `
UPDATE tasks SET remote_calls_at = now()
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND active_run_id = $3 AND attempt = $4 RETURNING id`,
};

/**
 * Takes canceled tasks for some time: $1 limit $2 until another worker may take them, in ms. Without a name: Postgres plans it each
 * time, for the tables as they are then.
 */
const TAKE: Statement = {
  text: `
WITH due AS MATERIALIZED (
${takeInTurns({
  table: 'tasks',
  alias: 't',
  columns: 'tenant_id, id',
  isDue: `remote_calls_at <= statement_timestamp() AND state = ${TaskState.TASK_STATE_CANCELED}`,
  since: 'remote_calls_at',
  limit: '$1',
})}
)
UPDATE tasks t SET remote_calls_at = CASE
  WHEN t.status_at < now() - interval '1 day' THEN NULL
  ELSE clock_timestamp() + $2::int * interval '1 millisecond' END
FROM due WHERE t.tenant_id = ${keyOfTenant('due.tenant_id')} AND t.id = due.id
RETURNING t.tenant_id, t.id, t.agent_id, t.owner`,
};

/** $1 tenant $2 task */
const FORGET: Statement = {
  name: 'task-forget-remote-calls',
  text: `UPDATE tasks SET remote_calls_at = NULL WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2`,
};

/** Tasks with calls that a tool server executes as tasks of its own. After a cancel these must be canceled there, too. */
@Injectable()
export class RemoteCallStore {
  constructor(private readonly database: Database) {}

  /** The task may have such a call from now on. @returns false if this attempt no longer owns the run */
  async note({ tenantId, taskId, runId, attempt }: RunKey): Promise<boolean> {
    const values = [tenantId, taskId, runId, attempt];
    return (await this.database.tenantQuery(tenantId, NOTE, values)).length > 0;
  }

  /**
   * Takes canceled tasks of all tenants for some time. After a day they are taken for the last time.
   * @param forMs the time, after which another worker takes those that were not forgotten
   */
  async takeCanceled(limit: number, forMs: number): Promise<CanceledCalls[]> {
    const rows = await this.database.systemQuery<CanceledCallsRow>(TAKE, [limit, forMs]);
    return rows.map((row) => ({
      tenantId: row.tenant_id,
      taskId: row.id,
      agentId: row.agent_id,
      owner: row.owner,
    }));
  }

  /** The task has no such call any more. */
  async forget(tenantId: string, taskId: string): Promise<void> {
    await this.database.tenantQuery(tenantId, FORGET, [tenantId, taskId]);
  }
}
