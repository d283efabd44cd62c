import type { Database } from '../connection/database.js';
import { createAliased } from './create-aliased.js';
import type { CreationBatches } from './creation-batches.js';
import { findEarlierTurn } from './message-key.js';
import { newRunJson } from './new-run-json.js';
import { newTaskRow } from './new-task-row.js';
import type { CreatedTask, NewTask } from './task-records.js';
import { TooManyWaitingError } from './too-many-waiting-error.js';

/** The outcome of a message that has made no task. */
const NO_RUN = { dispatched: false, claimed: undefined, mayUseReserved: false };

/**
 * One transaction: task, message, event 1 and a queued run; and its alias or its key, if it has one. If several creates have the
 * same key, or the same alias and previous task, one creates its task, and the others get its id.
 * @throws TooManyWaitingError, StorageFullError if there is no slot for it; nothing was written then
 * @throws ParentOverError, TooManyChildrenError if it may not be a child; nothing was written then
 * @throws LimitReachedError if there may be no push config; nothing was written then
 */
export async function createTask(
  { database, batches }: { database: Database; batches: CreationBatches },
  input: NewTask,
): Promise<CreatedTask> {
  const { tenantId, task, alias, key } = input;
  const written = newTaskRow(input);
  const row = alias ? await createAliased(database, written, alias) : await batches.create(written);
  if (row?.task_id) {
    const { task_id: taskId, content = null } = row;
    const created = taskId === task.id;
    const { dispatched, claimed, may_use_reserved: mayUseReserved } = row;
    const run = { dispatched, claimed: claimed ? newRunJson(written) : undefined, mayUseReserved };
    return { created, ...(created ? run : NO_RUN), taskId, content };
  }
  const earlier = key && (await findEarlierTurn(database, tenantId, key));
  if (!earlier) throw new TooManyWaitingError();
  return { ...earlier, created: false, ...NO_RUN };
}
