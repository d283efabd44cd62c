import { storedLimits, type TenantLimits } from '@baton/config';
import type { QueryResultRow } from 'pg';
import type { Statement, Transaction } from '../connection/database.js';
import { BEGIN_USAGE, COUNT_CATALOG, countSliceIn } from './count-usage.js';
import { LimitReachedError } from './limit-reached-error.js';

/** The number of a tenant's rows of each limited kind: $1 tenant */
const COUNTS = {
  agents: 'SELECT count(*)::int AS count FROM agents WHERE tenant_id = $1 AND deleted_at IS NULL',
  secrets: 'SELECT count(*)::int AS count FROM secrets WHERE tenant_id = $1',
  schedules: 'SELECT count(*)::int AS count FROM schedules WHERE tenant_id = $1',
  webhooks: 'SELECT count(*)::int AS count FROM webhooks WHERE tenant_id = $1',
  tokens: 'SELECT count(*)::int AS count FROM api_tokens WHERE tenant_id = $1 AND revoked_at IS NULL',
} as const;

/** What a transaction has written. */
export interface Kept {
  /** The kind of the new row, if it is counted. These transactions of a tenant run one after the other, so that the number is exact. */
  added?: keyof typeof COUNTS;
  /** How many bytes more there are; below 0 = fewer. */
  bytes?: number;
  /** The bytes count, and are not refused. */
  isUnlimited?: boolean;
}

interface RoomRow {
  limits: unknown;
  /** Null: they are not counted yet. */
  bytes: number | null;
  /** Null: nothing is counted for the tenant. */
  is_counted: boolean | null;
}

/** Adds to what the tenant keeps besides its tasks, where that is counted. Locks the usage: $1 tenant $2 bytes */
const ADD_BYTES: Statement = {
  text: `
WITH used AS (
  UPDATE tenant_usage SET catalog_bytes = catalog_bytes + $2::bigint WHERE tenant_id = $1 AND $2::bigint <> 0
  RETURNING (stored_bytes + catalog_bytes)::float8 AS bytes, is_counted
)
SELECT t.limits, used.bytes, used.is_counted FROM tenants t LEFT JOIN used ON true WHERE t.id = $1`,
};

/** $1 tenant */
const READ_BYTES: Statement = {
  text: `
SELECT (stored_bytes + catalog_bytes)::float8 AS bytes, is_counted FROM tenant_usage WHERE tenant_id = $1`,
};

/**
 * Counts the bytes that the transaction has written as used, and those that it has deleted as free. The usage of a
 * tenant is the last row that a transaction locks: call it last.
 * @param defaults the limits of tenants without their own
 * @throws LimitReachedError if there is no room; the transaction must roll back then
 */
export async function keepInRoom(
  transaction: Pick<Transaction, 'query'>,
  tenantId: string,
  defaults: Readonly<TenantLimits>,
  { added, bytes = 0, isUnlimited = false }: Kept,
): Promise<void> {
  if (added === undefined && bytes === 0) return;
  const [used] = await transaction.query<RoomRow & QueryResultRow>(ADD_BYTES, [tenantId, bytes]);
  const limits = { ...defaults, ...storedLimits(used?.limits) };
  const most = added && limits[added];
  if (added && most !== null && most !== undefined) {
    const [row] = await transaction.query<{ count: number }>({ text: COUNTS[added] }, [tenantId]);
    if ((row?.count ?? 0) > most) throw new LimitReachedError(added, most);
  }
  const { storedBytes } = limits;
  if (!used || bytes <= 0 || isUnlimited || storedBytes === null) return;
  const total = await countedBytes(transaction, tenantId, bytes, used);
  if (total !== null && total > storedBytes) throw new LimitReachedError('storedBytes', storedBytes);
}

/** All bytes of the tenant, including the new ones. Null: its tasks are being counted, which takes a while. */
async function countedBytes(
  transaction: Pick<Transaction, 'query'>,
  tenantId: string,
  bytes: number,
  { is_counted: isCounted, bytes: total }: RoomRow,
): Promise<number | null> {
  if (isCounted && total !== null) return total;
  if (isCounted === null) {
    await transaction.query(BEGIN_USAGE, [tenantId]);
    // Another transaction may have begun, and counted without what this one has written.
    await transaction.query(ADD_BYTES, [tenantId, bytes]);
  }
  const [begun] = await transaction.query<RoomRow & QueryResultRow>(READ_BYTES, [tenantId]);
  if (!begun?.is_counted) await countSliceIn(transaction, tenantId);
  else if (begun.bytes === null) await transaction.query(COUNT_CATALOG, [tenantId]);
  const [read] = await transaction.query<RoomRow & QueryResultRow>(READ_BYTES, [tenantId]);
  return read?.is_counted ? read.bytes : null;
}
