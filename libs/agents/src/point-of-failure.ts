import { z } from 'zod';

/** The part of a journal entry that this file reads. */
interface Outlined {
  position: number;
  runId: string;
  kind: string | null;
  event: string | null;
  execution: number | null;
  id: number | null;
  hasError: boolean;
  hasCalls: boolean;
  isCanceled: boolean;
}

/** The entries that a journal must lose so that a failed turn continues where it failed. */
export interface PointOfFailure {
  /** Positions of entries about the failure. */
  dropped: number[];
  /** Positions of the ends of permanently failed steps: they become failures after which the step is tried again. */
  reopened: number[];
  /**
   * The entry with which the turn has begun to undo its finished steps. Later entries cannot be taken over. Unset: there is no such
   * entry.
   */
  undoneAt?: number;
  /** The task undoes the steps of a canceled task, and may continue to do so. */
  undoesCanceled?: true;
}

/**
 * Where the last turn of a failed task has failed. Finished steps, answers of models and results of tools stay.
 *
 * - A permanently failed step is tried again, if the code has begun no step after it. Otherwise the code has continued without it.
 * - The last model call is made again if no tool call of its answer can be made: the answer was refused, or cut off.
 * @param journal all entries of the task's journal, oldest first
 * @param runId of the last turn
 */
export function pointOfFailure(journal: readonly Outlined[], runId: string): PointOfFailure {
  const own = journal.filter((entry) => entry.runId === runId);
  const undoneAt = own.find(({ event }) => event === 'compensating')?.position;
  if (undoneAt !== undefined && own.some(({ isCanceled }) => isCanceled)) {
    return { dropped: [], reopened: failedCompensations(own, undoneAt), undoneAt, undoesCanceled: true };
  }
  return {
    dropped: refusedAnswers(own),
    reopened: failedSteps(own),
    ...(undoneAt !== undefined && { undoneAt }),
  };
}

function failedSteps(own: readonly Outlined[]): number[] {
  const begun = new Set<string>();
  let lastBegin = 0;
  for (const { event, execution, id, position } of own) {
    const step = `${execution} ${id}`;
    // A step that is tried again begins again.
    if (event !== 'begun' || begun.has(step)) continue;
    begun.add(step);
    lastBegin = position;
  }
  const isFailure = ({ event, hasError, position }: Outlined): boolean =>
    event === 'ended' && hasError && position > lastBegin;
  return own.filter(isFailure).map(({ position }) => position);
}

/** Each compensation is tried, also after a failed one. */
const failedCompensations = (own: readonly Outlined[], undoneAt: number): number[] =>
  own
    .filter(({ event, hasError, position }) => event === 'ended' && hasError && position > undoneAt)
    .map(({ position }) => position);

function refusedAnswers(own: readonly Outlined[]): number[] {
  const refused: number[] = [];
  for (const entry of own.toReversed()) {
    const isRefused =
      entry.kind === 'correction' || (entry.kind === 'step' && entry.event === null && !entry.hasCalls);
    if (isRefused) refused.unshift(entry.position);
    // Its tokens were used.
    else if (entry.kind !== 'failed-call') break;
  }
  return refused;
}

const failedEnd = z.looseObject({ event: z.literal('ended'), error: z.unknown() });

/** The end of a permanently failed step, as a failure after which the step is tried again. Undefined: it is another entry. */
export function reopenedStep(value: unknown): object | undefined {
  const { data } = failedEnd.safeParse(value);
  return data && { ...data, event: 'failed', until: 0 };
}
