import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import type { RunKey } from '../dispatch/run-key.js';
import type { RunError } from './run-error.js';

/** The error of an attempt, as it is stored. */
export const ERROR_OF_ATTEMPT = {
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
  { attempt: one(ERROR_OF_ATTEMPT) },
  ({ attempt }) => `
UPDATE runs SET error_detail = ${attempt.error}
WHERE tenant_id = ${keyOfTenant(attempt.tenant_id)} AND id = ${attempt.run_id} AND attempt = ${attempt.number}`,
);

/** Stores an error in the agent's code. */
export async function noteError(database: Database, run: RunKey, error: RunError): Promise<void> {
  const values = NOTE_ERROR.values({ attempt: { ...run, error } });
  await database.tenantQuery(run.tenantId, NOTE_ERROR, values);
}
