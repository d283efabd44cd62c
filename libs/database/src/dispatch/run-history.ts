import { isUuid } from '@baton/a2a';
import { z } from 'zod';
import type { Database, Statement } from '../connection/database.js';
import { isRunOf } from './run-conditions.js';

/** Entries of a run's history that are kept: the newest. */
const MAX_ENTRIES = 100;

/** How an attempt ended without the end of its run. */
const ENDS = ['crashed', 'suspended', 'parked', 'returned'] as const;

const event = z.union([
  z.object({ sent: z.literal(true), at: z.coerce.date(), by: z.string() }),
  z.object({ claimed: z.number(), at: z.coerce.date(), worker: z.string() }),
  z.object({ ended: z.number(), at: z.coerce.date(), why: z.enum(ENDS) }),
  z.object({ woken: z.literal(true), at: z.coerce.date() }),
]);

/**
 * What happened to a run beside its first claim and its end: a principal sent its message, an attempt ended (`crashed`: with its worker.
 * `suspended`: it waits for other tasks or a time. `parked`: it waits for other code. `returned`: its worker was stopped), the run was
 * woken, or a worker claimed it again.
 * The first claim is not in it, and neither is the sender of a task's first message, its owner: most runs have no history.
 */
export type RunEvent = z.output<typeof event>;

/** SQL: the history of a new run whose message this principal has sent. Null: none. */
export const historyFrom = (sender: string): string =>
  `CASE WHEN ${sender}::text IS NOT NULL THEN jsonb_build_array(jsonb_build_object('sent', true, 'at', clock_timestamp(), 'by', ${sender}::text)) END`;

/** SQL: the history of the run `r` with more entries. The first entry stays: it may name the sender. */
const withEntries = (...entries: string[]): string => `
    (CASE WHEN jsonb_array_length(r.history) >= ${MAX_ENTRIES} THEN r.history${' - 1'.repeat(entries.length)} ELSE coalesce(r.history, '[]') END
      || jsonb_build_array(${entries.join(', ')}))`;

/** SQL: an entry. Without a time, it is of this moment. `clock_timestamp()`: a transaction may have begun long ago. */
const entryOf = (members: string, at = 'clock_timestamp()'): string =>
  `jsonb_build_object('at', ${at}, ${members})`;

/** SQL: the history of the run `r` after the end of its attempt. */
export const afterEnd = (why: (typeof ENDS)[number]): string =>
  withEntries(entryOf(`'ended', r.attempt, 'why', '${why}'`));

/** SQL: the columns of a suspended run `r` that is queued again. It waits for a slot like a new one, in the order of its first acceptance. */
export const WOKEN = `state = 'queued', waits_for = NULL, enqueued_at = NULL, not_before = NULL, history = ${withEntries(entryOf(`'woken', true`))}`;

/** SQL: the history of the run `r` that had ended with a question, after it was woken because no answer has come in time. */
export const afterQuestion = (): string =>
  withEntries(entryOf(`'ended', r.attempt, 'why', 'suspended'`, 'r.finished_at'), entryOf(`'woken', true`));

/** SQL: the history of the run `r` after this worker has claimed it, unless that is its first attempt. */
export const afterClaim = (worker: string): string =>
  `CASE WHEN r.attempt > 0 AND r.state = 'queued' THEN ${withEntries(entryOf(`'claimed', r.attempt + 1, 'worker', ${worker}`))} ELSE r.history END`;

/** $1 tenant $2 task */
const READ: Statement = {
  name: 'run-histories',
  text: `
SELECT r.id, r.history FROM runs r
WHERE ${isRunOf('r', '$1', '$2')} AND r.history IS NOT NULL
ORDER BY r.created_at DESC, r.id DESC LIMIT 100`,
};

/** The histories of the newest runs of a task, by the ids of the runs. Runs without one are not among them. */
export async function runHistories(
  database: Database,
  tenantId: string,
  taskId: string,
): Promise<Map<string, RunEvent[]>> {
  if (!isUuid(taskId)) return new Map();
  const rows = await database.tenantQuery<{ id: string; history: unknown }>(tenantId, READ, [
    tenantId,
    taskId,
  ]);
  // Those that came with an import may be anything.
  return new Map(
    rows.map(({ id, history }) => [
      id,
      (Array.isArray(history) ? history : []).flatMap((each) => event.safeParse(each).data ?? []),
    ]),
  );
}
