import type { Database } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import type { EarlierTurn, MessageKey } from './task-records.js';

// A message with a key is accepted once: the key names the turn that the first of such messages has begun (docs/calling/idempotency.md).

/** The key of a message. */
export const KEY = {
  hash: ['bytea', ({ hash }) => hash],
  content: ['bytea', ({ content }) => content],
  hours: ['int', ({ hours }) => hours],
  gone_task_id: ['uuid', ({ goneTaskId }) => goneTaskId],
  earlier_hash: ['bytea', ({ earlierHash }) => earlierHash],
} satisfies Inputs<MessageKey>;

/**
 * SQL of what a key names from now on: another turn if it has expired or names the task that is gone, else what it has named before.
 * @param gone SQL of the task that is gone
 */
export function reuseKey(gone: string): string {
  const isFree = `k.expires_at <= now() OR k.task_id = ${gone}`;
  const columns = ['content', 'task_id', 'sequence', 'expires_at'];
  return columns
    .map((column) => `${column} = CASE WHEN ${isFree} THEN EXCLUDED.${column} ELSE k.${column} END`)
    .join(', ');
}

/**
 * CTEs `before` and `known`. `known` is the turn that a key names from now on. It is this one if the key is new, has
 * expired or names the task that is gone. If an earlier release has stored the message (`before`), it is that turn. Concurrent
 * messages with the same key wait here for each other.
 * @param turn SQL of the turn of the message, and of what a turn which may be refused comes from
 */
export function knownCte(
  key: Record<keyof typeof KEY, string>,
  turn: { tenant_id: string; task_id: string; sequence: string; from?: string },
): string {
  const orBefore = (column: string, now: string): string =>
    `coalesce((SELECT ${column} FROM before), ${now})`;
  return `before AS (
  SELECT task_id, sequence, content FROM message_keys
  WHERE tenant_id = ${turn.tenant_id} AND key = ${key.earlier_hash} AND expires_at > now() AND task_id IS DISTINCT FROM ${key.gone_task_id}
), known AS (
  INSERT INTO message_keys AS k (tenant_id, key, content, task_id, sequence, expires_at)
  SELECT ${turn.tenant_id}, ${key.hash}, ${orBefore('content', key.content)}, ${orBefore('task_id', turn.task_id)},
    ${orBefore('sequence', turn.sequence)}, now() + ${key.hours} * interval '1 hour' ${turn.from ?? ''}
  ON CONFLICT (tenant_id, key) DO UPDATE SET ${reuseKey(key.gone_task_id)}
  RETURNING k.task_id, k.sequence, k.content
)`;
}

interface KnownRow {
  task_id: string;
  content: Buffer | null;
}

const { hash, gone_task_id, earlier_hash } = KEY;

const FIND_KEY = statement(
  'message-key-find',
  { tenant: one({ id: ['uuid', (id: string) => id] }), key: one({ hash, gone_task_id, earlier_hash }) },
  ({ tenant, key }) => `
SELECT task_id, content FROM message_keys
WHERE tenant_id = ${tenant.id} AND key IN (${key.hash}, ${key.earlier_hash}) AND expires_at > now()
  AND task_id IS DISTINCT FROM ${key.gone_task_id}
ORDER BY key = ${key.hash} DESC LIMIT 1`,
);

/** The turn that a message with that key has begun. */
export async function findEarlierTurn(
  database: Database,
  tenantId: string,
  key: MessageKey,
): Promise<EarlierTurn | undefined> {
  const values = FIND_KEY.values({ tenant: tenantId, key });
  const [row] = await database.tenantQuery<KnownRow>(tenantId, FIND_KEY, values);
  return row && { taskId: row.task_id, content: row.content };
}
