import { type Agent, type Task, runRetry } from '@baton/a2a';
import type { Place, TaskStore } from '@baton/database';
import type { RunJob } from '@baton/messaging';
import { v7 as uuid } from 'uuid';

/** What it takes to make a task outside a call. */
export interface TaskMaker {
  tasks: Pick<TaskStore, 'create' | 'get'>;
  /** How often a run is tried whose agent does not say it. */
  maxAttempts: number;
  /** Give the new run to the queue if it has a place. Must not reject. */
  hand: (run: RunJob, dispatched: boolean) => Promise<void>;
}

/** A task that may be there already: whoever makes it gives it the same id. */
export interface OneTask {
  tenantId: string;
  agent: Agent;
  task: Task;
  extensions?: readonly string[];
  place?: Place | undefined;
}

/**
 * Make the task unless it is there. Somebody else may make it at the same time: then it is there, and all is well.
 * @throws TooManyWaitingError, StorageFullError if there is no place for it
 */
export async function createOnce({ tasks, maxAttempts, hand }: TaskMaker, one: OneTask): Promise<void> {
  const { tenantId, agent, task, extensions = [], place } = one;
  const isThere = async (): Promise<boolean> =>
    (await tasks.get(tenantId, task.id, { historyLength: 0, artifacts: false })) !== undefined;
  if (await isThere()) return;
  const runId = uuid();
  const retry = runRetry(agent.definition.retry, maxAttempts);
  try {
    const { dispatched } = await tasks.create({
      ...{ tenantId, agentId: agent.id, runId, task, extensions, retry },
      ...(place && { place }),
    });
    await hand({ tenantId, taskId: task.id, runId, attempt: 0 }, dispatched);
  } catch (error) {
    if (!(await isThere())) throw error;
  }
}
