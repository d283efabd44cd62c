import { isUuid, type OwnTasks } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { Actor } from '../audit/audit-records.js';
import { Database, type Statement } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { LOCK_TASK } from '../log/lock-task.js';

/** A push config that was given up. */
export interface DeadPush {
  tenantId: string;
  taskId: string;
  configId: string;
  agentId: string;
  /** Made by a native webhook of the tenant. */
  isWebhook: boolean;
  /** Origin of its URL. The rest of the URL may be a secret of its owner. */
  receiver: string;
  /** HTTP status of the last answer; null = there was none. */
  status: number | null;
  error: string | null;
  /** Tries that have failed in a row. */
  failures: number;
  failingSince: Date;
  /** Events that were not delivered. */
  waiting: number;
}

/** A page of them, the latest first. */
export interface DeadPushPage {
  limit: number;
  /** The last one of the page before. */
  after?: Pick<DeadPush, 'failingSince' | 'taskId' | 'configId'> | undefined;
  /** Only of these tasks; unset = those of every owner. */
  own?: OwnTasks | undefined;
  /** Only of these agents. */
  agentIds?: readonly string[] | undefined;
}

interface DeadPushRow {
  tenant_id: string;
  task_id: string;
  id: string;
  agent_id: string;
  is_webhook: boolean;
  url: string;
  last_status: number | null;
  last_error: string | null;
  failures: number;
  failing_since: Date;
  waiting: number;
}

const PAGE = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  after_since: ['timestamptz', ({ after }) => after?.failingSince],
  after_task_id: ['uuid', ({ after }) => after?.taskId],
  after_id: ['text', ({ after }) => after?.configId],
  rows: ['int', ({ limit }) => limit],
  owner: ['text', ({ own }) => own?.owner],
  /** Also those of earlier releases, which have no owner. */
  unowned: ['boolean', ({ own }) => own?.unowned],
  agent_ids: ['text[]', ({ agentIds }) => agentIds],
} satisfies Inputs<DeadPushPage & { /** Null = all. */ tenantId: string | null }>;

const LIST = statement(
  'dead-push-list',
  { page: one(PAGE) },
  ({ page }) => `
SELECT p.tenant_id, p.task_id, p.id, p.webhook_id IS NOT NULL AS is_webhook, p.url, p.last_status, p.last_error, p.failures,
  p.failing_since, t.last_sequence - p.delivered_sequence AS waiting, t.agent_id
FROM push_configs p JOIN tasks t ON t.tenant_id = p.tenant_id AND t.id = p.task_id
WHERE p.state = 'dead' AND (${page.tenant_id} IS NULL OR p.tenant_id = ${page.tenant_id})
  AND (${page.after_since} IS NULL OR (p.failing_since, p.task_id, p.id) < (${page.after_since}, ${page.after_task_id}, ${page.after_id}))
  AND (${page.owner} IS NULL OR t.owner = ${page.owner} OR t.owner IS NULL AND ${page.unowned})
  AND (${page.agent_ids} IS NULL OR t.agent_id = ANY(${page.agent_ids}))
ORDER BY p.failing_since DESC, p.task_id DESC, p.id DESC LIMIT ${page.rows}`,
);

/** $1 tenant $2 task */
const FIND_TASK: Statement = {
  name: 'dead-push-find-task',
  text: 'SELECT agent_id, owner FROM tasks WHERE tenant_id = $1 AND id = $2',
};

/** $1 task */
const FIND_TENANT: Statement = {
  name: 'dead-push-find-tenant',
  text: `SELECT tenant_id FROM push_configs WHERE state = 'dead' AND task_id = $1 LIMIT 1`,
};

/** They continue after the last event that was delivered. $1 tenant $2 task $3 config, NULL = all */
const REVIVE: Statement = {
  name: 'dead-push-revive',
  text: `
UPDATE push_configs p SET state = 'active', failures = 0, failing_since = NULL, head_sequence = t.last_sequence,
  due_at = CASE WHEN t.last_sequence > p.delivered_sequence THEN clock_timestamp() END
FROM tasks t
WHERE t.tenant_id = $1 AND t.id = $2 AND p.tenant_id = $1 AND p.task_id = $2 AND p.state = 'dead'
  AND ($3::text IS NULL OR p.id = $3)
RETURNING p.id`,
};

/** Push configs that were given up. They keep their place in the log. */
@Injectable()
export class DeadPushStore {
  constructor(private readonly database: Database) {}

  /** Dead pushes of one tenant. */
  async list(tenantId: string, page: DeadPushPage): Promise<DeadPush[]> {
    const values = LIST.values({ page: { ...page, tenantId } });
    const rows = await this.database.tenantQuery<DeadPushRow>(tenantId, LIST, values);
    return rows.map(deadPushOf);
  }

  /** Dead pushes of all tenants. */
  async listAll(page: DeadPushPage): Promise<DeadPush[]> {
    const values = LIST.values({ page: { ...page, tenantId: null } });
    return (await this.database.systemQuery<DeadPushRow>(LIST, values)).map(deadPushOf);
  }

  /** Whose task it is; undefined = there is no such task. */
  async findTask(
    tenantId: string,
    taskId: string,
  ): Promise<{ agentId: string; owner: string | null } | undefined> {
    if (!isUuid(taskId)) return undefined;
    type TaskRow = { agent_id: string; owner: string | null };
    const [row] = await this.database.tenantQuery<TaskRow>(tenantId, FIND_TASK, [tenantId, taskId]);
    return row && { agentId: row.agent_id, owner: row.owner };
  }

  /** The tenant of a task with dead configs: operators name only the task. */
  async findTenant(taskId: string): Promise<string | undefined> {
    if (!isUuid(taskId)) return undefined;
    const [row] = await this.database.systemQuery<{ tenant_id: string }>(FIND_TENANT, [taskId]);
    return row?.tenant_id;
  }

  /**
   * Have dead configs of a task delivered again, from where they have stopped.
   * @param configId unset = all of the task
   * @returns the ids of the configs that were dead
   */
  async redeliver(
    { tenantId, taskId }: Pick<DeadPush, 'tenantId' | 'taskId'>,
    configId: string | undefined,
    by: Actor,
  ): Promise<string[]> {
    return this.database.inTenant(tenantId, async (transaction) => {
      // Writers of its log wait, and wake the configs afterwards.
      await transaction.query(LOCK_TASK, [tenantId, taskId]);
      const rows = await transaction.query<{ id: string }>(REVIVE, [tenantId, taskId, configId]);
      const configs = rows.map(({ id }) => id);
      if (configs.length === 0) return [];
      const target = { kind: 'task', name: taskId } as const;
      await transaction.record({ action: 'push.redeliver', target, by, detail: { configs } });
      return configs;
    });
  }
}

const deadPushOf = (row: DeadPushRow): DeadPush => ({
  tenantId: row.tenant_id,
  taskId: row.task_id,
  configId: row.id,
  agentId: row.agent_id,
  isWebhook: row.is_webhook,
  status: row.last_status,
  receiver: new URL(row.url).origin,
  error: row.last_error,
  failures: row.failures,
  failingSince: row.failing_since,
  waiting: row.waiting,
});
