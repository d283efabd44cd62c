import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { one, statement } from '../sql/statement.js';
import { hasState } from '../dispatch/run-conditions.js';
import type { RunKey } from '../dispatch/run-key.js';
import type { RunError } from './run-error.js';
import { ERROR_OF_ATTEMPT } from './note-error.js';

/** The column keeps milliseconds, and Postgres rounds: a lease that ended "now" could last for half a millisecond. */
export const GIVE_UP = statement(
  'run-give-up-2',
  { attempt: one(ERROR_OF_ATTEMPT) },
  ({ attempt }) => `
UPDATE runs r SET error_detail = ${attempt.error}, lease_expires_at = clock_timestamp() - interval '1 millisecond'
WHERE tenant_id = ${keyOfTenant(attempt.tenant_id)} AND id = ${attempt.run_id} AND attempt = ${attempt.number} AND ${hasState('running')}`,
);

/**
 * The agent's process has died with this attempt in it. Its lease ends now, so it counts like an attempt whose worker died: the
 * sweeper queues the run again, or fails it when its attempts are used up.
 */
export async function giveUpRun(database: Database, run: RunKey, error: RunError): Promise<void> {
  const values = GIVE_UP.values({ attempt: { ...run, error } });
  await database.tenantQuery(run.tenantId, GIVE_UP, values);
}
