import type { Inputs } from '../sql/statement.js';

/** Identifies one try of a run. A writer whose attempt is not the task's current one cannot append. */
export interface RunKey {
  tenantId: string;
  taskId: string;
  runId: string;
  attempt: number;
}

/** Inputs of a statement about one attempt of a run. */
export const RUN_KEY = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
} satisfies Inputs<RunKey>;

/** A run that must be enqueued. */
export interface RunToEnqueue {
  tenantId: string;
  taskId: string;
  runId: string;
  attempt: number;
  /** Few runs of its tenant are in flight: a worker may execute it in a reserved slot. */
  mayUseReserved: boolean;
}

/** SQL of the columns of a RunRow, for a run `r`. */
export const RUN_COLUMNS = 'r.tenant_id, r.task_id, r.id AS run_id, r.attempt';

export interface RunRow {
  tenant_id: string;
  task_id: string;
  run_id: string;
  attempt: number;
}

/** A row of a run that is enqueued. */
export interface RunToEnqueueRow extends RunRow {
  may_use_reserved: boolean;
}

export const runKeyOf = (row: RunRow): RunKey => ({
  tenantId: row.tenant_id,
  taskId: row.task_id,
  runId: row.run_id,
  attempt: row.attempt,
});

export const runToEnqueueOf = (row: RunToEnqueueRow): RunToEnqueue => ({
  ...runKeyOf(row),
  mayUseReserved: row.may_use_reserved,
});
