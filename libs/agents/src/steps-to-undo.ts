/** The part of a journal entry that this file reads. */
interface JournalOutline {
  position: number;
  runId: string;
  event: string | null;
  execution: number | null;
  id: number | null;
  hasError: boolean;
  compensates: boolean;
}

/** What a canceled task leaves to undo. */
export interface StepsToUndo {
  /** The run that has written last: the code is called with its message. */
  runId: string;
  execution: number;
  /** Finished steps with `compensate`, the one that ended last first. */
  steps: number[];
  /** Steps with `compensate` that were begun, and have not ended. */
  unknown: number[];
  /** The entry with which the task has begun to undo its steps itself. It lists them. */
  begunAt?: number;
}

/**
 * The steps of a canceled task that another task undoes: those of its last execution.
 * @param journal all entries of its journal, oldest first
 * @returns undefined: there are none
 */
export function stepsToUndo(journal: readonly JournalOutline[]): StepsToUndo | undefined {
  const last = journal.findLast(({ execution }) => execution !== null);
  if (last?.execution == null) return undefined;
  const { runId, execution } = last;
  const own = journal.filter((entry) => entry.execution === execution);
  const begunAt = own.findLast(({ event }) => event === 'compensating')?.position;
  if (begunAt !== undefined) return { runId, execution, steps: [], unknown: [], begunAt };
  const open = new Set<number>();
  const ended: number[] = [];
  for (const { id, event, hasError, compensates } of own) {
    if (id === null) continue;
    if (event === 'begun' && compensates) open.add(id);
    if (event === 'ended' && open.delete(id) && !hasError) ended.unshift(id);
  }
  if (ended.length + open.size === 0) return undefined;
  return { runId, execution, steps: ended, unknown: [...open] };
}
