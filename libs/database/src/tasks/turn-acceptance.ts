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

/** What comes with one turn, in its transaction. */
interface Extras {
  taskId: string;
  /** The sequence of the event with which the turn begins. */
  sequence: number;
  /** Set if the turn begins a child. */
  child?: NewChild | undefined;
  /** For the audit log. */
  record?: NewAuditRecord | undefined;
  /** Set if the turn approves: the id of the token. */
  approvingToken?: string | undefined;
  /** Set if it approves for a user: the id of the entry of its issuer. */
  approvingIssuer?: string | undefined;
  /** Who is told of the turn. */
  push?: TurnPush | undefined;
}

/** A turn that a statement has written. */
interface WrittenTurn {
  taskId: string;
  /** The sequence of the event with which it begins. */
  sequence: number;
  /** Bytes of what it stores as JSON. */
  bytes: number;
}

/** A statement that writes turns, and what comes with them. */
interface Acceptance<Row> {
  tenantId: string;
  statement: Statement;
  /** The last ones are those of `quotaValues`, or of `CREATE`. */
  values: Values;
  quota?: RunQuota | undefined;
  /** The turns that the statement has written. */
  written: (rows: readonly Row[]) => WrittenTurn[];
  /** Only of a statement that writes one turn. */
  extras?: Omit<Extras, 'taskId' | 'sequence'>;
}

/** The values of `quotaCte` and of the retry policy. */
export function quotaValues(quota: RunQuota = NO_QUOTA, retry: RunRetry = THREE_TIMES): Values {
  return [quota.maxInFlight, quota.maxWaiting, policyOf(retry)];
}

/** The value of `retryValues`. */
export function policyOf({ maxAttempts, backoff }: RunRetry = THREE_TIMES): number[] {
  return [maxAttempts, backoff.initialMs, backoff.factor, backoff.maxMs];
}

/**
 * One transaction that writes turns of a tenant. Where a limit must hold exactly, such transactions of the tenant come one by
 * one.
 * @returns the rows of the statement
 * @throws StorageFullError if there is no room for all of them; nothing was written then
 */
export async function acceptTurns<Row extends QueryResultRow>(
  database: Database,
  acceptance: Acceptance<Row>,
): Promise<Row[]> {
  const { tenantId, statement, values, quota = NO_QUOTA, extras } = acceptance;
  const write: [Statement, Values] = [statement, values];
  const lock: [Statement, Values] = [LOCK_TENANTS, [[tenantId]]];
  const calls = quota.exact ? [lock, write] : [write];
  const { maxStoredBytes = null } = quota;
  if (maxStoredBytes === null && !hasExtras(extras)) {
    const answers = await database.tenantQueries(tenantId, calls);
    return (answers.at(-1) ?? []) as Row[];
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

/** Whether a turn must be written in a transaction of its own. */
export const hasExtras = (extras: Acceptance<never>['extras'] = {}): boolean =>
  Object.values<unknown>(extras).some((extra) => extra !== undefined);

async function acceptInSteps<Row extends QueryResultRow>(
  database: Database,
  { tenantId, written, extras }: Acceptance<Row>,
  calls: readonly [Statement, Values][],
  maxStoredBytes: number | null,
): Promise<Row[]> {
  return database.inTenant(tenantId, async (transaction) => {
    const answers = await Promise.all(
      calls.map(([statement, values]) => transaction.query<QueryResultRow>(statement, values)),
    );
    const rows = (answers.at(-1) ?? []) as Row[];
    const turns = written(rows);
    const [first] = turns;
    if (!first) return rows;
    if (extras) await addExtras(transaction, tenantId, { ...extras, ...first });
    if (maxStoredBytes !== null) await takeRoom(transaction, tenantId, turns, maxStoredBytes);
    if (extras?.record) await transaction.record(extras.record);
    return rows;
  });
}

async function addExtras(transaction: Transaction, tenantId: string, extras: Extras): Promise<void> {
  const { taskId, sequence: head, child, push } = extras;
  if (child) await addChild(transaction, tenantId, { ...child, taskId });
  await assertMayApprove(transaction, tenantId, extras);
  if (push) await putConfig(transaction, { ...push, tenantId, taskId, after: head - 1, head });
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
  tenantId: string,
  { approvingToken, approvingIssuer }: Extras,
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
  turns: readonly WrittenTurn[],
  maxStoredBytes: number,
): Promise<void> {
  const bytes = turns.map((turn) => turn.bytes);
  const tasks = turns.map(({ taskId }) => taskId);
  const [room] = await transaction.query<RoomRow>(TAKE_ROOM, [tenantId, bytes, maxStoredBytes, tasks]);
  if (room?.taken) return;
  throw room?.counted ? new StorageFullError() : new UncountedError();
}
