import { detailsToJson, isTerminal, isUuid, Message, TaskState } from '@baton/a2a';
import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { quotaCte } from '../dispatch/quota.js';
import { historyFrom } from '../dispatch/run-history.js';
import { insertStatusEvent } from '../log/insert-events.js';
import { sizeOf } from '../tenants/usage-sql.js';
import { acceptTurns } from './accept-turns.js';
import type { ChangedRow } from './changed-row.js';
import { findEarlierTurn, KEY, knownCte } from './message-key.js';
import { QUOTA } from './quota-inputs.js';
import type { NextTurn, NextTurnResult } from './task-records.js';
import { RETRY, retryColumns } from './retry-policy.js';
import { INTERRUPTED_STATES, type NewStatus, statusNow } from './task-row.js';
import { TooManyWaitingError } from './too-many-waiting-error.js';

type ContinuedRow = ChangedRow & {
  dispatched: boolean;
  may_use_reserved: boolean;
  refused: boolean;
  /** The answer came after the task continued without one. Null: the task did not. */
  is_late: boolean | null;
};

/** A turn as it is written. */
interface NewTurn {
  input: NextTurn;
  submitted: NewStatus;
  /** As JSON. */
  message: string;
  /** The request without its message, as JSON. */
  request: string | undefined;
}

const TURN = {
  tenant_id: ['uuid', ({ input }) => input.tenantId],
  task_id: ['uuid', ({ input }) => input.taskId],
  agent_id: ['text', ({ input }) => input.agentId],
  run_id: ['uuid', ({ input }) => input.runId],
  status: ['json', ({ submitted }) => submitted.json],
  status_at: ['timestamptz', ({ submitted }) => submitted.at],
  message: ['json', ({ message }) => message],
  request: ['json', ({ request }) => request],
  extensions: ['text[]', ({ input }) => input.extensions],
  traceparent: ['text', ({ input }) => input.traceparent],
  sender: ['text', ({ input }) => input.sender],
} satisfies Inputs<NewTurn>;

const TAKES_A_TURN = `held.state IN (${INTERRUPTED_STATES}) AND held.active_run_id IS NULL`;

/**
 * `IS TRUE` hides the agent from the planner: no index has it with the task, and Postgres would take the index of conversations.
 * @param known CTEs with the turn that the message key names; empty without a key
 * @param from the tables of the update, and its further condition: with a key, that the key names this turn
 */
const nextTurn = (
  turn: Record<keyof typeof TURN, string>,
  quota: Record<keyof typeof QUOTA, string>,
  known: string,
  from: { tables: string; condition: string },
): string => `
WITH held AS (
  SELECT state, active_run_id, last_sequence, wakes_run_id FROM tasks
  WHERE tenant_id = ${keyOfTenant(turn.tenant_id)} AND id = ${turn.task_id} AND (agent_id = ${turn.agent_id}) IS TRUE FOR UPDATE
), ${quotaCte({ ...quota, tenant_id: turn.tenant_id })}, ${known} task AS (
  UPDATE tasks t SET state = ${TaskState.TASK_STATE_SUBMITTED}, status = '{}', status_at = ${turn.status_at},
    last_sequence = t.last_sequence + 1, active_run_id = ${turn.run_id}, attempt = 0, outcome = NULL,
    wakes_at = NULL, wakes_run_id = NULL,
    stored_bytes = t.stored_bytes + ${sizeOf(turn.message)} + coalesce(${sizeOf(turn.request)}, 0), open_bytes = 0
  FROM ${from.tables}
  WHERE t.tenant_id = ${keyOfTenant(turn.tenant_id)} AND t.id = ${turn.task_id} AND ${TAKES_A_TURN} AND NOT quota.refused ${from.condition}
  RETURNING t.id, t.context_id, t.last_sequence
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message, request)
  SELECT ${turn.tenant_id}, t.id, t.last_sequence, ${turn.message}, ${turn.request} FROM task t
), event AS (
  ${insertStatusEvent(turn.status, { tenant_id: turn.tenant_id, attempt: '0', from: 'FROM task t' })}
), run AS (
  INSERT INTO runs (tenant_id, id, task_id, state, start_sequence, extensions, traceparent, history, enqueued_at, ${RETRY})
  SELECT ${turn.tenant_id}, ${turn.run_id}, t.id, 'queued', t.last_sequence, ${turn.extensions}, ${turn.traceparent}, ${historyFrom(turn.sender)},
    CASE WHEN quota.dispatched THEN now() END, ${retryColumns(quota.retry)}
  FROM task t, quota
)
SELECT held.state, held.active_run_id = held.wakes_run_id AS is_late, task.last_sequence AS sequence, quota.dispatched, quota.may_use_reserved, quota.refused AND ${TAKES_A_TURN} AS refused
FROM held CROSS JOIN quota LEFT JOIN task ON true`;

const CONTINUE = statement('task-continue-3', { turn: one(TURN), quota: one(QUOTA) }, ({ turn, quota }) =>
  nextTurn(turn, quota, '', { tables: 'held, quota', condition: '' }),
);

const CONTINUE_KEYED = statement(
  'task-continue-keyed-3',
  { turn: one(TURN), quota: one(QUOTA), key: one(KEY) },
  ({ turn, quota, key }) => {
    const known = knownCte(key, {
      ...turn,
      sequence: 'held.last_sequence + 1',
      from: `FROM held, quota WHERE ${TAKES_A_TURN} AND NOT quota.refused`,
    });
    return nextTurn(turn, quota, `${known},`, {
      tables: 'held, quota, known',
      condition: `AND known.task_id = ${turn.task_id} AND known.sequence = held.last_sequence + 1`,
    });
  },
);

/**
 * One transaction: the message, a `submitted` event and a queued run, and the message's key if it has one.
 * Refused unless the task is interrupted, or if the key is known.
 * @throws TooManyWaitingError, StorageFullError if a limit is reached; ApproverError if the token may no longer approve.
 * Nothing is written then.
 */
export async function continueTask(database: Database, input: NextTurn): Promise<NextTurnResult> {
  const { tenantId, taskId, message, key, quota, details } = input;
  const { record, approvingToken, approvingIssuer, push } = input;
  if (!isUuid(taskId)) return { ok: false, reason: 'not-found' };
  const messageJson = JSON.stringify(Message.toJSON(message));
  const request = details && JSON.stringify(detailsToJson(details));
  const bytes = Buffer.byteLength(messageJson) + Buffer.byteLength(request ?? '');
  const submitted = statusNow(TaskState.TASK_STATE_SUBMITTED);
  const inputs = { turn: { input, submitted, message: messageJson, request }, quota: input };
  const [row] = await acceptTurns<ContinuedRow>(database, {
    tenantId,
    ...(key
      ? { statement: CONTINUE_KEYED, values: CONTINUE_KEYED.values({ ...inputs, key }) }
      : { statement: CONTINUE, values: CONTINUE.values(inputs) }),
    quota,
    written: (rows) =>
      rows.flatMap(({ sequence }) => (sequence === null ? [] : [{ taskId, sequence, bytes }])),
    extras: { record, approvingToken, approvingIssuer, push },
  });
  if (!row) return { ok: false, reason: 'not-found' };
  const { sequence, dispatched, may_use_reserved: mayUseReserved, refused } = row;
  if (sequence !== null) return { ok: true, sequence, dispatched, mayUseReserved };
  const earlier = key && (await findEarlierTurn(database, tenantId, key));
  if (earlier) return { ok: false, reason: 'repeated', earlier };
  if (refused) throw new TooManyWaitingError();
  if (isTerminal(row.state)) return { ok: false, reason: 'terminal' };
  return { ok: false, reason: row.is_late ? 'late' : 'busy' };
}
