import { Injectable } from '@nestjs/common';
import type { Actor } from '../audit/audit-records.js';
import { Database, type Statement } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { IS_THERE, NOW } from './push-lease.js';
import { type PushTry, readPushTries } from './push-tries.js';
import { LOCK_TASK } from '../log/lock-task.js';

/** The deliveries of one task to a webhook. */
export interface WebhookDelivery {
  taskId: string;
  agentId: string;
  /** `ended`: the receiver has answered 410. `dead`: given up. */
  state: 'active' | 'ended' | 'dead';
  /** HTTP status of the last answer. Null: there was none. */
  status: number | null;
  error: string | null;
  /** Tries that have failed in a row. */
  failures: number;
  /** Null: the last try has not failed. */
  failingSince: Date | null;
  /** When it is tried next. Null: it has everything, or was given up. */
  nextAt: Date | null;
  /** The last event that it has. */
  delivered: number;
  /** Events that were not delivered. */
  waiting: number;
}

/** How a webhook does with the newest tasks of its tenant. */
export interface WebhookHealth {
  webhookId: string;
  tasks: number;
  /** Number of tasks whose events its receiver refuses. They are tried again. */
  retrying: number;
  /** Number of tasks whose events were given up. */
  dead: number;
  /** The last answer or failure for the newest of these tasks. */
  status: number | null;
  error: string | null;
}

/** A page, the newest tasks first. */
export interface WebhookDeliveryPage {
  limit: number;
  /** The last task of the page before. */
  after?: string | undefined;
  /** Only this task. */
  task?: string | undefined;
}

/** Push configs of a tenant that `health` reads: the newest. */
const MAX_LOOKED_AT = 1_000;
/** Maximum number of tasks of one redelivery. */
const MAX_REDELIVERED = 100;

const PAGE = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  webhook_id: ['uuid', ({ webhookId }) => webhookId],
  after: ['uuid', ({ after }) => after],
  task: ['uuid', ({ task }) => task],
  rows: ['int', ({ limit }) => limit],
} satisfies Inputs<WebhookDeliveryPage & { tenantId: string; webhookId: string }>;

interface DeliveryRow {
  task_id: string;
  agent_id: string;
  state: WebhookDelivery['state'];
  last_status: number | null;
  last_error: string | null;
  failures: number;
  failing_since: Date | null;
  due_at: Date | null;
  delivered_sequence: number;
  waiting: number;
}

const LIST = statement(
  'webhook-delivery-list-2',
  { page: one(PAGE) },
  ({ page }) => `
SELECT p.task_id, t.agent_id, p.state, p.last_status, p.last_error, p.failures, p.failing_since, p.due_at, p.delivered_sequence,
  greatest(0, t.last_sequence - p.delivered_sequence) AS waiting
FROM push_configs p JOIN tasks t ON t.tenant_id = p.tenant_id AND t.id = p.task_id
WHERE p.tenant_id = ${page.tenant_id} AND p.webhook_id = ${page.webhook_id} AND p.${IS_THERE}
  AND (${page.after} IS NULL OR p.task_id < ${page.after}) AND (${page.task} IS NULL OR p.task_id = ${page.task})
ORDER BY p.task_id DESC LIMIT ${page.rows}`,
);

/** $1 tenant $2 webhooks */
const HEALTH: Statement = {
  name: 'webhook-health',
  text: `
SELECT p.webhook_id, count(*)::int AS tasks,
  count(*) FILTER (WHERE p.state = 'active' AND p.failing_since IS NOT NULL)::int AS retrying,
  count(*) FILTER (WHERE p.state = 'dead')::int AS dead,
  (array_agg(p.last_status ORDER BY p.task_id DESC))[1] AS last_status,
  (array_agg(p.last_error ORDER BY p.task_id DESC))[1] AS last_error
FROM (
  SELECT * FROM push_configs WHERE tenant_id = $1 AND ${IS_THERE} ORDER BY task_id DESC LIMIT ${MAX_LOOKED_AT}
) p WHERE p.webhook_id = ANY($2::uuid[]) GROUP BY p.webhook_id`,
};

interface HealthRow {
  webhook_id: string;
  tasks: number;
  retrying: number;
  dead: number;
  last_status: number | null;
  last_error: string | null;
}

/** The newest tasks whose events the receiver has not taken. $1 tenant $2 webhook */
const LIST_FAILING: Statement = {
  name: 'webhook-failing',
  text: `
SELECT task_id FROM push_configs
WHERE tenant_id = $1 AND webhook_id = $2 AND state IN ('active', 'dead') AND failing_since IS NOT NULL
ORDER BY task_id DESC LIMIT ${MAX_REDELIVERED}`,
};

/** From the event after the last one that was delivered; the last one again, if it has all. $1 tenant $2 task $3 webhook */
const REDELIVER: Statement = {
  name: 'webhook-redeliver',
  text: `
UPDATE push_configs p SET state = 'active', failures = 0, failing_since = NULL, head_sequence = t.last_sequence,
  delivered_sequence = least(p.delivered_sequence, t.last_sequence - 1), due_at = ${NOW}
FROM tasks t
WHERE t.tenant_id = $1 AND t.id = $2 AND p.tenant_id = $1 AND p.task_id = $2 AND p.webhook_id = $3 AND p.${IS_THERE}
  AND (p.lease_until IS NULL OR p.lease_until <= ${NOW})
RETURNING p.id`,
};

/** Deliveries of tasks to webhooks. The log of a task is the outbox: nothing else is stored of a delivery. */
@Injectable()
export class WebhookDeliveryStore {
  constructor(private readonly database: Database) {}

  async list(tenantId: string, webhookId: string, page: WebhookDeliveryPage): Promise<WebhookDelivery[]> {
    const values = LIST.values({ page: { ...page, tenantId, webhookId } });
    return (await this.database.tenantQuery<DeliveryRow>(tenantId, LIST, values)).map(deliveryOf);
  }

  /** The newest requests about a task to the webhook, the oldest first. */
  async tries(tenantId: string, webhookId: string, taskId: string): Promise<PushTry[]> {
    const receivers = await readPushTries(this.database, tenantId, taskId);
    return receivers.find((receiver) => receiver.webhookId === webhookId)?.tries ?? [];
  }

  /** Only webhooks that received one of the newest tasks. */
  async health(tenantId: string, webhookIds: readonly string[]): Promise<WebhookHealth[]> {
    if (webhookIds.length === 0) return [];
    const rows = await this.database.tenantQuery<HealthRow>(tenantId, HEALTH, [tenantId, [...webhookIds]]);
    return rows.map((row) => ({
      webhookId: row.webhook_id,
      tasks: row.tasks,
      retrying: row.retrying,
      dead: row.dead,
      status: row.last_status,
      error: row.last_error,
    }));
  }

  /** The newest tasks whose events the receiver has not taken. */
  async failing(tenantId: string, webhookId: string): Promise<string[]> {
    type TaskRow = { task_id: string };
    const rows = await this.database.tenantQuery<TaskRow>(tenantId, LIST_FAILING, [tenantId, webhookId]);
    return rows.map((row) => row.task_id);
  }

  /**
   * Delivers a task to the webhook again, now. @returns false: it never received the task, or a request is under way
   */
  async redeliver(tenantId: string, webhookId: string, taskId: string, by: Actor): Promise<boolean> {
    return this.database.inTenant(tenantId, async (transaction) => {
      // Writers of its log wait, and wake the config afterwards.
      await transaction.query(LOCK_TASK, [tenantId, taskId]);
      const rows = await transaction.query<{ id: string }>(REDELIVER, [tenantId, taskId, webhookId]);
      if (rows.length === 0) return false;
      const target = { kind: 'task', name: taskId } as const;
      const detail = { configs: rows.map(({ id }) => id) };
      await transaction.record({ action: 'push.redeliver', target, by, detail });
      return true;
    });
  }
}

const deliveryOf = (row: DeliveryRow): WebhookDelivery => ({
  taskId: row.task_id,
  agentId: row.agent_id,
  state: row.state,
  status: row.last_status,
  error: row.last_error,
  failures: row.failures,
  failingSince: row.failing_since,
  nextAt: row.due_at,
  delivered: row.delivered_sequence,
  waiting: row.waiting,
});
