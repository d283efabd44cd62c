import { Message, Role, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { Database, Statement, Transaction } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { RUN_COLUMNS, type RunKey, runKeyOf, type RunRow } from '../dispatch/run-key.js';
import { insertStatusEvent } from '../log/insert-events.js';
import type { Crashes, PoisonedRun } from '../tasks/task-records.js';
import { statusEvent, statusNow } from '../tasks/task-row.js';
import type { RunError } from './run-error.js';

interface PoisonedRow extends RunRow {
  crash_count: number;
  context_id: string;
  error_detail: RunError | null;
}

/**
 * $1 limit $2 when the leases had run out. Locks each task and then its run, and never waits for one: heartbeats lock
 * many runs.
 */
const FIND_POISONED: Statement = {
  name: 'run-find-poisoned',
  text: `
WITH poisoned AS (
  SELECT tenant_id, id, task_id FROM runs
  WHERE state = 'running' AND lease_expires_at < $2::timestamptz AND deaths + 1 >= max_attempts
  ORDER BY lease_expires_at LIMIT $1
)
SELECT ${RUN_COLUMNS}, r.deaths + 1 AS crash_count, t.context_id, r.error_detail
FROM poisoned p, LATERAL (
  SELECT t.context_id FROM tasks t
  WHERE t.tenant_id = ${keyOfTenant('p.tenant_id')} AND t.id = p.task_id AND t.active_run_id = p.id
  FOR NO KEY UPDATE SKIP LOCKED
) t, LATERAL (
  SELECT r.* FROM runs r
  WHERE r.tenant_id = ${keyOfTenant('p.tenant_id')} AND r.id = p.id AND r.state = 'running' AND r.lease_expires_at < $2::timestamptz
  FOR NO KEY UPDATE SKIP LOCKED
) r`,
};

interface Failure extends RunKey {
  /** Status of the task, as JSON. */
  json: string;
  at: Date;
  /** The message of the status, as JSON. */
  said: string;
  reason: string;
}

const POISONED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  run_id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
  status: ['json', ({ json }) => json],
  status_at: ['timestamptz', ({ at }) => at],
  message: ['json', ({ said }) => said],
  reason: ['text', ({ reason }) => reason],
} satisfies Inputs<Failure>;

/** Run and task failed, and a dead letter. */
const FAIL_POISONED = statement(
  'run-fail-poisoned',
  { poisoned: one(POISONED) },
  ({ poisoned: p }) => `
WITH run AS (
  UPDATE runs SET state = 'failed', deaths = deaths + 1, error = ${p.reason}, finished_at = now(), lease_expires_at = NULL
  WHERE tenant_id = ${keyOfTenant(p.tenant_id)} AND id = ${p.run_id} AND attempt = ${p.attempt} AND state = 'running'
  RETURNING id, deaths
), task AS (
  UPDATE tasks t SET state = ${TaskState.TASK_STATE_FAILED}, status = ${p.status}, status_at = ${p.status_at},
    last_sequence = t.last_sequence + 1, active_run_id = NULL, stored_bytes = t.stored_bytes + t.open_bytes
  FROM run WHERE t.tenant_id = ${keyOfTenant(p.tenant_id)} AND t.id = ${p.task_id} AND t.active_run_id = run.id
  RETURNING t.id, t.context_id, t.last_sequence, t.agent_id, run.deaths
), event AS (
  ${insertStatusEvent(p.status, { tenant_id: p.tenant_id, attempt: '0', from: 'FROM task t' })}
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message) SELECT ${p.tenant_id}, t.id, t.last_sequence, ${p.message} FROM task t
), letter AS (
  INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
  SELECT ${p.tenant_id}, ${p.run_id}, t.id, t.agent_id, ${p.reason}, t.deaths FROM task t
)
SELECT last_sequence AS sequence FROM task`,
);

/**
 * Fails runs without attempts left whose lease has expired, and their tasks.
 * @param expiredAt by the clock of Postgres, from `findWork`
 * @param explain the text that callers and the dead letter get
 */
export async function failPoisonedRuns(
  database: Database,
  limit: number,
  expiredAt: string,
  explain: (crashes: Crashes) => string,
): Promise<PoisonedRun[]> {
  return database.inSystem(async (transaction) => {
    const found = await transaction.query<PoisonedRow>(FIND_POISONED, [limit, expiredAt]);
    const failed = await Promise.all(found.map((row) => failPoisonedRun(transaction, row, explain)));
    return failed.filter((run) => run !== undefined);
  });
}

/**
 * Fails a run that has used up its attempts, and its task. Undefined: its worker is back after all.
 * @param explain the text that callers and the dead letter get
 */
async function failPoisonedRun(
  transaction: Transaction,
  row: PoisonedRow,
  explain: (crashes: Crashes) => string,
): Promise<PoisonedRun | undefined> {
  const { tenant_id: tenantId, task_id: taskId, run_id: runId, context_id: contextId, attempt } = row;
  // An error of an earlier attempt is not the error of the last one.
  const lastCrash = row.error_detail?.attempt === attempt ? row.error_detail.crash : undefined;
  const reason = explain({ crashCount: row.crash_count, lastCrash });
  const message = platformMessage(taskId, contextId, reason);
  const { status, json, at } = statusNow(TaskState.TASK_STATE_FAILED, message);
  const said = JSON.stringify(Message.toJSON(message));
  const values = FAIL_POISONED.values({
    poisoned: { tenantId, taskId, runId, attempt, json, at, said, reason },
  });
  const [failed] = await transaction.query<{ sequence: number }>(FAIL_POISONED, values);
  if (!failed) return undefined;
  return {
    ...runKeyOf(row),
    event: { sequence: failed.sequence, payload: statusEvent(taskId, contextId, status) },
  };
}

const platformMessage = (taskId: string, contextId: string, text: string): Message => ({
  messageId: randomUUID(),
  taskId,
  contextId,
  role: Role.ROLE_AGENT,
  parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});
