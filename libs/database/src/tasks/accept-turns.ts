import type { QueryResultRow } from 'pg';
import type { NewAuditRecord } from '../audit/audit-records.js';
import type { Database, Statement, Transaction, Values } from '../connection/database.js';
import { LOCK_TENANTS } from '../dispatch/dispatch.store.js';
import { putConfig, type TurnPush } from '../push/push-config.store.js';
import { BEGIN_USAGE, countSliceIn } from '../tenants/count-usage.js';
import { type TakenRoomRow, TAKE_ROOM } from '../tenants/take-room.js';
import { addChild } from './add-child.js';
import { type ApprovalRight, lockApprover } from './approver.js';
import type { NewChild, RunQuota } from './task-records.js';
import { StorageFullError } from './storage-full-error.js';

/** The quota of a turn without one. */
export const NO_QUOTA: RunQuota = { maxInFlight: null, maxWaiting: null, exact: false };

/** The tenant's usage has not been counted yet. */
class UncountedError extends Error {}

/** What comes with one turn, in its transaction. */
interface Extras extends ApprovalRight {
  taskId: string;
  /** The sequence of the event with which the turn begins. */
  sequence: number;
  /** Set if the turn begins a child. */
  child?: NewChild | undefined;
  /** For the audit log. */
  record?: NewAuditRecord | undefined;
  /** The receiver of the events of the turn. */
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
  values: Values;
  quota?: RunQuota | undefined;
  /** The turns that the statement has written. */
  written: (rows: readonly Row[]) => WrittenTurn[];
  /** Only of a statement that writes one turn. */
  extras?: Omit<Extras, 'taskId' | 'sequence'>;
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
    const answers = await database.tenantQueries(tenantId, calls, 'generic');
    return (answers.at(-1) ?? []) as Row[];
  }
  try {
    return await acceptInSteps(database, acceptance, calls, maxStoredBytes);
  } catch (error) {
    if (!(error instanceof UncountedError)) throw error;
    // One transaction: limits are not enforced until the count is complete, so no other transaction may read a partial count. A slice
    // is enough for most tenants. For others a worker continues.
    await database.inTenant(tenantId, async (transaction) => {
      await transaction.query(BEGIN_USAGE, [tenantId]);
      await countSliceIn(transaction, tenantId);
    });
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
  if (child) await addChild(transaction, { ...child, tenantId, taskId });
  await lockApprover(transaction, tenantId, extras);
  if (push) await putConfig(transaction, { ...push, tenantId, taskId, after: head - 1, head });
}

async function takeRoom(
  transaction: Transaction,
  tenantId: string,
  turns: readonly WrittenTurn[],
  maxStoredBytes: number,
): Promise<void> {
  const bytes = turns.map((turn) => turn.bytes);
  const tasks = turns.map(({ taskId }) => taskId);
  const [room] = await transaction.query<TakenRoomRow>(TAKE_ROOM, [tenantId, bytes, maxStoredBytes, tasks]);
  if (room?.taken) return;
  throw room?.counted ? new StorageFullError() : new UncountedError();
}
