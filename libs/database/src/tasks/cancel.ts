import { isUuid, type OwnTasks, TaskState } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Actor } from '../audit/audit-records.js';
import type { Database, Statement, Transaction, Values } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { hasState } from '../dispatch/run-conditions.js';
import { insertStatusEvent } from '../log/insert-events.js';
import { USAGE_CTE } from '../tenants/usage-sql.js';
import type { ChangedRow } from './changed-row.js';
import { GET } from './get.js';
import type { CancelResult } from './task-records.js';
import type { TaskReads } from './read-tasks.js';
import { readMetadata } from './read-metadata.js';
import { ReadBudget } from './read-budget.js';
import { type NewStatus, statusEvent, statusNow, type TaskRow, TERMINAL_STATES } from './task-row.js';

interface Cancel {
  tenantId: string;
  /** Null = any agent. */
  agentId: string | null;
  taskId: string;
  metadata?: object | undefined;
  /** The task must be one of these; unset = a task of any owner. */
  own?: OwnTasks | undefined;
  /** Who cancels; a record is written unless it is the owner. Unset = the platform cancels. */
  by?: Actor | undefined;
}

type CanceledRow = ChangedRow & {
  run_id: string | null;
  parent_task_id: string | null;
  child_tasks: number;
  push_configs: number;
  owner: string | null;
};

/** A cancel as it is written. */
interface NewCancel extends Cancel {
  canceled: NewStatus;
  /** All metadata of the task, as JSON. Unset: they stay. */
  merged?: string;
}

const TASK = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ taskId }) => taskId],
  agent_id: ['text', ({ agentId }) => agentId],
  owner: ['text', ({ own }) => own?.owner],
  unowned: ['boolean', ({ own }) => own?.unowned],
  status: ['json', ({ canceled }) => canceled.json],
  status_at: ['timestamptz', ({ canceled }) => canceled.at],
  metadata: ['json', ({ merged }) => merged],
} satisfies Inputs<NewCancel>;

/**
 * Locks the task before `CANCEL`. `CANCEL` then sees what the transaction before it has written. A statement that waits for the task
 * itself would see the task as it is then, but not the run that came with it. $1 tenant $2 task
 */
const LOCK: Statement = {
  name: 'task-lock',
  text: `SELECT FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 FOR UPDATE`,
};

/** `held` reads the id of the run before the update clears it. */
export const CANCEL = statement(
  'task-cancel-2',
  { task: one(TASK) },
  ({ task }) => `
WITH held AS (
  SELECT state, active_run_id, parent_task_id, child_tasks, push_configs, owner FROM tasks
  WHERE tenant_id = ${keyOfTenant(task.tenant_id)} AND id = ${task.id} AND (${task.agent_id} IS NULL OR agent_id = ${task.agent_id})
    AND (${task.owner} IS NULL OR owner = ${task.owner} OR owner IS NULL AND ${task.unowned}) FOR UPDATE
), task AS (
  UPDATE tasks t SET state = ${TaskState.TASK_STATE_CANCELED}, status = '{}', status_at = ${task.status_at},
    last_sequence = t.last_sequence + 1, active_run_id = NULL, metadata = coalesce(${task.metadata}, t.metadata),
    wakes_at = NULL, wakes_run_id = NULL,
    stored_bytes = t.stored_bytes + CASE WHEN t.active_run_id IS NULL THEN 0 ELSE t.open_bytes END
  FROM held
  WHERE t.tenant_id = ${keyOfTenant(task.tenant_id)} AND t.id = ${task.id} AND held.state NOT IN (${TERMINAL_STATES})
  RETURNING t.id, t.context_id, t.last_sequence,
    CASE WHEN held.active_run_id IS NULL THEN 0 ELSE t.open_bytes END AS open_bytes
), event AS (
  ${insertStatusEvent(task.status, { tenant_id: task.tenant_id, attempt: '0', from: 'FROM task t' })}
), run AS (
  UPDATE runs r SET state = 'canceled', finished_at = now(), lease_expires_at = NULL
  FROM task WHERE r.tenant_id = ${keyOfTenant(task.tenant_id)} AND r.id = (SELECT active_run_id FROM held)
    AND ${hasState('queued', 'running', 'suspended')}
), ${USAGE_CTE}
SELECT held.state, held.active_run_id AS run_id, held.parent_task_id, held.child_tasks, held.push_configs, held.owner, task.last_sequence AS sequence
FROM held LEFT JOIN task ON true`,
);

type Canceled = [changed: CanceledRow | undefined, row: TaskRow | undefined];

/**
 * Compare-and-set to `canceled`, with its event; finishes the active run as canceled. A task with a log of any size can be
 * canceled, because only the bounded part that comes with its row is read.
 * @param agentId null = any agent
 */
export async function cancelTask(
  { database, reader }: Pick<TaskReads, 'database' | 'reader'>,
  tenantId: string,
  agentId: string | null,
  taskId: string,
  options: Omit<Cancel, 'tenantId' | 'agentId' | 'taskId'> = {},
): Promise<CancelResult> {
  if (!isUuid(taskId)) return { ok: false, reason: 'not-found' };
  const canceled = statusNow(TaskState.TASK_STATE_CANCELED);
  const cancel = { tenantId, agentId, taskId, ...options, canceled };
  const [changed, row] = options.metadata
    ? await cancelWithMetadata(database, cancel, options.metadata)
    : await cancelAsItIs(database, cancel);
  if (!changed || !row) return { ok: false, reason: 'not-found' };
  const { sequence, run_id: runId } = changed;
  if (sequence === null) return { ok: false, reason: 'terminal' };
  const snapshot = await reader.read(tenantId, row, { budget: new ReadBudget(Infinity), rowOnly: true });
  if (!snapshot) return { ok: false, reason: 'not-found' };
  await reader.keepArtifacts(tenantId, snapshot);
  return {
    ok: true,
    snapshot,
    event: { sequence, payload: statusEvent(taskId, snapshot.task.contextId, canceled.status) },
    runId,
    parentTaskId: changed.parent_task_id,
    hasChildren: changed.child_tasks > 0,
    hasPushConfigs: changed.push_configs > 0,
  };
}

/** The statements of a cancel. The second one reads the canceled task. */
const callsOf = (cancel: NewCancel): [Statement, Values][] => [
  [CANCEL, CANCEL.values({ task: cancel })],
  [GET, GET.values({ task: { tenantId: cancel.tenantId, taskId: cancel.taskId } })],
];

async function cancelAsItIs(database: Database, cancel: NewCancel): Promise<Canceled> {
  const { tenantId, taskId, by, own } = cancel;
  const calls: [Statement, Values][] = [[LOCK, [tenantId, taskId]], ...callsOf(cancel)];
  if (by && !own) {
    return database.inTenant(tenantId, async (transaction) => {
      const answers = await Promise.all(
        calls.map(([called, values]) => transaction.query<QueryResultRow>(called, values)),
      );
      const [, [changed], [row]] = answers as [unknown, [CanceledRow?], [TaskRow?]];
      await recordCancel(transaction, cancel, changed);
      return [changed, row];
    });
  }
  const [, [changed] = [], [row] = []] = await database.tenantQueries(tenantId, calls);
  return [changed, row] as Canceled;
}

/** The metadata are merged here and not by Postgres, whose JSON functions refuse U+0000. */
async function cancelWithMetadata(
  database: Database,
  cancel: NewCancel,
  metadata: object,
): Promise<Canceled> {
  return database.inTenant(cancel.tenantId, async (transaction) => {
    const merged = JSON.stringify({ ...(await readMetadata(transaction, cancel)), ...metadata });
    const answers: QueryResultRow[][] = [];
    for (const [called, values] of callsOf({ ...cancel, merged })) {
      answers.push(await transaction.query<QueryResultRow>(called, values));
    }
    const [[changed] = [], [row] = []] = answers as [[CanceledRow?]?, [TaskRow?]?];
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
