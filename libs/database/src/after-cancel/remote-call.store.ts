import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import { AFTER_PAUSE, CanceledTaskStore, isCanceledAndDue } from './canceled-task.store.js';

/** A canceled task that may have calls in progress at tool servers. */
export interface CanceledCalls {
  tenantId: string;
  taskId: string;
  agentId: string;
  owner: string | null;
}

const COLUMN = 'remote_calls_at';

/**
 * Tasks with calls that a tool server executes as tasks of its own. After a cancel these must be canceled there, too. A task is taken for
 * the last time when its cancel is a day old.
 */
@Injectable()
export class RemoteCallStore extends CanceledTaskStore<CanceledCalls> {
  constructor(database: Database) {
    super(database, {
      column: COLUMN,
      names: { note: 'task-note-remote-call', forget: 'task-forget-remote-calls' },
      isDue: isCanceledAndDue(COLUMN, 'statement_timestamp()'),
      takenAgainAt: `CASE WHEN t.status_at < now() - interval '1 day' THEN NULL ELSE ${AFTER_PAUSE} END`,
      returning: `t.tenant_id AS "tenantId", t.id AS "taskId", t.agent_id AS "agentId", t.owner`,
    });
  }
}
