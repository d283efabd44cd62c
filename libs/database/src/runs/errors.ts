import { isUuid } from '@baton/a2a';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { hasState, isRunOf } from '../dispatch/run-conditions.js';
import type { RunKey } from '../dispatch/run-key.js';
import type { RunError, RunErrorRecord } from './run-error.js';

const ATTEMPT = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  number: ['int', ({ attempt }) => attempt],
  error: ['json', ({ error }) => errorJson(error)],
} satisfies Inputs<RunKey & { error: RunError }>;

/** U+0000 and lone surrogates would make Postgres refuse to read it. */
const errorJson = (error: RunError): string =>
  JSON.stringify(error, (_, value: unknown) =>
    typeof value === 'string' ? value.replace(/\0|\p{Surrogate}/gu, '\uFFFD') : value,
  );

const NOTE_ERROR = statement(
  'run-note-error',
  { attempt: one(ATTEMPT) },
  ({ attempt }) => `
UPDATE runs SET error_detail = ${attempt.error}
WHERE tenant_id = ${keyOfTenant(attempt.tenant_id)} AND id = ${attempt.run_id} AND attempt = ${attempt.number}`,
);

/** Stores an error in the agent's code. */
export async function noteError(database: Database, run: RunKey, error: RunError): Promise<void> {
  const values = NOTE_ERROR.values({ attempt: { ...run, error } });
  await database.tenantQuery(run.tenantId, NOTE_ERROR, values);
}

/** The column keeps milliseconds, and Postgres rounds: a lease that ended "now" could last for half a millisecond. */
export const GIVE_UP = statement(
  'run-give-up-2',
  { attempt: one(ATTEMPT) },
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

interface ErrorRow {
  run_id: string;
  error_detail: RunError;
}

/** $1 tenant $2 task */
const LAST_ERROR: Statement = {
  name: 'run-last-error',
  text: `
SELECT id AS run_id, error_detail FROM runs r
WHERE ${isRunOf('r', '$1', '$2')} AND error_detail IS NOT NULL
ORDER BY created_at DESC, id DESC LIMIT 1`,
};

/** The last error in an agent's code that a task has had, in any of its turns. */
export async function lastError(
  database: Database,
  tenantId: string,
  taskId: string,
): Promise<RunErrorRecord | undefined> {
  if (!isUuid(taskId)) return undefined;
  const [row] = await database.tenantQuery<ErrorRow>(tenantId, LAST_ERROR, [tenantId, taskId]);
  return row && { runId: row.run_id, ...row.error_detail };
}
