import { isUuid, TaskState } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, list, one, statement } from '../sql/statement.js';
import { leaseExpiry } from '../dispatch/lease-expiry.js';
import { insertStatusEvent } from '../log/insert-events.js';
import type { ClaimedRun } from '../tasks/task-records.js';
import { INLINE_BYTES, type NewStatus, statusNow } from '../tasks/task-row.js';
import {
  type Claimed,
  claimedOf,
  type ClaimedRunRow,
  readClaimedRun,
  runColumns,
  TASK_COLUMNS,
} from './claimed-run.js';
import type { BatchOperation, RunBatches } from './run-batches.js';
import { afterClaim } from '../dispatch/run-history.js';

/** A worker's claim of a run. */
interface NewClaim {
  tenantId: string;
  runId: string;
  workerId: string;
  leaseMs: number;
  /** The answer to this worker's claim was lost: if the claim succeeded, it succeeds again. */
  again: boolean;
}

interface ClaimRow extends ClaimedRunRow {
  run_id: string;
  attempt: number;
  /** The task was not working yet: the claim wrote the event at `last_sequence`. */
  started: boolean;
}

const WORKING = TaskState.TASK_STATE_WORKING.toString();
/** How large the first message of a task may be to come with the claim, in bytes. */
const FIRST_MESSAGE_BYTES = INLINE_BYTES / 4;

const ITEM = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  worker_id: ['text', ({ workerId }) => workerId],
  lease_ms: ['int', ({ leaseMs }) => leaseMs],
  again: ['boolean', ({ again }) => again],
} satisfies Inputs<NewClaim>;

const STATUS = {
  json: ['json', ({ json }) => json],
  at: ['timestamptz', ({ at }) => at],
} satisfies Inputs<NewStatus>;

// How statements on many runs are written, this one and those of append.ts, read-eager-run.ts and agent-version.ts:
// - Each item is judged on its own: one that is refused is not in the result.
// - The tenant is in each item, and is no constant. Postgres would else read all rows of a tenant that has few by its statistics,
//   and search the items among them. The conditions with ANY (`keyOfTenant`) keep it from reading all rows of a table that was
//   small when it made the plan.
// - Postgres may evaluate a change again when a row has changed meanwhile. It has the rows of FROM then, but it cannot read a changing
//   CTE again. So no expression has a subquery on one.
// - Statements that change a task and its run lock the task first. Statements that lock many rows lock only runs, or skip locked rows.
//   So no two statements deadlock.

/**
 * Compare-and-set, queued → running. Only the sweeper takes expired leases: it counts crashes and attempts, and it checks whether
 * Postgres was away.
 */
export const CLAIM = statement(
  'runs-claim-2',
  { items: list(ITEM), working: one(STATUS) },
  ({ items, working }) => `
WITH held AS (
  SELECT k.*, t.id, t.state
  FROM ${items.rows('k')}, LATERAL (
    SELECT task_id FROM runs WHERE tenant_id = ${keyOfTenant('k.tenant_id')} AND id = k.run_id OFFSET 0
  ) q, LATERAL (
    SELECT t.id, t.state FROM tasks t
    WHERE t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = q.task_id AND t.active_run_id = k.run_id
    FOR UPDATE
  ) t
), run AS (
  UPDATE runs r SET state = 'running', attempt = r.attempt + (r.state = 'queued')::int, worker_id = held.worker_id,
    lease_expires_at = ${leaseExpiry('held.lease_ms')}, history = ${afterClaim('held.worker_id')}
  FROM held
  WHERE r.tenant_id = ${keyOfTenant('held.tenant_id')} AND r.id = held.run_id
    AND CASE r.state WHEN 'queued' THEN r.enqueued_at IS NOT NULL
      WHEN 'running' THEN held.again AND r.worker_id = held.worker_id ELSE false END
  RETURNING r.tenant_id, r.id, r.attempt, r.start_sequence, r.extensions, r.traceparent, r.error_detail, r.created_at,
    held.id AS task_id, held.state <> ${WORKING} AS started
), task AS (
  UPDATE tasks t SET attempt = run.attempt, state = ${WORKING},
    status = CASE WHEN run.started THEN '{}' ELSE t.status END,
    status_at = CASE WHEN run.started THEN ${working.at} ELSE t.status_at END,
    last_sequence = t.last_sequence + run.started::int
  FROM run WHERE t.tenant_id = ${keyOfTenant('run.tenant_id')} AND t.id = run.task_id
  RETURNING t.tenant_id, run.id AS run_id, t.last_sequence, t.attempt, run.started, ${TASK_COLUMNS}, ${runColumns('run')}
), event AS (
  ${insertStatusEvent(working.json, { tenant_id: 't.tenant_id', attempt: 't.attempt', from: 'FROM task t WHERE t.started' })}
)
SELECT task.*, m.message, octet_length(m.message::text) AS message_bytes, m.request
FROM task LEFT JOIN LATERAL (
  SELECT message, request FROM task_messages
  WHERE task.attempt = 1 AND task.started AND task.last_sequence = 2
    AND tenant_id = task.tenant_id AND task_id = task.id AND sequence = 1
    AND octet_length(message::text) + coalesce(octet_length(request::text), 0) <= ${FIRST_MESSAGE_BYTES}
) m ON true`,
);

/** Claims in a batch. */
export const CLAIMS: BatchOperation<NewClaim, Claimed> = {
  identify: ({ runId }) => runId,
  prepare(claims) {
    const working = statusNow(TaskState.TASK_STATE_WORKING);
    // Sorted: two workers that claim the same runs do not deadlock.
    const items = claims.toSorted((one, other) => (one.runId < other.runId ? -1 : 1));
    return {
      statement: CLAIM,
      values: CLAIM.values({ items, working }),
      results: (rows: readonly QueryResultRow[]) => {
        const claimed = new Map((rows as ClaimRow[]).map((row) => [row.run_id, row]));
        return claims.map(({ runId }) => {
          const row = claimed.get(runId);
          return row && claimedOf(row, working, row.started, true);
        });
      },
    };
  },
};

/**
 * Compare-and-set: queued → running, attempt + 1. Then reads the task's content, within the budget.
 * @param leaseMs how long the lease lasts, in milliseconds
 * @param again the answer to this worker's claim was lost: if the claim succeeded, it succeeds again
 * @returns undefined: another worker has it, or it is over
 */
export async function claimRun(
  on: { database: Database; batches: RunBatches; readBytes: number },
  tenantId: string,
  runId: string,
  workerId: string,
  leaseMs: number,
  again = false,
): Promise<ClaimedRun | undefined> {
  if (!isUuid(tenantId) || !isUuid(runId)) return undefined;
  const claimed = await on.batches.submit(CLAIMS, { tenantId, runId, workerId, leaseMs, again });
  return claimed && readClaimedRun(on, { tenantId, runId, workerId }, claimed);
}
