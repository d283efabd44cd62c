import type { QueryResultRow } from 'pg';
import type { Database, Statement } from '../connection/database.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';
import { versionAtBeginning } from './agent-version.js';

/** Open tasks of an agent that are counted: the newest. */
export const MAX_OPEN = 10_000;

/** The open tasks of an agent that have begun with the same version or code of it. */
export interface OpenVersion {
  /** Version of an agent of a catalog. */
  version: number | null;
  /** Hash of the code of an installed agent. */
  code: string | null;
  tasks: number;
  oldestAt: Date;
  /** Whether a live worker has that code. Always false for an agent of a catalog. */
  isInstalled: boolean;
}

/** $1 tenant $2 agent */
const OPEN_BY_VERSION: Statement = {
  text: `
SELECT v.version, v.code, count(*)::int AS tasks, min(t.created_at) AS "oldestAt"
FROM (
  SELECT tenant_id, id, created_at FROM tasks
  WHERE tenant_id = $1 AND agent_id = $2 AND state NOT IN (${TERMINAL_STATES})
  ORDER BY status_at DESC LIMIT ${MAX_OPEN}
) t LEFT JOIN LATERAL (${versionAtBeginning('t.tenant_id', 't.id')}) v ON true
GROUP BY v.version, v.code ORDER BY min(t.created_at)`,
};

/** Hashes of the code of an agent: $1 slug of the agent $2 how old the last heartbeat of a live worker may be, in ms */
const INSTALLED_CODES: Statement = {
  text: `
SELECT DISTINCT agent_codes->>$1::text AS code FROM workers
WHERE agent_codes->>$1::text IS NOT NULL AND seen_at > clock_timestamp() - $2::int * interval '1 millisecond'`,
};

/**
 * The open tasks of an agent by what they have begun with, those with the oldest task first.
 * @param liveMs how old the last heartbeat of a live worker may be, in ms
 */
export async function openByVersion(
  database: Database,
  tenantId: string,
  agent: { id: string; slug: string },
  liveMs: number,
): Promise<OpenVersion[]> {
  type Row = Omit<OpenVersion, 'isInstalled'> & QueryResultRow;
  const rows = await database.tenantQuery<Row>(tenantId, OPEN_BY_VERSION, [tenantId, agent.id]);
  const found = await database.systemQuery<{ code: string }>(INSTALLED_CODES, [agent.slug, liveMs]);
  const installed = new Set(found.map(({ code }) => code));
  return rows.map((row) => ({ ...row, isInstalled: row.code !== null && installed.has(row.code) }));
}
