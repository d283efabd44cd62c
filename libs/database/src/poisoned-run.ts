import { Message, Role, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { Transaction } from './database.js';
import type { PoisonedRun } from './records.js';
import { FAIL_POISONED, type PoisonedRow, runOf } from './run-sql.js';
import { statusEvent, statusNow } from './task-row.js';

/** Fail a run that has used up its attempts, and its task. Undefined: its worker is back after all. */
export async function failPoisonedRun(
  transaction: Transaction,
  row: PoisonedRow,
): Promise<PoisonedRun | undefined> {
  const { tenant_id: tenantId, task_id: taskId, run_id: runId, context_id: contextId, attempt, deaths } = row;
  const reason =
    deaths === 1
      ? 'Given up after one attempt: the worker died or stopped answering'
      : `Given up after ${deaths.toString()} attempts: each time the worker died or stopped answering`;
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
