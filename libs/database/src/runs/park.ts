import { isUuid } from '@baton/a2a';
import type { Actor } from '../audit/audit-records.js';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { hasState, isRunOf } from '../dispatch/run-conditions.js';
import { afterEnd, WOKEN } from '../dispatch/run-history.js';
import { RUN_KEY, type RunKey } from '../dispatch/run-key.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { takeInTurns } from '../sql/take-in-turns.js';

/** Codes that did not fit a run: the newest are kept. */
const MAX_CODES = 50;

/**
 * Workers with old and new code may live side by side. A run that an old one has parked again continues after this time, in s, or when
 * another worker has started.
 */
const AGAIN_SECONDS = 60;

interface NewParkedRun extends RunKey {
  /** Slug of the agent. */
  agent: string;
  /** How the code differs. */
  problem: string;
  /** Hash of the code. Undefined: unknown. */
  code: string | undefined;
}

const PARKED = {
  ...RUN_KEY,
  agent: ['text', ({ agent }) => agent],
  // Postgres has no text with U+0000.
  problem: ['text', ({ problem }) => problem.replaceAll('\0', '')],
  code: ['text', ({ code }) => code],
} satisfies Inputs<NewParkedRun>;

/** SQL: the codes that did not fit the run `r`. */
const CODES = `CASE WHEN jsonb_typeof(r.parked->'codes') = 'array' THEN r.parked->'codes' ELSE '[]' END`;

/**
 * A parked run is suspended. It waits for its own task, which has a turn as long as the run is there. So a process of
 * an earlier release, without parked runs, leaves it alone.
 */
const PARK = statement(
  'run-park',
  { run: one(PARKED) },
  ({ run }) => `
WITH held AS (
  SELECT id FROM tasks WHERE tenant_id = ${keyOfTenant(run.tenant_id)} AND id = ${run.task_id} AND active_run_id = ${run.id} AND attempt = ${run.attempt} FOR UPDATE
)
UPDATE runs r SET state = 'suspended', waits_for = ARRAY[${run.task_id}], worker_id = NULL, lease_expires_at = NULL, enqueued_at = NULL,
  not_before = NULL, history = ${afterEnd('parked')}, parked_at = clock_timestamp(), parked = jsonb_build_object(
    'reason', 'code-changed', 'problem', ${run.problem}, 'agent', ${run.agent}, 'code', ${run.code},
    'again', coalesce(${CODES} ? ${run.code}, false),
    'codes', CASE WHEN ${run.code} IS NULL OR ${CODES} ? ${run.code} THEN ${CODES}
      ELSE (CASE WHEN jsonb_array_length(${CODES}) >= ${MAX_CODES} THEN (${CODES}) - 0 ELSE ${CODES} END) || to_jsonb(${run.code}) END)
FROM held WHERE r.tenant_id = ${keyOfTenant(run.tenant_id)} AND r.id = ${run.id} AND r.attempt = ${run.attempt} AND r.state = 'running'
RETURNING r.id`,
);

/**
 * $1 tenant $2 task. The list of its codes stays: if it is parked once more, a worker with one of them does not claim it again and
 * again.
 */
export const RESUME: Statement = {
  name: 'run-resume',
  text: `
UPDATE runs r SET ${WOKEN}, parked_at = NULL
WHERE ${isRunOf('r', '$1', '$2')} AND ${hasState('suspended')} AND r.parked_at IS NOT NULL
RETURNING r.id`,
};

/**
 * Wakes parked runs if a live worker has code of their agent that may fit. $1 how old the last heartbeat of a live worker may be, in ms $2
 * limit. Times are stored to the millisecond. The statement has no name, so Postgres plans it for the present size of the tables each time.
 */
export const WAKE_PARKED: Statement = {
  text: `
WITH live AS MATERIALIZED (
  SELECT c.key AS agent, c.value AS code, max(w.started_at) AS since FROM workers w, jsonb_each_text(w.agent_codes) AS c
  WHERE w.seen_at > clock_timestamp() - $1::int * interval '1 millisecond' GROUP BY c.key, c.value
), ready AS MATERIALIZED (
${takeInTurns({
  table: 'runs',
  alias: 'r',
  columns: 'r.tenant_id, r.id',
  isDue: `r.state = 'suspended' AND r.parked_at IS NOT NULL
    AND EXISTS (
      SELECT FROM live WHERE live.agent = r.parked->>'agent' AND NOT coalesce(r.parked->'codes' ? live.code, false)
        AND (r.parked->'again' IS DISTINCT FROM 'true' OR live.since >= r.parked_at
          OR r.parked_at < statement_timestamp() - interval '${AGAIN_SECONDS} seconds')
    )`,
  since: 'r.parked_at',
  limit: '$2',
})}
)
UPDATE runs r SET ${WOKEN}, parked_at = NULL
FROM ready WHERE r.tenant_id = ${keyOfTenant('ready.tenant_id')} AND r.id = ready.id
RETURNING r.id`,
};

/**
 * Parks a run whose journal does not fit the code of its agent. It keeps its task and gives up worker, lease and slot.
 * @returns false if this attempt no longer owns the run
 */
export async function parkRun(database: Database, run: NewParkedRun): Promise<boolean> {
  return (await database.tenantQuery(run.tenantId, PARK, PARK.values({ run }))).length > 0;
}

/**
 * Queues the parked run of a task again; its next claim is another attempt.
 * @param by who does it, for the audit log
 * @returns whether it was parked
 */
export async function resumeRun(
  database: Database,
  tenantId: string,
  taskId: string,
  by: Actor,
): Promise<boolean> {
  if (!isUuid(taskId)) return false;
  return database.inTenant(tenantId, async (transaction) => {
    const [resumed] = await transaction.query(RESUME, [tenantId, taskId]);
    if (!resumed) return false;
    await transaction.record({ action: 'task.resume', target: { kind: 'task', name: taskId }, by });
    return true;
  });
}

/**
 * Queues the parked runs of all tenants again whose agent has other code now.
 * @param liveMs how old the last heartbeat of a live worker may be, in ms
 * @returns how many
 */
export async function wakeParked(database: Database, liveMs: number, limit: number): Promise<number> {
  return (await database.systemQuery(WAKE_PARKED, [liveMs, limit])).length;
}
