import type { QueryResultRow } from 'pg';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, list, statement } from '../sql/statement.js';
import { isRunOf } from '../dispatch/run-conditions.js';
import type { RunKey } from '../dispatch/run-key.js';
import type { BatchOperation, RunBatches } from './run-batches.js';

/** Which version of its agent an attempt runs. */
interface NewVersion extends RunKey {
  version: number;
}

const ITEM = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
  version: ['int', ({ version }) => version],
} satisfies Inputs<NewVersion>;

export const NOTE_AGENT_VERSIONS = statement(
  'runs-note-agent-versions',
  { items: list(ITEM) },
  ({ items }) => `
UPDATE runs r SET agent_version = k.version
FROM ${items.rows('k')}
WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND r.attempt = k.attempt`,
);

/** Versions in a batch. An attempt that is over keeps its own: it is not refused, and nothing is written. */
export const VERSIONS: BatchOperation<NewVersion, void> = {
  identify: ({ runId }) => `version of ${runId}`,
  prepare: (items) => ({
    statement: NOTE_AGENT_VERSIONS,
    values: NOTE_AGENT_VERSIONS.values({ items }),
    results: () => [],
  }),
};

/** Notes which version of its agent this attempt runs. */
export async function noteAgentVersion(
  on: { batches: RunBatches },
  { tenantId, taskId, runId, attempt }: RunKey,
  version: number,
): Promise<void> {
  await on.batches.submit(VERSIONS, { tenantId, runId, attempt, taskId, version });
}

/** $1 tenant $2 tasks */
const AGENT_VERSIONS: Statement = {
  name: 'runs-agent-versions',
  text: `
SELECT t.id, (
  SELECT r.agent_version FROM runs r WHERE ${isRunOf('r', '$1', 't.id')} ORDER BY r.created_at DESC, r.id DESC LIMIT 1
) AS version
FROM unnest($2::uuid[]) AS t(id)`,
};

/** The version of its agent that the last attempt of each task has run. A task is left out if none has begun, or its agent has no versions. */
export async function agentVersions(
  database: Database,
  tenantId: string,
  taskIds: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  type Row = { id: string; version: number | null } & QueryResultRow;
  const rows = await database.tenantQuery<Row>(tenantId, AGENT_VERSIONS, [tenantId, taskIds]);
  return new Map(rows.flatMap(({ id, version }) => (version === null ? [] : [[id, version] as const])));
}
