import { Message, Role, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { Transaction } from '../connection/database.js';
import { runKeyOf } from '../dispatch/run-key.js';
import type { Crashes, PoisonedRun } from '../tasks/records.js';
import { statusEvent, statusNow } from '../tasks/task-row.js';
import { FAIL_POISONED, type PoisonedRow } from './run-sql.js';

/**
 * Fails a run that has used up its attempts, and its task. Undefined: its worker is back after all.
 * @param explain the text that callers and the dead letter get
 */
export async function failPoisonedRun(
  transaction: Transaction,
  row: PoisonedRow,
  explain: (crashes: Crashes) => string,
): Promise<PoisonedRun | undefined> {
  const { tenant_id: tenantId, task_id: taskId, run_id: runId, context_id: contextId, attempt } = row;
  // An error of an earlier attempt says nothing about the last one.
  const lastCrash = row.error_detail?.attempt === attempt ? row.error_detail.crash : undefined;
  const reason = explain({ crashCount: row.crash_count, lastCrash });
  const message = platformMessage(taskId, contextId, reason);
  const { status, json, at } = statusNow(TaskState.TASK_STATE_FAILED, message);
  const said = JSON.stringify(Message.toJSON(message));
  const values = [tenantId, taskId, runId, attempt, json, at, said, reason];
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
