import { type OwnTasks, TaskState } from '@baton/a2a';
import type { Actor } from '../audit/audit-records.js';
import type { Database, Transaction, Values } from '../connection/database.js';
import type { CancelResult } from './records.js';
import { readMetadata } from './read-metadata.js';
import { ReadBudget } from './task-content.js';
import type { TaskReader } from './task-reader.js';
import { statusEvent, statusNow, type TaskRow } from './task-row.js';
import { CANCEL, type CanceledRow, GET, LOCK } from './task-sql.js';

interface Cancel {
  tenantId: string;
  /** Null = whichever agent the task belongs to. */
  agentId: string | null;
  taskId: string;
  metadata?: object | undefined;
  /** The task must be one of these; unset = whosever it is. */
  own?: OwnTasks | undefined;
  /** Who cancels; a record is written unless it is the owner. Unset = the platform cancels. */
  by?: Actor | undefined;
}

type Canceled = [changed: CanceledRow | undefined, row: TaskRow | undefined];

/** Make a task `canceled`, however large its log is: only the bounded part that comes with its row is read. */
export async function cancelTask(
  database: Database,
  reader: TaskReader,
  cancel: Cancel,
): Promise<CancelResult> {
  const { tenantId, taskId, agentId, metadata, own } = cancel;
  const { status, json, at } = statusNow(TaskState.TASK_STATE_CANCELED);
  const values = [tenantId, taskId, agentId, json, at, own?.owner, own?.unowned];
  const [changed, row] = metadata
    ? await cancelWithMetadata(database, cancel, values, metadata)
    : await cancelAsItIs(database, cancel, values);
  if (!changed || !row) return { ok: false, reason: 'not-found' };
  const { sequence, run_id: runId } = changed;
  if (sequence === null) return { ok: false, reason: 'terminal' };
  const snapshot = await reader.read(tenantId, row, { budget: new ReadBudget(Infinity), rowOnly: true });
  if (!snapshot) return { ok: false, reason: 'not-found' };
  await reader.keepArtifacts(tenantId, snapshot);
  return {
    ok: true,
    snapshot,
    event: { sequence, payload: statusEvent(taskId, snapshot.task.contextId, status) },
    runId,
    parentTaskId: changed.parent_task_id,
    hasChildren: changed.child_tasks > 0,
    hasPushConfigs: changed.push_configs > 0,
  };
}

async function cancelAsItIs(database: Database, cancel: Cancel, values: Values): Promise<Canceled> {
  const { tenantId, taskId, by, own } = cancel;
  if (by && !own) {
    return database.inTenant(tenantId, async (transaction) => {
      const [, [changed], [row]] = await Promise.all([
        transaction.query(LOCK, [tenantId, taskId]),
        transaction.query<CanceledRow>(CANCEL, [...values, null]),
        transaction.query<TaskRow>(GET, [tenantId, taskId, null]),
      ]);
      await recordCancel(transaction, cancel, changed);
      return [changed, row];
    });
  }
  const [, [changed] = [], [row] = []] = await database.tenantQueries(tenantId, [
    [LOCK, [tenantId, taskId]],
    [CANCEL, [...values, null]],
    [GET, [tenantId, taskId, null]],
  ]);
  return [changed, row] as Canceled;
}

/** The metadata are merged here and not by Postgres, whose JSON functions refuse U+0000. */
async function cancelWithMetadata(
  database: Database,
  cancel: Cancel,
  values: Values,
  metadata: object,
): Promise<Canceled> {
  const { tenantId, taskId } = cancel;
  return database.inTenant(tenantId, async (transaction) => {
    const merged = JSON.stringify({ ...(await readMetadata(transaction, cancel)), ...metadata });
    const [changed] = await transaction.query<CanceledRow>(CANCEL, [...values, merged]);
    const [row] = await transaction.query<TaskRow>(GET, [tenantId, taskId, null]);
    await recordCancel(transaction, cancel, changed);
    return [changed, row];
  });
}

async function recordCancel(
  transaction: Transaction,
  { taskId, by }: Cancel,
  changed: CanceledRow | undefined,
): Promise<void> {
  if (!by || !changed || changed.sequence === null || changed.owner === by.key) return;
  const detail = { owner: changed.owner };
  await transaction.record({ action: 'task.cancel', target: { kind: 'task', name: taskId }, by, detail });
}
