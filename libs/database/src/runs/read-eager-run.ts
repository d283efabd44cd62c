import { isUuid, TaskState } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, list, statement } from '../sql/statement.js';
import { leaseExpiry } from '../dispatch/lease-expiry.js';
import { hasState } from '../dispatch/run-conditions.js';
import type { ClaimedRun } from '../tasks/task-records.js';
import { statusNow } from '../tasks/task-row.js';
import {
  type Claimed,
  claimedOf,
  type ClaimedRunRow,
  readClaimedRun,
  runColumns,
  TASK_COLUMNS,
} from './claimed-run.js';
import type { BatchOperation, RunBatches } from './run-batches.js';

/** A run that was claimed for this worker at acceptance (eager start). */
interface EagerRead {
  tenantId: string;
  runId: string;
  workerId: string;
  /** How long its lease must last. */
  minLeaseMs: number;
}

interface EagerRunRow extends ClaimedRunRow {
  run_id: string;
  attempt: number;
}

const ITEM = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  worker_id: ['text', ({ workerId }) => workerId],
  least_ms: ['int', ({ minLeaseMs }) => minLeaseMs],
} satisfies Inputs<EagerRead>;

/** The task of a run that was claimed for this worker at acceptance, if the run has not begun and its lease lasts. Writes nothing. */
export const READ_EAGER_RUNS = statement(
  'runs-pick-up',
  { items: list(ITEM) },
  ({ items }) => `
SELECT k.run_id, r.attempt, 2 AS last_sequence, ${TASK_COLUMNS}, ${runColumns('r', 'NULL')}, m.message, octet_length(m.message::text) AS message_bytes, m.request
FROM ${items.rows('k')}, LATERAL (
  SELECT r.task_id, r.attempt, r.start_sequence, r.extensions, r.traceparent, r.created_at FROM runs r
  WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND r.worker_id = k.worker_id AND r.attempt = 1
    AND ${hasState('running')} AND r.lease_expires_at > ${leaseExpiry('k.least_ms')}
  OFFSET 0
) r, LATERAL (
  SELECT t.* FROM tasks t
  WHERE t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = r.task_id AND t.active_run_id = k.run_id AND t.last_sequence = 1
  OFFSET 0
) t, LATERAL (
  SELECT message, request FROM task_messages WHERE tenant_id = k.tenant_id AND task_id = t.id AND sequence = 1
  OFFSET 0
) m`,
);

/** Reads of eager runs in a batch. */
export const EAGER_READS: BatchOperation<EagerRead, Claimed> = {
  identify: ({ runId }) => runId,
  prepare(items) {
    const working = statusNow(TaskState.TASK_STATE_WORKING);
    return {
      statement: READ_EAGER_RUNS,
      values: READ_EAGER_RUNS.values({ items }),
      results: (rows: readonly QueryResultRow[]) => {
        const found = new Map((rows as EagerRunRow[]).map((row) => [row.run_id, row]));
        return items.map(({ runId }) => {
          const row = found.get(runId);
          // The writer appends the event, with the first events of the agent.
          return row && claimedOf(row, working, true, false);
        });
      },
    };
  },
};

/**
 * A run that was claimed for this worker at acceptance (`NewTask.claimFor`), in the form of `claimRun`.
 * @param minLeaseMs how long its lease must last, in milliseconds
 * @returns undefined: it is over, was canceled, has begun, or its lease ends sooner
 */
export async function readEagerRun(
  on: { database: Database; batches: RunBatches; readBytes: number },
  tenantId: string,
  runId: string,
  workerId: string,
  minLeaseMs: number,
): Promise<ClaimedRun | undefined> {
  if (!isUuid(tenantId) || !isUuid(runId)) return undefined;
  const claimed = await on.batches.submit(EAGER_READS, { tenantId, runId, workerId, minLeaseMs });
  return claimed && readClaimedRun(on, { tenantId, runId, workerId }, claimed);
}
