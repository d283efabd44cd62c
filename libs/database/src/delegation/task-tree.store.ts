import { keyOfTenant } from '../connection/row-security.js';
import { isUuid, type TaskState } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import { isRunOf, isSleepOver, WAITS_FOR_TASKS } from '../dispatch/run-conditions.js';
import { RUN_KEY, type RunKey } from '../dispatch/run-key.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { takeInTurns } from '../sql/take-in-turns.js';
import type { Ancestor, Descendant, TaskRelations } from '../tasks/task-records.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';
import { type ReminderColumns, reminderColumns, remindersOf } from '../tasks/reminder-status.js';
import { afterEnd, WOKEN } from '../dispatch/run-history.js';
import { lastVersion } from '../runs/agent-version.js';

interface AncestorRow {
  id: string;
  agent_id: string;
}
interface RelationsRow extends ReminderColumns {
  owner: string | null;
  parent_task_id: string | null;
  children: string[];
  agent_version: number | null;
  last_sequence: number;
  created_at: Date;
  wakes_at: Date | null;
}
interface WokenRow {
  /** Runs that were read. */
  read: number;
  woken: number;
  /** The last of them; null = there was none. */
  tenant_id: string | null;
  id: string | null;
}
interface OpenChildRow {
  tenant_id: string;
  id: string;
  /** Its parent has ended, or is gone. */
  abandoned: boolean;
}

/** Upper bound: the delegation depth is limited, and a task has one parent, which is older. */
const MAX_ANCESTORS = 100;

/** From a task up to the first one of all: $1 tenant $2 task */
const ANCESTORS: Statement = {
  name: 'task-ancestors',
  text: `
WITH RECURSIVE ancestors AS (
  SELECT id, agent_id, parent_task_id, 1 AS length FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2
  UNION ALL
  SELECT p.id, p.agent_id, p.parent_task_id, ancestors.length + 1 FROM ancestors, LATERAL (
    SELECT id, agent_id, parent_task_id FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = ancestors.parent_task_id
  ) p WHERE ancestors.length < ${MAX_ANCESTORS}
)
SELECT id, agent_id FROM ancestors ORDER BY length`,
};

/** $1 tenant $2 task */
export const RELATIONS: Statement = {
  name: 'task-relations-5',
  text: `
SELECT t.owner, t.parent_task_id, t.last_sequence, t.created_at, t.wakes_at, ${reminderColumns('t')}, ARRAY(
  SELECT id::text FROM tasks WHERE tenant_id = $1 AND parent_task_id = $2 ORDER BY created_at, id
) AS children, ${lastVersion('$1', '$2')} AS agent_version
FROM tasks t WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = $2`,
};

/** Descendants of a task that are shown. */
const MAX_DESCENDANTS = 500;

/** All below a task, the nearest first: $1 tenant $2 task */
const DESCENDANTS: Statement = {
  name: 'task-descendants',
  text: `
WITH RECURSIVE below AS (
  SELECT id, parent_task_id, agent_id, owner, state, created_at, status_at, 1 AS depth FROM tasks
  WHERE tenant_id = ${keyOfTenant('$1')} AND parent_task_id = $2
  UNION ALL
  SELECT c.id, c.parent_task_id, c.agent_id, c.owner, c.state, c.created_at, c.status_at, below.depth + 1 FROM below, LATERAL (
    SELECT id, parent_task_id, agent_id, owner, state, created_at, status_at FROM tasks
    WHERE tenant_id = ${keyOfTenant('$1')} AND parent_task_id = below.id ORDER BY created_at, id LIMIT ${MAX_DESCENDANTS}
  ) c WHERE below.depth < ${MAX_ANCESTORS}
)
SELECT id, parent_task_id, agent_id, owner, state, created_at, status_at FROM below LIMIT ${MAX_DESCENDANTS}`,
};

interface DescendantRow {
  id: string;
  parent_task_id: string;
  agent_id: string;
  owner: string | null;
  state: TaskState;
  created_at: Date;
  status_at: Date;
}

/** $1 tenant $2 parent */
export const OPEN_CHILDREN: Statement = {
  name: 'task-open-children',
  text: `
SELECT id FROM tasks WHERE tenant_id = $1 AND parent_task_id = $2 AND state NOT IN (${TERMINAL_STATES})`,
};

interface SuspendedRun extends RunKey {
  /** The tasks that it waits for. */
  tasks: readonly string[];
  /** In milliseconds; unset = until these tasks have ended their turns. */
  forMs?: number | undefined;
}

const SUSPENDED = {
  ...RUN_KEY,
  waits_for: ['uuid[]', ({ tasks }) => tasks],
  for_ms: ['float8', ({ forMs }) => forMs],
} satisfies Inputs<SuspendedRun>;

/** Suspends a run until these tasks have ended their turns, or a time has passed. */
const SUSPEND = statement(
  'run-suspend-3',
  { run: one(SUSPENDED) },
  ({ run }) => `
WITH held AS (
  SELECT id FROM tasks WHERE tenant_id = ${keyOfTenant(run.tenant_id)} AND id = ${run.task_id} AND active_run_id = ${run.id} AND attempt = ${run.attempt} FOR UPDATE
)
UPDATE runs r SET state = 'suspended', waits_for = ${run.waits_for}, worker_id = NULL, lease_expires_at = NULL, enqueued_at = NULL,
  history = ${afterEnd('suspended')}, not_before = clock_timestamp() + ${run.for_ms} * interval '1 millisecond'
FROM held WHERE r.tenant_id = ${keyOfTenant(run.tenant_id)} AND r.id = ${run.id} AND r.attempt = ${run.attempt} AND r.state = 'running'
RETURNING r.id`,
);

/** Whether a task that the run waits for still has an active turn, and its time has not come. A deleted task has no turn. */
const stillWaits = (run: string): string => `(EXISTS (
    SELECT FROM unnest(${run}.waits_for) AS w(id), LATERAL (
      SELECT FROM tasks
      WHERE tenant_id = ${keyOfTenant(`${run}.tenant_id`)} AND id = w.id AND active_run_id IS NOT NULL OFFSET 0
    ) t
  ) AND coalesce(${run}.not_before > clock_timestamp(), true))`;

/**
 * The suspended run of a task is queued again if nothing is left to wait for: $1 tenant $2 task. It changes only the
 * run, and only if it is suspended. So a concurrent cancel ends the run in any order.
 */
export const WAKE: Statement = {
  name: 'run-wake-3',
  text: `
UPDATE runs r SET ${WOKEN}
WHERE ${isRunOf('r', '$1', '$2')} AND r.state = 'suspended' AND NOT ${stillWaits('r')}
RETURNING r.id`,
};

// The statements below have no name: they are planned for the tables as they are, not as they once were.

/** The next runs that wait for other tasks; those that have nothing left to wait for are queued again. $1 tenant and $2 run after which to begin $3 limit */
export const WAKE_NEXT: Statement = {
  text: `
WITH read AS MATERIALIZED (
  SELECT tenant_id, id, waits_for, not_before FROM runs
  WHERE ${WAITS_FOR_TASKS} AND (tenant_id, id) > ($1, $2)
  ORDER BY tenant_id, id LIMIT $3
), ready AS MATERIALIZED (
  SELECT r.tenant_id, r.id FROM read, LATERAL (
    SELECT tenant_id, id FROM runs
    WHERE tenant_id = read.tenant_id AND id = read.id AND state = 'suspended'
    FOR UPDATE SKIP LOCKED
  ) r WHERE NOT ${stillWaits('read')}
), woken AS (
  UPDATE runs r SET ${WOKEN} FROM ready WHERE r.tenant_id = ${keyOfTenant('ready.tenant_id')} AND r.id = ready.id
  RETURNING r.id
)
SELECT n.read, (SELECT count(*) FROM woken)::int AS woken, l.tenant_id, l.id
FROM (SELECT count(*)::int AS read FROM read) n
LEFT JOIN (SELECT tenant_id, id FROM read ORDER BY tenant_id DESC, id DESC LIMIT 1) l ON true`,
};

/** Suspended runs whose time has come: $1 limit */
export const WAKE_DUE: Statement = {
  text: `
WITH due AS MATERIALIZED (
${takeInTurns({
  table: 'runs',
  alias: 's',
  columns: 'tenant_id, id',
  isDue: isSleepOver('statement_timestamp()'),
  since: 'not_before',
  limit: '$1',
})}
)
UPDATE runs r SET ${WOKEN} FROM due WHERE r.tenant_id = ${keyOfTenant('due.tenant_id')} AND r.id = due.id
RETURNING r.id`,
};

/** The next children that have not ended: $1 tenant and $2 task after which to begin $3 limit */
export const OPEN_NEXT: Statement = {
  text: `
SELECT c.tenant_id, c.id, NOT EXISTS (
  SELECT FROM tasks p
  WHERE p.tenant_id = c.tenant_id AND p.id = c.parent_task_id AND p.state NOT IN (${TERMINAL_STATES})
) AS abandoned
FROM (
  SELECT tenant_id, id, parent_task_id FROM tasks
  WHERE parent_task_id IS NOT NULL AND state NOT IN (${TERMINAL_STATES}) AND (tenant_id, id) > ($1, $2)
  ORDER BY tenant_id, id LIMIT $3
) c`,
};

const NONE = '00000000-0000-0000-0000-000000000000';

/** The position of a sweep over all tenants; undefined: the beginning. */
export type SweepCursor = { tenantId: string; id: string } | undefined;

/** Tasks that are children of others, and runs that wait for them. */
@Injectable()
export class TaskTreeStore {
  constructor(private readonly database: Database) {}

  /** The task itself, then its parent, and so on up to the first one. Empty: there is no such task. */
  async ancestors(tenantId: string, taskId: string): Promise<Ancestor[]> {
    const rows = await this.database.tenantQuery<AncestorRow>(tenantId, ANCESTORS, [tenantId, taskId]);
    return rows.map((row) => ({ taskId: row.id, agentId: row.agent_id }));
  }

  /** Owner, parent and children of a task, and the version of its agent. */
  async find(tenantId: string, taskId: string): Promise<TaskRelations> {
    const values = [tenantId, taskId];
    const [row] = isUuid(taskId)
      ? await this.database.tenantQuery<RelationsRow>(tenantId, RELATIONS, values)
      : [];
    const { parent_task_id: parentTaskId = null, children: childTaskIds = [] } = row ?? {};
    return {
      owner: row?.owner ?? null,
      parentTaskId,
      childTaskIds,
      agentVersion: row?.agent_version ?? null,
      events: row?.last_sequence ?? 0,
      createdAt: row?.created_at,
      wakesAt: row?.wakes_at ?? null,
      reminders: row ? remindersOf(row) : [],
    };
  }

  /** The tasks below a task: its children, their children and so on, the nearest first, at most 500. */
  async descendants(tenantId: string, taskId: string): Promise<Descendant[]> {
    if (!isUuid(taskId)) return [];
    const rows = await this.database.tenantQuery<DescendantRow>(tenantId, DESCENDANTS, [tenantId, taskId]);
    return rows.map((row) => ({
      taskId: row.id,
      parentTaskId: row.parent_task_id,
      agentId: row.agent_id,
      owner: row.owner,
      state: row.state,
      createdAt: row.created_at,
      statusAt: row.status_at,
    }));
  }

  /** The children of a task that have not ended, those included that wait for input. */
  async openChildren(tenantId: string, taskId: string): Promise<string[]> {
    const values = [tenantId, taskId];
    const rows = await this.database.tenantQuery<{ id: string }>(tenantId, OPEN_CHILDREN, values);
    return rows.map(({ id }) => id);
  }

  /**
   * Suspend a run until none of these tasks has an active turn, or until a time has passed. The run keeps its task and gives up
   * worker, lease and slot. Call `wake` afterwards: a task may have ended just before.
   * @param forMs the time; undefined = there is none
   * @returns false if this attempt no longer owns the run
   */
  async suspend(run: RunKey, waitsFor: readonly string[], forMs?: number): Promise<boolean> {
    // A run that waits for a time alone waits for its own task, which has a turn as long as the run is there.
    const tasks = waitsFor.length === 0 ? [run.taskId] : waitsFor;
    const values = SUSPEND.values({ run: { ...run, tasks, forMs } });
    return (await this.database.tenantQuery(run.tenantId, SUSPEND, values)).length > 0;
  }

  /**
   * Queue the suspended run of a task again if nothing is left to wait for; its next claim is another attempt.
   * @returns whether it was queued
   */
  async wake(tenantId: string, taskId: string): Promise<boolean> {
    return (await this.database.tenantQuery(tenantId, WAKE, [tenantId, taskId])).length > 0;
  }

  /** Wakes suspended runs of all tenants whose time has come. @returns how many */
  async wakeDue(limit: number): Promise<number> {
    return (await this.database.systemQuery(WAKE_DUE, [limit])).length;
  }

  /** Wakes the next suspended runs of all tenants that wait for tasks which have ended: their wake-up may be lost. */
  async wakeNext(after: SweepCursor, limit: number): Promise<{ woken: number; next: SweepCursor }> {
    const values = [after?.tenantId ?? NONE, after?.id ?? NONE, limit];
    const [row] = await this.database.systemQuery<WokenRow>(WAKE_NEXT, values);
    const { read = 0, woken = 0, tenant_id: tenantId, id } = row ?? {};
    return { woken, next: read === limit && tenantId && id ? { tenantId, id } : undefined };
  }

  /** The next unfinished children of all tenants whose parent has ended. */
  async abandonedChildren(
    after: SweepCursor,
    limit: number,
  ): Promise<{ children: { tenantId: string; taskId: string }[]; next: SweepCursor }> {
    const values = [after?.tenantId ?? NONE, after?.id ?? NONE, limit];
    const rows = await this.database.systemQuery<OpenChildRow>(OPEN_NEXT, values);
    const last = rows.at(-1);
    return {
      children: rows
        .filter(({ abandoned }) => abandoned)
        .map((row) => ({ tenantId: row.tenant_id, taskId: row.id })),
      next: rows.length === limit && last ? { tenantId: last.tenant_id, id: last.id } : undefined,
    };
  }
}
