import { type Agent, type Task, runRetry } from '@baton/a2a';
import type { RunQuota, TaskStore } from '@baton/database';
import type { RunJob } from '@baton/messaging';
import { v7 as uuid } from 'uuid';

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
