import { isUuid } from '@baton/a2a';
import { z } from 'zod';
import type { Database, Statement } from '../connection/database.js';
import { hostOf, IS_THERE } from './push-lease.js';

/** Tries of a receiver that are kept: the newest. They are in a row that each delivery updates, so they must stay few. */
const MAX_TRIES = 10;
/** Characters of the error of a try. */
const MAX_ERROR = 200;
/** Receivers of a task that are read: the oldest. */
const MAX_RECEIVERS = 100;

const pushExchange = z.object({
  sequence: z.number(),
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  bytes: z.number(),
  answer: z.string().nullable(),
});

const pushTry = z.object({
  at: z.coerce.date(),
  ms: z.number().nonnegative(),
  status: z.number().nullable(),
  error: z.string().nullable(),
  exchange: pushExchange
    .nullish()
    .catch(null)
    .transform((exchange) => exchange ?? undefined),
});

/** A request to a push receiver, and the beginning of its answer. Secrets are hidden. */
export interface PushExchange {
  /** The event that it delivers, or the last one of several. */
  sequence: number;
  headers: Record<string, string>;
  /** The beginning of the body. */
  body: string;
  /** Bytes of the whole body. */
  bytes: number;
  /** The beginning of the body of the answer. Null: there was none. */
  answer: string | null;
}

/** A request to a push receiver. */
export interface PushTry {
  /** When it ended. */
  at: Date;
  ms: number;
  /** HTTP status of the answer. Null: there was none. */
  status: number | null;
  /** Null: the receiver has taken it. */
  error: string | null;
  /** Unset: nothing was sent, or an earlier release has sent it. */
  exchange?: PushExchange | undefined;
}

/** A push receiver of a task, with its newest tries. */
export interface TriedReceiver {
  configId: string;
  /** Null: a caller of the task has named it. */
  webhookId: string | null;
  /** Host and port. The path of the URL may be a secret. */
  host: string;
  /** `ended`: it has answered 410. `dead`: given up. */
  state: 'active' | 'ended' | 'dead';
  createdAt: Date;
  /** Whether it lacks events of the log. */
  isBehind: boolean;
  /** The oldest first. */
  tries: PushTry[];
}

/** SQL: the tries of the config `p` with one more. */
export const withTry = (made: { ms: string; status: string; error: string; exchange: string }): string => `
  jsonb_path_query_array(coalesce(p.tries, '[]') || jsonb_build_array(jsonb_build_object(
    'at', clock_timestamp(), 'ms', ${made.ms}::int, 'status', ${made.status}::int, 'error', left(${made.error}::text, ${MAX_ERROR}),
    'exchange', ${made.exchange}::jsonb
  )), '$[last - ${MAX_TRIES - 1} to last]')`;

/** $1 tenant $2 task */
const READ: Statement = {
  name: 'push-tries',
  text: `
SELECT p.id AS "configId", p.webhook_id AS "webhookId", CASE WHEN p.host = '' THEN ${hostOf('p.url')} ELSE p.host END AS host, p.state,
  p.created_at AS "createdAt", p.head_sequence > p.delivered_sequence AS "isBehind", p.tries
FROM push_configs p WHERE p.tenant_id = $1 AND p.task_id = $2 AND p.${IS_THERE}
ORDER BY p.created_at, p.id LIMIT ${MAX_RECEIVERS}`,
};

/** The push receivers of a task, the oldest first; empty if it has none. */
export async function readPushTries(
  database: Database,
  tenantId: string,
  taskId: string,
): Promise<TriedReceiver[]> {
  if (!isUuid(taskId)) return [];
  type Row = Omit<TriedReceiver, 'tries'> & { tries: unknown };
  const rows = await database.tenantQuery<Row>(tenantId, READ, [tenantId, taskId]);
  return rows.map(({ tries, host, ...receiver }) => ({
    ...receiver,
    host: host.slice(host.lastIndexOf('@') + 1),
    tries: z
      .array(pushTry)
      .catch([])
      .parse(tries ?? []),
  }));
}
