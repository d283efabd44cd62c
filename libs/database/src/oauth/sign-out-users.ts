import type { Statement, Transaction } from '../connection/database.js';
import { CONNECTION_COLUMNS, connectionOf, type ConnectionRow } from './oauth-connection.store.js';
import type { SealedConnection } from './oauth-connection-records.js';

/** The users of an issuer who are users of no other one of the tenant. $1 tenant $2 entry of the issuer. `caller`: of the row */
const ONLY_OF_ISSUER = (caller: string): string => `
EXISTS (SELECT FROM issuer_users u WHERE u.tenant_id = $1::uuid AND u.issuer_id = $2::uuid AND u.caller = ${caller})
AND NOT EXISTS (
  SELECT FROM issuers i JOIN issuer_users u ON u.tenant_id = i.tenant_id AND u.issuer_id = i.id AND u.caller = ${caller}
  WHERE i.tenant_id = $1::uuid AND i.id <> $2::uuid
)`;

/** Links are no longer valid. $1 tenant $2 entry of the issuer */
const DELETE_SIGN_INS: Statement = {
  text: `DELETE FROM oauth_sign_ins s WHERE s.tenant_id = $1::uuid AND ${ONLY_OF_ISSUER('s.caller')}`,
};

/** $1 tenant $2 entry of the issuer */
const DELETE_CONNECTIONS: Statement = {
  text: `DELETE FROM oauth_connections c WHERE c.tenant_id = $1::uuid AND ${ONLY_OF_ISSUER('c.caller')} RETURNING ${CONNECTION_COLUMNS}`,
};

/** Call it before the issuer is deleted. @returns what its users were signed in to */
export async function signOutUsers(
  transaction: Pick<Transaction, 'query'>,
  tenantId: string,
  issuerId: string,
): Promise<SealedConnection[]> {
  await transaction.query(DELETE_SIGN_INS, [tenantId, issuerId]);
  const rows = await transaction.query<ConnectionRow>(DELETE_CONNECTIONS, [tenantId, issuerId]);
  return rows.map((row) => connectionOf(tenantId, row));
}
