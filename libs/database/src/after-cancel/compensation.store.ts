import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { AFTER_PAUSE, CanceledTaskStore, isCanceledAndDue } from './canceled-task.store.js';

/** A canceled task that may have steps to undo. */
export interface CanceledSteps {
  tenantId: string;
  taskId: string;
}

const COLUMN = 'compensates_at';

/** Time that the agent's code has to stop after the cancel. Steps that finish in this time are undone, too. */
const STOP_TIME = "interval '3 seconds'";

/** SQL: the steps of a task are to be undone. @param time SQL of the present time */
export const isUndoDue = (time: string): string =>
  `${isCanceledAndDue(COLUMN, time)} AND status_at <= ${time} - ${STOP_TIME}`;

/** The pause is as long as the time since the cancel, up to a maximum. $1 tenant $2 task $3 maximum in ms */
const POSTPONE: Statement = {
  name: 'task-postpone-compensations',
  text: `
UPDATE tasks SET compensates_at = clock_timestamp() + least(clock_timestamp() - status_at, $3::int * interval '1 millisecond')
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND compensates_at IS NOT NULL`,
};

/** Tasks that have begun steps with `compensate`. After a cancel another task undoes these steps. */
@Injectable()
export class CompensationStore extends CanceledTaskStore<CanceledSteps> {
  constructor(database: Database) {
    super(database, {
      column: COLUMN,
      names: { note: 'task-note-compensable', forget: 'task-forget-compensations' },
      isDue: isUndoDue('statement_timestamp()'),
      takenAgainAt: AFTER_PAUSE,
      returning: `t.tenant_id AS "tenantId", t.id AS "taskId"`,
    });
  }

  /** Postgres offers the task again after a pause that grows: its undoing task cannot be made now. @param longestMs of a pause */
  async postpone(tenantId: string, taskId: string, longestMs: number): Promise<void> {
    await this.database.tenantQuery(tenantId, POSTPONE, [tenantId, taskId, longestMs]);
  }
}
