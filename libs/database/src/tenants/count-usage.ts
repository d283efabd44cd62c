import { Database, type Statement, type Transaction } from '../connection/database.js';

/** A row for a tenant that was not counted yet: $1 tenant */
export const BEGIN_USAGE: Statement = {
  name: 'usage-begin-2',
  text: `
INSERT INTO tenant_usage (tenant_id, stored_bytes, is_counted) VALUES ($1, 0, false)
ON CONFLICT (tenant_id) DO NOTHING`,
};

interface CountRow {
  counting_after: string | null;
  due: boolean;
}

/**
 * Locks the usage, so that nothing is added while a slice is summed up: $1 tenant $2 age in seconds after which a
 * count is due again
 */
const LOCK_USAGE: Statement = {
  name: 'usage-lock-2',
  text: `
SELECT counting_after, NOT is_counted OR counting_after IS NOT NULL OR catalog_bytes IS NULL
  OR counted_at < now() - $2::int * interval '1 second' AS due
FROM tenant_usage WHERE tenant_id = $1 FOR UPDATE`,
};

/** Sums up the next tasks: $1 tenant $2 the last one of the slice before, NULL = from the start $3 tasks of a slice */
const COUNT_SLICE: Statement = {
  name: 'usage-count-slice',
  text: `
WITH slice AS (
  SELECT id, stored_bytes FROM tasks
  WHERE tenant_id = $1 AND id > coalesce($2::uuid, '00000000-0000-0000-0000-000000000000')
  ORDER BY id LIMIT $3
), summed AS (
  SELECT coalesce(sum(stored_bytes), 0) AS bytes, count(*) AS tasks,
    (SELECT id FROM slice ORDER BY id DESC LIMIT 1) AS last
  FROM slice
), counted AS (
  SELECT tasks < $3 AS is_last, last, tasks + CASE WHEN $2::uuid IS NULL THEN 0 ELSE counting_tasks END AS tasks,
    bytes + CASE WHEN $2::uuid IS NULL THEN 0 ELSE counting_bytes END AS bytes
  FROM summed, tenant_usage WHERE tenant_id = $1
)
UPDATE tenant_usage u SET
  stored_bytes = CASE WHEN c.is_last THEN c.bytes ELSE u.stored_bytes END,
  counted_at = CASE WHEN c.is_last THEN now() ELSE u.counted_at END,
  is_counted = u.is_counted OR c.is_last,
  counting_after = CASE WHEN c.is_last THEN NULL ELSE c.last END,
  counting_bytes = CASE WHEN c.is_last THEN 0 ELSE c.bytes END,
  counting_tasks = CASE WHEN c.is_last THEN 0 ELSE c.tasks END
FROM counted c WHERE u.tenant_id = $1
RETURNING c.is_last, c.tasks`,
};

/** What a version of an agent takes. Only a row of an earlier release lacks it. */
export const VERSION_BYTES = 'coalesce(bytes, octet_length(definition::text))';
export const SECRET_BYTES = 'octet_length(ciphertext) + coalesce(octet_length(origins::text), 0)';
export const SCHEDULE_BYTES = 'octet_length(message::text)';
/** What a value of a context takes, known without reading it. */
const STATE_BYTES = 'pg_column_size(value) + length(key)';

/**
 * Sums up what the tenant keeps besides its tasks. The usage is locked: open transactions with writes wait for it, and
 * then add to the sum. An index has the bytes of versions. $1 tenant
 */
export const COUNT_CATALOG: Statement = {
  name: 'usage-count-catalog-2',
  text: `
UPDATE tenant_usage SET catalog_bytes = coalesce((
  SELECT sum(bytes) FROM agent_versions WHERE tenant_id = $1 AND bytes >= 0
), 0) + coalesce((
  SELECT sum(${VERSION_BYTES}) FROM agent_versions WHERE tenant_id = $1 AND bytes IS NULL
), 0) + coalesce((
  SELECT sum(${SECRET_BYTES}) FROM secrets WHERE tenant_id = $1
), 0) + coalesce((
  SELECT sum(${SCHEDULE_BYTES}) FROM schedules WHERE tenant_id = $1
), 0) + coalesce((
  SELECT sum(${STATE_BYTES}) FROM context_state WHERE tenant_id = $1
), 0)
WHERE tenant_id = $1`,
};

/** Tasks that are summed up at a time. Meanwhile the turns of their tenant wait: some milliseconds. */
export const SLICE_TASKS = 2_000;
/** Longer than any count takes: a count that has ended is not started again. */
const NEVER = 1_000_000_000;

/** As `UsageStore.count`, for a tenant that has a row of usage. */
export async function countSlice(
  database: Database,
  tenantId: string,
  seconds = NEVER,
  sliceTasks = SLICE_TASKS,
): Promise<boolean> {
  return database.inTenant(tenantId, (transaction) =>
    countSliceIn(transaction, tenantId, seconds, sliceTasks),
  );
}

/** Counts a slice in a transaction, which holds the lock of the usage until it ends. With the last slice comes the catalog. */
export async function countSliceIn(
  transaction: Pick<Transaction, 'query'>,
  tenantId: string,
  seconds = NEVER,
  sliceTasks = SLICE_TASKS,
): Promise<boolean> {
  const [usage] = await transaction.query<CountRow>(LOCK_USAGE, [tenantId, seconds]);
  if (!usage?.due) return true;
  const values = [tenantId, usage.counting_after, sliceTasks];
  const [counted] = await transaction.query<{ is_last: boolean }>(COUNT_SLICE, values);
  const isLast = counted?.is_last ?? true;
  if (isLast) await transaction.query(COUNT_CATALOG, [tenantId]);
  return isLast;
}
