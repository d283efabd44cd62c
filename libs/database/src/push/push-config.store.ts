import { keyOfTenant } from '../connection/row-security.js';
import { isUuid } from '@baton/a2a';
import type { LimitName } from '@baton/config';
import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import type { Actor, NewAuditRecord } from '../audit/audit-records.js';
import type { SealedSecret } from '../catalog/catalog-records.js';
import { Database, type Statement, type Transaction, type Values } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { LimitReachedError } from '../tenants/limit-reached-error.js';
import type { PushProtocol } from './push-delivery.store.js';
import { hostOf, IS_THERE, ONE_CONFIG, REVOKE, untilRequestsEnd } from './push-lease.js';
import { PushConfigTakenError } from './push-config-taken-error.js';

/** Key of a push config. Ids are chosen by the caller, or generated. */
export interface PushConfigKey {
  tenantId: string;
  taskId: string;
  id: string;
}

/** A receiver of the events of a task, as a caller asks for it. */
export interface NewPushConfig {
  id: string;
  url: string;
  protocol: PushProtocol;
  /** Scheme of the header Authorization. */
  authScheme: string | null;
  /** Token and credentials; null = there are none. */
  sealed: SealedSecret | null;
}

/** A push config as callers see it. */
export interface PushConfig {
  id: string;
  url: string;
  authScheme: string | null;
}

/** A config for the turn that a transaction writes. */
export interface TurnPush {
  config: NewPushConfig;
  /** Maximum configs of the task; null = no limit. */
  max: number | null;
}

const LIMIT: LimitName = 'pushConfigs';
/** Writers of the task's log wait, and wake the config afterwards. $1 tenant $2 task */
const LOCK_TASK: Statement = {
  name: 'push-lock-task',
  text: `SELECT last_sequence, owner FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $2 FOR UPDATE`,
};

const PUT_CONFIG = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  id: ['text', ({ config }) => config.id],
  url: ['text', ({ config }) => config.url],
  protocol: ['text', ({ config }) => config.protocol],
  auth_scheme: ['text', ({ config }) => config.authScheme],
  key_id: ['text', ({ config }) => config.sealed?.keyId],
  nonce: ['bytea', ({ config }) => config.sealed?.nonce],
  ciphertext: ['bytea', ({ config }) => config.sealed?.ciphertext],
  after: ['int', ({ after }) => after],
  head: ['int', ({ head }) => head],
} satisfies Inputs<PutConfig>;

/** A config that is set again continues where it was, at its new receiver, as soon as the request under way has ended. */
const PUT = statement(
  'push-config-put',
  { config: one(PUT_CONFIG) },
  ({ config: c }) => `
INSERT INTO push_configs AS p (tenant_id, task_id, id, url, host, protocol, auth_scheme, key_id, nonce, ciphertext,
  delivered_sequence, head_sequence, due_at)
VALUES (${c.tenant_id}, ${c.task_id}, ${c.id}, ${c.url}, ${hostOf(c.url)}, ${c.protocol}, ${c.auth_scheme}, ${c.key_id}, ${c.nonce},
  ${c.ciphertext}, ${c.after}, ${c.head}, CASE WHEN ${c.after} < ${c.head} THEN now() END)
ON CONFLICT (tenant_id, task_id, id) DO UPDATE SET url = EXCLUDED.url, host = EXCLUDED.host, protocol = ${c.protocol},
  auth_scheme = ${c.auth_scheme}, key_id = ${c.key_id}, nonce = ${c.nonce}, ciphertext = ${c.ciphertext}, state = 'active', mode = 'each',
  head_sequence = ${c.head}, due_at = CASE WHEN p.delivered_sequence < ${c.head} THEN greatest(p.lease_until, now()) END, failures = 0,
  failing_since = NULL, last_status = NULL, last_error = NULL, ${REVOKE}
WHERE p.webhook_id IS NULL
RETURNING id`,
);

/** Configs of callers count against the limit, all of them wake. $1 tenant $2 task */
const COUNT: Statement = {
  name: 'push-config-count',
  text: `
WITH counted AS (
  SELECT count(*)::int AS total, count(*) FILTER (WHERE webhook_id IS NULL)::int AS own
  FROM push_configs WHERE tenant_id = $1 AND task_id = $2 AND ${IS_THERE}
), task AS (
  UPDATE tasks t SET push_configs = counted.total FROM counted WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = $2
)
SELECT own FROM counted`,
};

/** No worker claims it any more. $1 tenant $2 task $3 id */
const RETIRE: Statement = {
  name: 'push-config-retire',
  text: `UPDATE push_configs p SET state = 'removed', due_at = NULL, ${REVOKE}
WHERE ${ONE_CONFIG} AND webhook_id IS NULL AND ${IS_THERE} RETURNING id`,
};

const COLUMNS = 'id, url, auth_scheme AS "authScheme"';

/** $1 tenant $2 task $3 id */
const FIND: Statement = {
  name: 'push-config-find',
  text: `SELECT ${COLUMNS} FROM push_configs WHERE ${ONE_CONFIG} AND webhook_id IS NULL AND ${IS_THERE}`,
};

/** $1 tenant $2 task */
const FIND_FIRST: Statement = {
  name: 'push-config-find-first',
  text: `SELECT ${COLUMNS} FROM push_configs WHERE tenant_id = $1 AND task_id = $2 AND webhook_id IS NULL AND ${IS_THERE}
ORDER BY created_at, id LIMIT 1`,
};

/** $1 tenant $2 task $3 after this id $4 limit */
const LIST: Statement = {
  name: 'push-config-list',
  text: `SELECT ${COLUMNS} FROM push_configs WHERE tenant_id = $1 AND task_id = $2 AND id > $3 AND webhook_id IS NULL AND ${IS_THERE}
ORDER BY id LIMIT $4`,
};

/**
 * Configs of callers: the receivers of the events of a task. The values of their secrets cannot be read without the
 * master key.
 */
@Injectable()
export class PushConfigStore {
  constructor(private readonly database: Database) {}

  /**
   * Store a config of a task. It replaces the config with the same id: once this has resolved, the former receiver gets nothing. A
   * new one receives the events that follow.
   * @param by who does it; a record is written unless it is the owner of the task
   * @returns false if there is no such task
   * @throws LimitReachedError, PushConfigTakenError; nothing was written then
   */
  async put(
    { tenantId, taskId }: Pick<PushConfigKey, 'tenantId' | 'taskId'>,
    { config, max }: TurnPush,
    by: Actor,
  ): Promise<boolean> {
    const isThere = await this.change({ tenantId, taskId }, by, async (transaction, head) => {
      await putConfig(transaction, { tenantId, taskId, after: head, head, config, max });
      return { action: 'push.set', detail: { id: config.id, url: new URL(config.url).origin } };
    });
    if (isThere) await untilRequestsEnd(this.database, [tenantId, taskId, config.id]);
    return isThere;
  }

  /**
   * Delete a config. Whether there was one makes no difference. Waits for the request of a worker that is under way: once
   * this has resolved, the receiver gets nothing.
   * @param by who does it; a record is written unless it is the owner of the task
   * @returns false if there is no such task
   */
  async delete({ tenantId, taskId, id }: PushConfigKey, by: Actor): Promise<boolean> {
    const isThere = await this.change({ tenantId, taskId }, by, async (transaction) => {
      const deleted = await transaction.query(RETIRE, [tenantId, taskId, id]);
      if (deleted.length === 0) return undefined;
      await transaction.query(COUNT, [tenantId, taskId]);
      return { action: 'push.delete', detail: { id } };
    });
    if (isThere) await untilRequestsEnd(this.database, [tenantId, taskId, id]);
    return isThere;
  }

  /** @param key.id empty = the config that the task had first */
  async find({ tenantId, taskId, id }: PushConfigKey): Promise<PushConfig | undefined> {
    const [row] = await (id === ''
      ? this.read(tenantId, FIND_FIRST, [tenantId, taskId])
      : this.read(tenantId, FIND, [tenantId, taskId, id]));
    return row;
  }

  /** By id. @param after the last one of the page before; empty = from the first */
  async list(tenantId: string, taskId: string, after: string, limit: number): Promise<PushConfig[]> {
    return this.read(tenantId, LIST, [tenantId, taskId, after, limit]);
  }

  private read(tenantId: string, statement: Statement, values: Values): Promise<PushConfig[]> {
    return this.database.tenantQuery<PushConfig & QueryResultRow>(tenantId, statement, values);
  }

  /** Changes the configs of a task under a lock. @param work returns what to record, if it has changed something */
  private async change(
    { tenantId, taskId }: Pick<PushConfigKey, 'tenantId' | 'taskId'>,
    by: Actor,
    work: (
      transaction: Transaction,
      head: number,
    ) => Promise<Pick<NewAuditRecord, 'action' | 'detail'> | undefined>,
  ): Promise<boolean> {
    if (!isUuid(taskId)) return false;
    return this.database.inTenant(tenantId, async (transaction) => {
      const values = [tenantId, taskId];
      const [task] = await transaction.query<{ last_sequence: number; owner: string | null }>(
        LOCK_TASK,
        values,
      );
      if (!task) return false;
      const done = await work(transaction, task.last_sequence);
      if (done && task.owner !== by.key) {
        const detail = { ...done.detail, owner: task.owner };
        await transaction.record({ ...done, detail, target: { kind: 'task', name: taskId }, by });
      }
      return true;
    });
  }
}

interface PutConfig extends TurnPush {
  tenantId: string;
  taskId: string;
  /** A new config gets the events after this sequence. */
  after: number;
  /** Head of the log. */
  head: number;
}

/**
 * Stores a config in a transaction that has locked or written the task.
 * @throws LimitReachedError, PushConfigTakenError; the transaction must roll back then
 */
export async function putConfig(transaction: Pick<Transaction, 'query'>, config: PutConfig): Promise<void> {
  const { tenantId, taskId, max } = config;
  const { id } = config.config;
  const put = await transaction.query(PUT, PUT.values({ config }));
  if (put.length === 0) throw new PushConfigTakenError(`Another config has the id ${id}`);
  const [counted] = await transaction.query<{ own: number }>(COUNT, [tenantId, taskId]);
  if (max !== null && (counted?.own ?? 0) > max) throw new LimitReachedError(LIMIT, max);
}
