import type { Task } from '@baton/a2a';

// Keys of the metadata of a task whose journal begins with that of another one. Callers and agents cannot write them.

/** It names the failed task that the task continues. */
const CONTINUES = 'baton.continues';
/** It names the task of which the task is a fork. */
const FORK = 'baton.fork';

/** It names the canceled task whose steps the task undoes. */
const UNDOES = 'baton.undoes';

/** The metadata of a task that continues a failed one. */
export const continuesMetadata = (taskId: string, runId: string) => ({ [CONTINUES]: { taskId, runId } });

/** The metadata of a fork. @param entry the last entry that it takes over */
export const forkMetadata = (taskId: string, runId: string, entry: number) => ({
  [FORK]: { taskId, runId, entry },
});

/** The metadata of a task that undoes the steps of a canceled one. */
export const undoesMetadata = (taskId: string, runId: string) => ({ [UNDOES]: { taskId, runId } });

/** Whether the journal of the task begins with where it comes from. */
export const hasOrigin = ({ metadata }: Pick<Task, 'metadata'>): boolean =>
  metadata !== undefined && (CONTINUES in metadata || FORK in metadata || UNDOES in metadata);

/** The failed task that a task continues. Undefined: it is another task. */
export const continuedBy = (task: Pick<Task, 'metadata'>): string | undefined => namedIn(task, CONTINUES);

/** The task of which a task is a fork. Undefined: it is not a fork. */
export const forkedFrom = (task: Pick<Task, 'metadata'>): string | undefined => namedIn(task, FORK);

/** The canceled task whose steps a task undoes. Undefined: it is another task. */
export const undoneBy = (task: Pick<Task, 'metadata'>): string | undefined => namedIn(task, UNDOES);

function namedIn({ metadata }: Pick<Task, 'metadata'>, key: string): string | undefined {
  const { taskId } = (metadata?.[key] ?? {}) as { taskId?: string };
  return taskId;
}
