import { z } from 'zod';

/** An entry of a journal, as far as this page looks at it. */
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

/** What a journal must forget so that the turn which has failed goes on where it failed. */
export interface PointOfFailure {
  /** Positions of entries that the failure has made. */
  dropped: number[];
  /** Positions of the ends of steps that have failed for good: they become failures after which the step is tried again. */
  reopened: number[];
  /** The entry with which the turn has begun to undo its finished steps. What comes after it cannot be taken over. Unset: there is none. */
  undoneAt?: number;
  /** The task undoes the steps of a canceled one: it may go on to do so. */
  undoesCanceled?: true;
}

/**
 * Where the last turn of a failed task has failed. Finished steps, answers of models and results of tools stay.
 *
 * - A durable step that failed for good is tried again, if the code has begun no step after it. Otherwise the code went on without it.
 * - The last answer of a model is asked for again if no call of it can be made: an answer that was refused, or was cut off.
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

/** The end of a step that has failed for good, as a failure after which the step is tried again. Undefined: it is no such end. */
export function reopenedStep(value: unknown): object | undefined {
  const { data } = failedEnd.safeParse(value);
  return data && { ...data, event: 'failed', until: 0 };
}
