import type { Statement, Transaction } from '../connection/database.js';
import { ApproverError } from './approver-error.js';

/** Who approves with a turn. */
export interface ApprovalRight {
  /** Id of the token that approves. */
  approvingToken?: string | undefined;
  /** Set if it approves for a user: the id of the entry of its issuer. */
  approvingIssuer?: string | undefined;
}

/**
 * Locks a token that may approve. A transaction that takes the right away came before, or waits until the approval is
 * committed. $1 tenant $2 token
 */
const LOCK_APPROVER: Statement = {
  name: 'task-lock-approver',
  text: `
SELECT id FROM api_tokens
WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
  AND scopes && ARRAY['tasks:approve', 'admin']
FOR SHARE`,
};

/** Locks the issuer that vouches for a user: $1 tenant $2 entry */
const LOCK_ISSUER: Statement = {
  name: 'task-lock-issuer',
  text: 'SELECT id FROM issuers WHERE tenant_id = $1 AND id = $2 FOR SHARE',
};

/** Locks the right to approve, if the turn approves. @throws ApproverError if the right is gone */
export async function lockApprover(
  transaction: Transaction,
  tenantId: string,
  { approvingToken, approvingIssuer }: ApprovalRight,
): Promise<void> {
  const by = approvingToken ?? approvingIssuer;
  if (by === undefined) return;
  const lock = approvingToken === undefined ? LOCK_ISSUER : LOCK_APPROVER;
  const found = await transaction.query(lock, [tenantId, by]);
  if (found.length === 0) throw new ApproverError();
}
