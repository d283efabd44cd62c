import { z } from 'zod';
import type { StepsToUndo } from './steps-to-undo.js';

const begunEntry = z.object({
  error: z.looseObject({ name: z.string(), message: z.string() }),
  steps: z.array(z.int()),
});

/**
 * The entry with which a task begins to undo the steps of a canceled one. It is about no step, as that of a task whose code has thrown.
 * @param begun the entry of a task that was canceled while it undid its steps itself
 */
export function undoEntry({ execution, steps, unknown }: StepsToUndo, begun: unknown, at: string): object {
  const { data } = begunEntry.safeParse(begun);
  return {
    event: 'compensating',
    execution,
    id: 0,
    at,
    head: -1,
    error: data?.error ?? { name: 'TaskCanceled', message: 'the task was canceled' },
    steps: data?.steps ?? steps,
    canceled: true,
    unknown,
  };
}
