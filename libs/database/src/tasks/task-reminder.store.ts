import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement } from '../connection/database.js';
import { nextTryAt } from '../sql/notice-tries.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { takeInTurns } from '../sql/take-in-turns.js';
import { INTERRUPTED_STATES } from './task-row.js';

/** A task that waits for a person, and the notice for the webhooks of its tenant. */
export interface TaskReminder {
  tenantId: string;
  taskId: string;
  agentId: string;
  /** Null: the agent is built in, or was deleted. */
  agentSlug: string | null;
  /** The content of the notice. */
  kind: 'reminder' | 'escalation';
  /** Since when it waits. */
  since: Date;
  /** The webhooks that have it. */
  notified: string[];
}

/** SQL of when a task is escalated whose status and reminder these are. NULL: never. */
const escalatesAt = (at: string, reminder: string): string =>
  `${at} + (${reminder}->>'escalateMs')::float8 * interval '1 millisecond'`;
/** SQL of the escalation as what is due next. @param sent JSON of what was sent before */
const escalation = (sent: string): string =>
  `'{"kind": "escalation", "tries": 0, "notified": []}'::jsonb || jsonb_strip_nulls(jsonb_build_object('sent', ${sent}))`;

/** SQL of what was sent for the question, and when, with this notice. @param webhooks those that have it */
const sentWith = (webhooks: string, isDone: string): string => `
    CASE WHEN cardinality(${webhooks}) > jsonb_array_length(reminder->'notified')
        OR ${isDone} AND NOT coalesce(reminder->'sent', '{}') ? (reminder->>'kind')
      THEN coalesce(reminder->'sent', '{}') || jsonb_build_object(reminder->>'kind',
        jsonb_build_object('at', clock_timestamp(), 'webhooks', cardinality(${webhooks})))
      ELSE reminder->'sent' END`;

/**
 * Takes due reminders and escalations. If this worker dies or a receiver does not answer, they are due again later. A reminder ends when
 * the escalation is due. A task that no longer asks leaves nothing. $1 limit
 */
const CLAIM: Statement = {
  name: 'task-reminders-claim-4',
  text: `
WITH due AS MATERIALIZED (
${takeInTurns({
  table: 'tasks',
  alias: 't',
  columns: `tenant_id, id, state IN (${INTERRUPTED_STATES}) AND active_run_id IS NULL AS asks,
    CASE WHEN ${escalatesAt('status_at', 'reminder')} <= clock_timestamp() THEN ${escalation("reminder->'sent'")} ELSE reminder END AS reminder`,
  isDue: 'reminds_at <= statement_timestamp()',
  since: 'reminds_at',
  limit: '$1',
})}
), claimed AS (
  UPDATE tasks t SET
    reminder = CASE WHEN due.asks THEN due.reminder || jsonb_build_object('tries', (due.reminder->>'tries')::int + 1) END,
    reminds_at = CASE WHEN due.asks THEN least(${escalatesAt('t.status_at', 'due.reminder')}, ${nextTryAt("(due.reminder->>'tries')::int")}) END
  FROM due WHERE t.tenant_id = due.tenant_id AND t.id = due.id
  RETURNING t.tenant_id, t.id, t.agent_id, t.status_at, t.reminder, due.asks
)
SELECT tenant_id::text AS "tenantId", id::text AS "taskId", agent_id AS "agentId", status_at AS since, reminder->>'kind' AS kind,
  ARRAY(SELECT jsonb_array_elements_text(reminder->'notified')) AS notified, coalesce(
    (SELECT slug FROM agents a WHERE a.tenant_id = c.tenant_id AND a.id = CASE WHEN length(c.agent_id) = 36 THEN c.agent_id::uuid END),
    (SELECT slug FROM installed_agents i WHERE i.id = CASE WHEN length(c.agent_id) = 36 THEN c.agent_id::uuid END)
  ) AS "agentSlug"
FROM claimed c WHERE asks`,
};

interface TaskNotice {
  reminder: TaskReminder;
  webhooks: readonly string[];
  isDone: boolean;
}

const NOTICE = {
  tenant_id: ['uuid', ({ reminder }) => reminder.tenantId],
  task_id: ['uuid', ({ reminder }) => reminder.taskId],
  since: ['timestamptz', ({ reminder }) => reminder.since],
  kind: ['text', ({ reminder }) => reminder.kind],
  webhooks: ['text[]', ({ webhooks }) => webhooks],
  is_done: ['boolean', ({ isDone }) => isDone],
} satisfies Inputs<TaskNotice>;

/** Only if the task still waits for the same answer. Sent notices stay in the row until then, to be shown with the task. */
const NOTE = statement(
  'task-reminder-note-2',
  { notice: one(NOTICE) },
  ({ notice }) => `
UPDATE tasks SET reminds_at = CASE WHEN ${notice.is_done} THEN ${escalatesAt('status_at', 'reminder')} ELSE reminds_at END,
  reminder = CASE WHEN NOT ${notice.is_done}
      THEN reminder || jsonb_strip_nulls(jsonb_build_object('notified', ${notice.webhooks}, 'sent', ${sentWith(notice.webhooks, notice.is_done)}))
    WHEN reminder->>'escalateMs' IS NOT NULL THEN ${escalation(sentWith(notice.webhooks, notice.is_done))}
    ELSE jsonb_build_object('kind', 'done', 'sent', ${sentWith(notice.webhooks, notice.is_done)}) END
WHERE tenant_id = ${notice.tenant_id} AND id = ${notice.task_id} AND status_at = ${notice.since} AND reminder->>'kind' = ${notice.kind}`,
);

/** Tasks that wait for a person and are due for a reminder of their agent. The end of the turn that asks sets the times, in its own statement. */
@Injectable()
export class TaskReminderStore {
  constructor(private readonly database: Database) {}

  /** Takes due ones, of all tenants. They are due again later unless `note` marks them as done. */
  async claim(limit: number): Promise<TaskReminder[]> {
    return this.database.systemQuery<TaskReminder & QueryResultRow>(CLAIM, [limit]);
  }

  /** @param webhooks all that have it @param isDone none is left */
  async note(reminder: TaskReminder, webhooks: readonly string[], isDone: boolean): Promise<void> {
    const values = NOTE.values({ notice: { reminder, webhooks, isDone } });
    await this.database.tenantQuery(reminder.tenantId, NOTE, values);
  }
}
