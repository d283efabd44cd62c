import type { AgentLabel } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Database, Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, list, statement } from '../sql/statement.js';
import { isRunOf } from '../dispatch/run-conditions.js';
import type { RunKey } from '../dispatch/run-key.js';
import type { BatchOperation, RunBatches } from './run-batches.js';

/** What an attempt runs of its agent. Undefined: it has none of these. */
export interface RunVersion {
  /** Version of an agent of a catalog. */
  version?: number | undefined;
  /** Hash of the code of an installed agent. */
  code?: string | undefined;
  /** With which label the task began. */
  label?: AgentLabel | undefined;
}

type NewVersion = RunKey & RunVersion;

const ITEM = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
  version: ['int', ({ version }) => version],
  code: ['text', ({ code }) => code],
  label: ['text', ({ label }) => label],
} satisfies Inputs<NewVersion>;

export const NOTE_AGENT_VERSIONS = statement(
  'runs-note-agent-versions-4',
  { items: list(ITEM) },
  ({ items }) => `
UPDATE runs r SET agent_version = k.version, agent_code = k.code, agent_label = k.label
FROM ${items.rows('k')}
WHERE r.tenant_id = ${keyOfTenant('k.tenant_id')} AND r.id = k.run_id AND r.attempt = k.attempt
RETURNING r.id`,
);

interface NotedRun {
  id: string;
}

/** Versions in a batch. */
export const VERSIONS: BatchOperation<NewVersion, NotedRun> = {
  identify: ({ runId }) => `version of ${runId}`,
  prepare: (items) => ({
    statement: NOTE_AGENT_VERSIONS,
    values: NOTE_AGENT_VERSIONS.values({ items }),
    results: (rows) => {
      const noted = new Map((rows as NotedRun[]).map((row) => [row.id, row]));
      return items.map(({ runId }) => noted.get(runId));
    },
  }),
};

/**
 * Notes what this attempt runs of its agent.
 * @returns false if the run has another attempt: nothing was written
 */
export async function noteAgentVersion(
  on: { batches: RunBatches },
  { tenantId, taskId, runId, attempt }: RunKey,
  noted: RunVersion,
): Promise<boolean> {
  const item = { tenantId, runId, attempt, taskId, ...noted };
  return (await on.batches.submit(VERSIONS, item)) !== undefined;
}

/** SQL of the version and the code with which a task has begun. No row: none has begun, or its agent has neither. */
export const versionAtBeginning = (tenant: string, task: string): string => `
SELECT r.agent_version AS version, r.agent_code AS code, r.agent_label AS label FROM runs r
WHERE ${isRunOf('r', tenant, task)} AND (r.agent_version IS NOT NULL OR r.agent_code IS NOT NULL)
ORDER BY r.created_at, r.id LIMIT 1`;

/** $1 tenant $2 task */
const BEGUN_WITH: Statement = { name: 'runs-begun-with-2', text: versionAtBeginning('$1', '$2') };

/** What the first run of a task has run of its agent. Undefined: none has begun, or its agent has neither. */
export async function begunWith(
  database: Database,
  tenantId: string,
  taskId: string,
): Promise<RunVersion | undefined> {
  type Row = { version: number | null; code: string | null; label: AgentLabel | null } & QueryResultRow;
  const [row] = await database.tenantQuery<Row>(tenantId, BEGUN_WITH, [tenantId, taskId]);
  if (!row) return undefined;
  return { version: row.version ?? undefined, code: row.code ?? undefined, label: row.label ?? undefined };
}

/** SQL of the version of its agent that the last attempt of a task has run. Null: none has begun, or the agent has no versions. */
export const lastVersion = (tenant: string, task: string): string =>
  `(SELECT r.agent_version FROM runs r WHERE ${isRunOf('r', tenant, task)} ORDER BY r.created_at DESC, r.id DESC LIMIT 1)`;

/** $1 tenant $2 tasks */
const AGENT_VERSIONS: Statement = {
  name: 'runs-agent-versions',
  text: `SELECT t.id, ${lastVersion('$1', 't.id')} AS version FROM unnest($2::uuid[]) AS t(id)`,
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
