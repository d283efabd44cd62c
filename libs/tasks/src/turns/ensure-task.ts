import { type Agent, ProtocolError, type Task, runRetry } from '@baton/a2a';
import { type RunQuota, StorageFullError, type TaskStore, TooManyWaitingError } from '@baton/database';
import type { RunJob } from '@baton/messaging';
import { v7 as uuid } from 'uuid';

/** When a caller may try again whose tenant has too many tasks waiting. */
const RETRY_SECONDS = 1;
/** Tasks are deleted once in a while. */
const FULL_RETRY_SECONDS = 60;

/** What it takes to make a task outside a call. */
export interface TaskMaker {
  tasks: Pick<TaskStore, 'create' | 'get'>;
  /** How often a run is tried whose agent does not say it. */
  maxAttempts: number;
  /** Give the new run to the queue if it has a slot. Must not reject. */
  enqueue: (run: RunJob, dispatched: boolean) => Promise<void>;
}

/** A task that may be there already: whoever makes it gives it the same id. */
export interface OneTask {
  tenantId: string;
  agent: Agent;
  task: Task;
  extensions?: readonly string[];
  quota?: RunQuota | undefined;
}

/**
 * Make the task unless it is there. Somebody else may make it at the same time: then it is there, and all is well.
 * @throws TooManyWaitingError, StorageFullError if there is no slot for it
 */
export async function ensureTask({ tasks, maxAttempts, enqueue }: TaskMaker, one: OneTask): Promise<void> {
  const { tenantId, agent, task, extensions = [], quota } = one;
  const isThere = async (): Promise<boolean> =>
    (await tasks.get(tenantId, task.id, { historyLength: 0, artifacts: false })) !== undefined;
  if (await isThere()) return;
  const runId = uuid();
  const retry = runRetry(agent.definition.retry, maxAttempts);
  try {
    const { dispatched } = await tasks.create({
      ...{ tenantId, agentId: agent.id, runId, task, extensions, retry },
      ...(quota && { quota }),
    });
    await enqueue({ tenantId, taskId: task.id, runId, attempt: 0 }, dispatched);
  } catch (error) {
    if (!(await isThere())) throw error;
  }
}

/** What a caller is told whose turn is refused a slot. */
export const explainQuota =
  ({ maxWaiting, maxStoredBytes }: RunQuota) =>
  (error: unknown): never => {
    if (error instanceof TooManyWaitingError && maxWaiting !== null) {
      throw ProtocolError.limitExceeded(
        'tasksWaiting',
        maxWaiting,
        RETRY_SECONDS,
        'send it again when fewer tasks wait for their run, or ask the operator for more',
      );
    }
    if (error instanceof StorageFullError && typeof maxStoredBytes === 'number') {
      throw ProtocolError.limitExceeded(
        'storedBytes',
        maxStoredBytes,
        FULL_RETRY_SECONDS,
        'there is room again when old tasks are deleted; ask the operator for more, or for a shorter retention',
      );
    }
    throw error;
  };
