import type { Statement } from '../connection/database.js';
import type { MessageKey } from './records.js';

export interface KnownRow {
  task_id: string;
  content: Buffer | null;
}

/** What is replaced when a key is used anew. */
const TURN = ['content', 'task_id', 'sequence', 'expires_at'];

/**
 * A CTE `known`: the turn that a key names from now on. It is this one if the key is new, has expired or names
 * the task that is gone. Messages with the same key wait here for each other.
 * @param first number of the parameter with the key; its `keyValues` follow
 * @param sequence SQL of the sequence of the turn
 * @param when SQL that a turn which may be refused comes from
 */
export function knownCte(first: number, sequence: string, when = ''): string {
  const [key, content, hours, gone] = [0, 1, 2, 3].map((offset) => `$${first + offset}`);
  const isFree = `k.expires_at <= now() OR k.task_id = ${gone}::uuid`;
  const taken = TURN.map(
    (column) => `${column} = CASE WHEN ${isFree} THEN EXCLUDED.${column} ELSE k.${column} END`,
  );
  return `known AS (
  INSERT INTO message_keys AS k (tenant_id, key, content, task_id, sequence, expires_at)
  SELECT $1::uuid, ${key}::bytea, ${content}::bytea, $2::uuid, ${sequence}, now() + ${hours}::int * interval '1 hour' ${when}
  ON CONFLICT (tenant_id, key) DO UPDATE SET ${taken.join(', ')}
  RETURNING k.task_id, k.sequence, k.content
)`;
}

/** The values of `knownCte`, in order. */
export const keyValues = ({ hash, content, hours, goneTaskId }: MessageKey): unknown[] => [
  hash,
  content,
  hours,
  goneTaskId,
];

/** $1 tenant $2 key $3 the task that is gone, NULL = none */
export const FIND_KEY: Statement = {
  name: 'message-key-find',
  text: `
SELECT task_id, content FROM message_keys
WHERE tenant_id = $1 AND key = $2 AND expires_at > now() AND task_id IS DISTINCT FROM $3::uuid`,
};
