import type { Statement, Transaction } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';

interface MetadataRow {
  metadata: object | null;
}

/** $1 tenant $2 task */
const READ_METADATA: Statement = {
  name: 'run-read-metadata',
  text: `SELECT metadata FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 FOR UPDATE`,
};

/** Locks a task, and reads its metadata to merge others into them. Undefined: there are none, or no such task. */
export async function readMetadata(
  transaction: Transaction,
  { tenantId, taskId }: { tenantId: string; taskId: string },
): Promise<object | undefined> {
  const [row] = await transaction.query<MetadataRow>(READ_METADATA, [tenantId, taskId]);
  return row?.metadata ?? undefined;
}
