import { Message, Role, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { Transaction } from '../connection/database.js';
import { runOf } from '../dispatch/run-key.js';
import type { PoisonedRun } from '../tasks/records.js';
import { statusEvent, statusNow } from '../tasks/task-row.js';
import { FAIL_POISONED, type PoisonedRow } from './run-sql.js';

/** Fail a run that has used up its attempts, and its task. Undefined: its worker is back after all. */
export async function failPoisonedRun(
  transaction: Transaction,
  row: PoisonedRow,
): Promise<PoisonedRun | undefined> {
  const { tenant_id: tenantId, task_id: taskId, run_id: runId, context_id: contextId, attempt } = row;
  const reason = reasonOf(row);
  const message = platformMessage(taskId, contextId, reason);
  const { status, json, at } = statusNow(TaskState.TASK_STATE_FAILED, message);
  const said = JSON.stringify(Message.toJSON(message));
  const values = [tenantId, taskId, runId, attempt, json, at, said, reason];
  const [failed] = await transaction.query<{ sequence: number }>(FAIL_POISONED, values);
  if (!failed) return undefined;
  return {
    ...runOf(row),
    event: { sequence: failed.sequence, payload: statusEvent(taskId, contextId, status) },
  };
}

/** Why its last attempt died is known if the worker has outlived it. */
function reasonOf({ crash_count: crashCount, attempt, error_detail: error }: PoisonedRow): string {
  const givenUp =
    crashCount === 1 ? 'Given up after one attempt' : `Given up after ${crashCount.toString()} attempts`;
  if (error?.crash && error.attempt === attempt) {
    return crashCount === 1 ? `${givenUp}: ${error.crash}` : `${givenUp}. The last one: ${error.crash}`;
  }
  const died = 'the worker died or stopped answering';
  return crashCount === 1 ? `${givenUp}: ${died}` : `${givenUp}: each time ${died}`;
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
