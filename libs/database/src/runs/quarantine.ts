import { isUuid } from '@baton/a2a';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { hasState } from '../dispatch/run-conditions.js';

/** Runs in quarantine: they have crashed at least twice, or once with only one attempt left. */
const SUSPECT = '(r.deaths > 1 OR r.deaths > 0 AND r.deaths + 1 >= r.max_attempts)';

/** $1 tenant $2 run */
export const IS_SUSPECT: Statement = {
  name: 'run-is-suspect',
  text: `SELECT id FROM runs r WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND ${hasState('queued')} AND ${SUSPECT}`,
};

/**
 * Whether the run is in quarantine: workers have died while they executed it. Such runs are executed one at a time, so that a run
 * which crashes its worker takes no other one with it.
 */
export async function isSuspect(database: Database, tenantId: string, runId: string): Promise<boolean> {
  if (!isUuid(tenantId) || !isUuid(runId)) return false;
  const rows = await database.tenantQuery(tenantId, IS_SUSPECT, [tenantId, runId]);
  return rows.length > 0;
}

/** $1 tenant $2 run $3 how long in ms */
export const POSTPONE: Statement = {
  name: 'run-postpone',
  text: `
UPDATE runs r SET enqueued_at = NULL, not_before = clock_timestamp() + $3::int * interval '1 millisecond'
WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 AND ${hasState('queued')} AND enqueued_at IS NOT NULL`,
};

/** Takes a run off the queue. It can get a slot again after `forMs`, in milliseconds. */
export async function postponeRun(
  database: Database,
  tenantId: string,
  runId: string,
  forMs: number,
): Promise<void> {
  await database.tenantQuery(tenantId, POSTPONE, [tenantId, runId, forMs]);
}
