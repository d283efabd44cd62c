import type { RunRetry } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { NewAuditRecord } from '../audit/audit-records.js';
import type { Database, Statement, Transaction, Values } from '../connection/database.js';
import { LOCK_TENANTS } from '../dispatch/dispatch.store.js';
import { BEGIN_USAGE, countSlice, type RoomRow, TAKE_ROOM } from '../tenants/usage.store.js';
import { putConfig, type TurnPush } from '../push/push-config.store.js';
import type { NewChild, RunQuota } from './records.js';

const NO_QUOTA: RunQuota = { maxInFlight: null, maxWaiting: null, exact: false };
const THREE_TIMES: RunRetry = { maxAttempts: 3, backoff: { initialMs: 0, factor: 1, maxMs: 0 } };

/** As many of the tenant's runs wait as may; the new one was refused. */
export class TooManyWaitingError extends Error {
  override readonly name = 'TooManyWaitingError';
}

/** The tenant has no room left for what the new turn stores; it was refused. */
export class StorageFullError extends Error {
  override readonly name = 'StorageFullError';
}

/** The token that approves was revoked or has lost the right, or the issuer of the user is no longer trusted. */
export class ApproverError extends Error {
  override readonly name = 'ApproverError';
}

/** The run that asks for a child no longer owns its task, or the task has ended. */
export class ParentOverError extends Error {
  override readonly name = 'ParentOverError';
}

/** As many tasks were made below the first one as may be. */
export class TooManyChildrenError extends Error {
  override readonly name = 'TooManyChildrenError';
}

/** Nobody has begun to sum up what the tenant has stored. */
class UncountedError extends Error {}

/** A statement that writes a turn: its run, and what comes with it. */
interface Acceptance<Row> {
  tenantId: string;
  taskId: string;
  statement: Statement;
  values: Values;
  quota?: RunQuota | undefined;
  retry?: RunRetry | undefined;
  /** What the turn stores, as JSON. */
  stored: readonly string[];
  /** Whether the statement has written a turn. */
  isWritten: (row: Row) => boolean;
  /** Set if the turn begins a child. */
  child?: (NewChild & { taskId: string }) | undefined;
  /** For the audit log. */
  record?: NewAuditRecord | undefined;
  /** Set if the turn approves: the id of the token. */
  approvingToken?: string | undefined;
  /** Set if it approves for a user: the id of the entry of its issuer. */
  approvingIssuer?: string | undefined;
  /** Who is told of the turn. */
  push?: TurnPush | undefined;
  /** The sequence of the event with which the turn begins. */
  firstSequence: (row: Row) => number;
}

/**
 * One transaction that writes a turn. Where a limit must hold exactly, the tenant's new turns come one by one.
 * @throws StorageFullError if there is no room for it; nothing was written then
 */
export async function acceptTurn<Row extends QueryResultRow>(
  database: Database,
  acceptance: Acceptance<Row>,
): Promise<Row | undefined> {
  const { tenantId, statement, values, quota = NO_QUOTA, retry = THREE_TIMES } = acceptance;
  const { initialMs, factor, maxMs } = retry.backoff;
  const policy = [retry.maxAttempts, initialMs, factor, maxMs];
  const write: [Statement, Values] = [statement, [...values, quota.maxInFlight, quota.maxWaiting, policy]];
  const lock: [Statement, Values] = [LOCK_TENANTS, [[tenantId]]];
  const calls = quota.exact ? [lock, write] : [write];
  const { maxStoredBytes = null } = quota;
  const approves = acceptance.approvingToken ?? acceptance.approvingIssuer;
  const { child, record, push } = acceptance;
  if (maxStoredBytes === null && !child && !record && !approves && !push) {
    const answers = await database.tenantQueries(tenantId, calls);
    return answers.at(-1)?.[0] as Row | undefined;
  }
  try {
    return await acceptInSteps(database, acceptance, calls, maxStoredBytes);
  } catch (error) {
    if (!(error instanceof UncountedError)) throw error;
    await database.tenantQuery(tenantId, BEGIN_USAGE, [tenantId]);
    // Enough for most tenants. For others a worker goes on, and until it has ended nothing is refused.
    await countSlice(database, tenantId);
    return acceptInSteps(database, acceptance, calls, maxStoredBytes);
  }
}

async function acceptInSteps<Row extends QueryResultRow>(
  database: Database,
  acceptance: Acceptance<Row>,
  calls: readonly [Statement, Values][],
  maxStoredBytes: number | null,
): Promise<Row | undefined> {
  const { tenantId, taskId, stored, isWritten, child, record, push } = acceptance;
  return database.inTenant(tenantId, async (transaction) => {
    const answers = await Promise.all(
      calls.map(([statement, values]) => transaction.query<QueryResultRow>(statement, values)),
    );
    const row = answers.at(-1)?.[0] as Row | undefined;
    if (!row || !isWritten(row)) return row;
    if (child) await addChild(transaction, tenantId, child);
    await assertMayApprove(transaction, acceptance);
    if (push) {
      const head = acceptance.firstSequence(row);
      await putConfig(transaction, { ...push, tenantId, taskId, after: head - 1, head });
    }
    if (maxStoredBytes !== null) await takeRoom(transaction, tenantId, taskId, stored, maxStoredBytes);
    if (record) await transaction.record(record);
    return row;
  });
}

/**
 * Locks a token that may approve: whoever takes the right away has done so before, or waits until the approval is
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

/** The same of the issuer that vouches for a user: $1 tenant $2 entry */
const LOCK_ISSUER: Statement = {
  name: 'task-lock-issuer',
  text: 'SELECT id FROM issuers WHERE tenant_id = $1 AND id = $2 FOR SHARE',
};

/** @throws ApproverError */
async function assertMayApprove(
  transaction: Transaction,
  {
    tenantId,
    approvingToken,
    approvingIssuer,
  }: Pick<Acceptance<never>, 'tenantId' | 'approvingToken' | 'approvingIssuer'>,
): Promise<void> {
  const by = approvingToken ?? approvingIssuer;
  if (by === undefined) return;
  const lock = approvingToken === undefined ? LOCK_ISSUER : LOCK_APPROVER;
  const found = await transaction.query(lock, [tenantId, by]);
  if (found.length === 0) throw new ApproverError();
}

interface AddedChildRow {
  /** How many tasks there are below the first one, this one included. */
  tasks: number;
}

/**
 * Makes a task that this transaction has written a child, if the run still owns the parent: $1 tenant $2 child
 * $3 parent $4 run $5 attempt $6 the first task of all. Whoever ends the parent waits here, or has been before. Who
 * holds the first task waits for no other, so locking it second makes no circle.
 */
const ADD_CHILD: Statement = {
  name: 'task-add-child',
  text: `
WITH parent AS (
  SELECT id, owner FROM tasks WHERE tenant_id = $1 AND id = $3 AND active_run_id = $4 AND attempt = $5 FOR UPDATE
), counted AS (
  UPDATE tasks t SET child_tasks = t.child_tasks + 1
  FROM parent WHERE t.tenant_id = $1 AND t.id IN ($3, $6)
  RETURNING t.id, t.child_tasks
), child AS (
  UPDATE tasks t SET parent_task_id = $3, owner = parent.owner FROM parent WHERE t.tenant_id = $1 AND t.id = $2
)
SELECT max(child_tasks) AS tasks FROM counted HAVING count(*) > 0`,
};

/** Locks the parent: either its end finds the new child, or the child finds that it has ended. */
async function addChild(
  transaction: Transaction,
  tenantId: string,
  { parent, rootTaskId, maxTasks, taskId }: NewChild & { taskId: string },
): Promise<void> {
  const values = [tenantId, taskId, parent.taskId, parent.runId, parent.attempt, rootTaskId];
  const [added] = await transaction.query<AddedChildRow>(ADD_CHILD, values);
  if (!added) throw new ParentOverError();
  if (added.tasks > maxTasks) throw new TooManyChildrenError();
}

async function takeRoom(
  transaction: Transaction,
  tenantId: string,
  taskId: string,
  stored: readonly string[],
  maxStoredBytes: number,
): Promise<void> {
  const bytes = stored.reduce((sum, json) => sum + Buffer.byteLength(json), 0);
  const [room] = await transaction.query<RoomRow>(TAKE_ROOM, [tenantId, bytes, maxStoredBytes, taskId]);
  if (room?.taken) return;
  throw room?.counted ? new StorageFullError() : new UncountedError();
}
