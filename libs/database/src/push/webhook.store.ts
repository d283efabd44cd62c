import { clock } from '@baton/telemetry';
import { isTerminal, TaskState } from '@baton/a2a';
import { DEFAULT_LIMITS, Environment } from '@baton/config';
import { Inject, Injectable } from '@nestjs/common';
import { type Actor, type AuditAction } from '../audit/audit-records.js';
import type { SealedSecret } from '../catalog/catalog-records.js';
import { CatalogClient, transactionOf } from '../connection/catalog-client.js';
import { Database, type Statement } from '../connection/database.js';
import type { Prisma, Webhook as WebhookRow } from '../generated/client.js';
import { stateBefore } from '../log/state-before.js';
import type { PageAfter } from '../tenants/tenant-records.js';
import { keepInRoom } from '../tenants/tenant-room.js';
import { hostOf, IS_THERE, NOW, OF_WEBHOOK, REVOKE, untilRequestsEnd } from './push-lease.js';

/** A receiver of a tenant for the state changes of all tasks, or of those of some agents. */
export interface Webhook {
  tenantId: string;
  id: string;
  url: string;
  /** Slugs of agents; none = all. */
  agents: string[];
  /** The states that it gets; none = all. */
  states: TaskState[];
  enabled: boolean;
  /** Key of the principal that has made it. */
  createdBy: string;
  createdAt: Date;
  updatedAt: Date;
}

/** A webhook before it is stored. */
export type NewWebhook = Pick<Webhook, 'tenantId' | 'id' | 'url' | 'agents' | 'states' | 'enabled'>;
/** Fields of a webhook that can change. */
export type WebhookPatch = Partial<Pick<Webhook, 'url' | 'agents' | 'states' | 'enabled'>>;

/** The present values that a delivery of a webhook needs. */
export interface WebhookTarget {
  webhookId: string;
  url: string;
  enabled: boolean;
  /** The secrets that sign. */
  sealed: SealedSecret;
  agentId: string;
  /** Null: the agent is built in, or was deleted. */
  agentSlug: string | null;
  /** Name of the state that the task had after the given event. Null: it had none, or that was long ago. */
  stateBefore: string | null;
}

/** A webhook that may get notices other than events of a task. */
export interface NotifiedWebhook {
  id: string;
  url: string;
  /** Slugs of agents; none = all. */
  agents: string[];
  /** The states that it gets; none = all. */
  states: TaskState[];
  /** The secrets that sign. */
  sealed: SealedSecret;
}

interface TargetRow {
  webhook_id: string;
  url: string;
  enabled: boolean;
  key_id: string;
  nonce: Buffer;
  ciphertext: Buffer;
  agent_id: string;
  agent_slug: string | null;
  state_before: string | null;
}

/** $1 tenant $2 task $3 config $4 an event */
const READ_TARGET: Statement = {
  name: 'webhook-target',
  text: `
SELECT w.id AS webhook_id, w.url, w.enabled, w.key_id, w.nonce, w.ciphertext, t.agent_id, coalesce(
  (SELECT slug FROM agents a WHERE a.tenant_id = $1 AND a.id = CASE WHEN length(t.agent_id) = 36 THEN t.agent_id::uuid END),
  (SELECT slug FROM installed_agents i WHERE i.id = CASE WHEN length(t.agent_id) = 36 THEN t.agent_id::uuid END)
) AS agent_slug, ${stateBefore({ tenant_id: '$1', task_id: '$2', sequence: '$4' })} AS state_before
FROM push_configs p
JOIN webhooks w ON w.tenant_id = p.tenant_id AND w.id = p.webhook_id
JOIN tasks t ON t.tenant_id = p.tenant_id AND t.id = p.task_id
WHERE p.tenant_id = $1 AND p.task_id = $2 AND p.id = $3`,
};

/** $1 tenant */
const ENABLED: Statement = {
  text: `
SELECT id::text, url, agents, states, key_id, nonce, ciphertext FROM webhooks
WHERE tenant_id = $1 AND enabled AND ciphertext IS NOT NULL ORDER BY id`,
};

const TERMINAL_STATES = Object.values(TaskState)
  .filter((state) => typeof state === 'number' && isTerminal(state))
  .join();

/**
 * Waiting events go to the new URL. Configs of ended tasks whose events are delivered stay. $1 tenant $2 webhook $3 URL
 */
const MOVE: Statement = {
  name: 'webhook-move',
  text: `
UPDATE push_configs p SET url = $3::text, host = ${hostOf('$3::text')}, ${REVOKE}
WHERE ${OF_WEBHOOK} AND ${IS_THERE} AND (p.due_at IS NOT NULL OR p.state = 'dead' OR EXISTS (
  SELECT FROM tasks t WHERE t.tenant_id = $1 AND t.id = p.task_id AND t.state NOT IN (${TERMINAL_STATES})
))`,
};

/** First configs without a lease, then the others: a worker may claim one between the two. $1 tenant $2 webhook */
const DELETE_IDLE: Statement = {
  name: 'webhook-delete-idle',
  text: `DELETE FROM push_configs WHERE ${OF_WEBHOOK} AND (lease_until IS NULL OR lease_until <= ${NOW})`,
};
const RETIRE_REST: Statement = {
  name: 'webhook-retire-rest',
  text: `UPDATE push_configs p SET state = 'removed', due_at = NULL, ${REVOKE} WHERE ${OF_WEBHOOK}`,
};

/** A tenant's webhooks. Their push configs are made with each task (`attach_push_configs` in the database). */
@Injectable()
export class WebhookStore {
  constructor(
    private readonly catalog: CatalogClient,
    private readonly database: Database,
    @Inject(Environment)
    private readonly environment: Pick<Environment, 'defaultLimits'> = { defaultLimits: DEFAULT_LIMITS },
  ) {}

  /** @throws LimitReachedError */
  async create(webhook: NewWebhook, sealed: SealedSecret, by: Actor): Promise<Webhook> {
    const { tenantId, id, url, agents, states, enabled } = webhook;
    return this.catalog.change(
      tenantId,
      async (prisma, record) => {
        const data = { tenantId, id, url, agents, states, enabled, createdBy: by.key };
        const row = await prisma.webhook.create({ data: { ...data, ...columnsOf(sealed) } });
        await record(recordOf('webhook.create', row, by));
        await keepInRoom(transactionOf(prisma), tenantId, this.environment.defaultLimits, {
          added: 'webhooks',
        });
        return webhookOf(row);
      },
      // One after the other, so that the number is exact.
      'webhooks are made',
    );
  }

  /** The enabled webhooks of a tenant, with their secrets. */
  async enabled(tenantId: string): Promise<NotifiedWebhook[]> {
    type Row = Omit<NotifiedWebhook, 'sealed'> & Pick<TargetRow, 'key_id' | 'nonce' | 'ciphertext'>;
    const rows = await this.database.tenantQuery<Row>(tenantId, ENABLED, [tenantId]);
    return rows.map(({ key_id: keyId, nonce, ciphertext, ...webhook }) => ({
      ...webhook,
      sealed: { keyId, nonce, ciphertext },
    }));
  }

  /** In the order in which they were made. */
  async list(tenantId: string, { limit, after }: PageAfter): Promise<Webhook[]> {
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.webhook.findMany({
        where: { tenantId, ...(after !== undefined && { id: { gt: after } }) },
        orderBy: { id: 'asc' },
        take: limit,
      }),
    );
    return rows.map(webhookOf);
  }

  /** With the secrets that sign. */
  async find(tenantId: string, id: string): Promise<{ webhook: Webhook; sealed: SealedSecret } | undefined> {
    const row = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.webhook.findUnique({ where: { tenantId_id: { tenantId, id } } }),
    );
    return row ? { webhook: webhookOf(row), sealed: sealedOf(row) } : undefined;
  }

  /**
   * Change the given members. If it is disabled or has another URL, nothing goes to the former receiver once this has resolved.
   * @returns undefined if there is no such webhook
   */
  async change(tenantId: string, id: string, patch: WebhookPatch, by: Actor): Promise<Webhook | undefined> {
    const changed = await this.catalog.change(tenantId, async (prisma, record) => {
      const data = { ...patch, updatedAt: clock.date() };
      const [row] = await prisma.webhook.updateManyAndReturn({ where: { tenantId, id }, data });
      if (!row) return undefined;
      if (patch.url !== undefined || patch.enabled === false)
        await transactionOf(prisma).query(MOVE, [tenantId, id, row.url]);
      await record(recordOf('webhook.update', row, by));
      return webhookOf(row);
    });
    if (changed) await untilRequestsEnd(this.database, [tenantId, id]);
    return changed;
  }

  /**
   * Give a webhook other secrets.
   * @param next makes them of those that it has
   * @returns undefined if there is no such webhook
   */
  async rotate(
    tenantId: string,
    id: string,
    next: (before: SealedSecret) => SealedSecret,
    by: Actor,
  ): Promise<Webhook | undefined> {
    return this.catalog.change(
      tenantId,
      async (prisma, record) => {
        const before = await prisma.webhook.findUnique({ where: { tenantId_id: { tenantId, id } } });
        if (!before) return undefined;
        const data = { ...columnsOf(next(sealedOf(before))), updatedAt: clock.date() };
        const [row] = await prisma.webhook.updateManyAndReturn({ where: { tenantId, id }, data });
        if (!row) return undefined;
        await record(recordOf('webhook.rotate', row, by));
        return webhookOf(row);
      },
      // Each rotation keeps the secret that the one before has made.
      'webhooks get secrets',
    );
  }

  /** Records a test of the webhook in the audit log. */
  async noteTest(webhook: Webhook, by: Actor, status: number | null): Promise<void> {
    await this.catalog.change(webhook.tenantId, async (_, record) => {
      const target = { kind: 'webhook', name: webhook.id } as const;
      await record({ action: 'webhook.test', target, by, detail: { url: webhook.url, status } });
    });
  }

  /** Also deletes its waiting deliveries. Once this has resolved, the receiver gets nothing. @returns whether there was one */
  async remove(tenantId: string, id: string, by: Actor): Promise<boolean> {
    const isRemoved = await this.catalog.change(tenantId, async (prisma, record) => {
      // First: a transaction that accepts a task now has attached the webhook already, or does not see it any more.
      const { count } = await prisma.webhook.deleteMany({ where: { tenantId, id } });
      if (count === 0) return false;
      const transaction = transactionOf(prisma);
      await transaction.query(DELETE_IDLE, [tenantId, id]);
      await transaction.query(RETIRE_REST, [tenantId, id]);
      await record({ action: 'webhook.delete', target: { kind: 'webhook', name: id }, by });
      return true;
    });
    if (isRemoved) await untilRequestsEnd(this.database, [tenantId, id]);
    return isRemoved;
  }

  /** @param after the last event that was delivered @returns undefined if the webhook was deleted */
  async target(
    tenantId: string,
    { taskId, configId }: { taskId: string; configId: string },
    after: number,
  ): Promise<WebhookTarget | undefined> {
    const values = [tenantId, taskId, configId, after];
    const [row] = await this.database.tenantQuery<TargetRow>(tenantId, READ_TARGET, values);
    return (
      row && {
        webhookId: row.webhook_id,
        url: row.url,
        enabled: row.enabled,
        sealed: { keyId: row.key_id, nonce: row.nonce, ciphertext: row.ciphertext },
        agentId: row.agent_id,
        agentSlug: row.agent_slug,
        stateBefore: row.state_before,
      }
    );
  }
}

const recordOf = (action: AuditAction, { id, url, agents, states, enabled }: WebhookRow, by: Actor) =>
  ({ action, target: { kind: 'webhook', name: id }, by, detail: { url, agents, states, enabled } }) as const;

const webhookOf = ({ keyId: _k, nonce: _n, ciphertext: _c, mode: _m, ...row }: WebhookRow): Webhook => row;

function sealedOf({ id, keyId, nonce, ciphertext }: WebhookRow): SealedSecret {
  if (keyId !== null && nonce && ciphertext) return { keyId, nonce, ciphertext };
  throw new Error(`The webhook ${id} has no secret`);
}

const columnsOf = ({
  keyId,
  nonce,
  ciphertext,
}: SealedSecret): Pick<Prisma.WebhookUncheckedCreateInput, 'keyId' | 'nonce' | 'ciphertext'> => ({
  keyId,
  nonce: Uint8Array.from(nonce),
  ciphertext: Uint8Array.from(ciphertext),
});
