import type { ClaimedRun, Database } from '@baton/database';

export interface ConfigRow {
  state: string;
  mode: string;
  delivered: number;
  head: number;
  failures: number;
  status: number | null;
  error: string | null;
  isDue: boolean;
  isLeased: boolean;
}

/** A config of a task that gets all events after `after`. */
export async function addConfig(
  database: Database,
  { tenantId, taskId }: Pick<ClaimedRun, 'tenantId' | 'taskId'>,
  config: { id?: string; url: string; protocol?: string; mode?: string; after?: number; states?: number[] },
): Promise<void> {
  const { id = 'a', url, protocol = '1.0', mode = 'each', after = 0, states } = config;
  await database.tenantQuery(
    tenantId,
    {
      text: `WITH task AS (UPDATE tasks SET push_configs = push_configs + 1 WHERE tenant_id = $1 AND id = $2
        RETURNING last_sequence)
      INSERT INTO push_configs (tenant_id, task_id, id, url, host, protocol, mode, states, delivered_sequence, head_sequence, due_at)
      SELECT $1, $2, $3, $4, $9, $5, $6, $7, $8::int, last_sequence, CASE WHEN last_sequence > $8 THEN now() END FROM task`,
    },
    [tenantId, taskId, id, url, protocol, mode, states, after, new URL(url).host],
  );
}

/** What is kept of a config. */
export async function configOf(
  database: Database,
  { tenantId, taskId }: Pick<ClaimedRun, 'tenantId' | 'taskId'>,
  id = 'a',
): Promise<ConfigRow | undefined> {
  const [row] = await database.tenantQuery<ConfigRow>(
    tenantId,
    {
      text: `SELECT state, mode, delivered_sequence AS delivered, head_sequence AS head, failures, last_status AS status,
        last_error AS error, due_at IS NOT NULL AS "isDue", lease_until IS NOT NULL AS "isLeased"
      FROM push_configs WHERE tenant_id = $1 AND task_id = $2 AND id = $3`,
    },
    [tenantId, taskId, id],
  );
  return row;
}
