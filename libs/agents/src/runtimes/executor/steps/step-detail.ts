import { parseJsonBody } from '@baton/a2a';
import { z } from 'zod';

/** What a durable step of an agent in code has returned. */
export interface StepDetail {
  kind: 'step';
  /** Any JSON value. Undefined: nothing. */
  result: unknown;
  /** Why it failed. Null: it has not. */
  error: string | null;
}

const ended = z.object({
  execution: z.number(),
  event: z.literal('ended'),
  result: z.string().optional(),
  error: z.object({ name: z.string(), message: z.string() }).optional(),
});

/**
 * The result of a durable step, from its last entry in the journal of an executor's task.
 * @returns undefined for another entry
 */
export function stepDetail(entry: unknown): StepDetail | undefined {
  const step = ended.safeParse(entry).data;
  if (!step) return undefined;
  const { result, error } = step;
  return {
    kind: 'step',
    result: result === undefined ? undefined : parsed(result),
    error: error ? `${error.name}: ${error.message}` : null,
  };
}

/** A journal that came with an import may have any text. A text that is not JSON, or too deep to be read, stays a text. */
function parsed(json: string): unknown {
  try {
    return parseJsonBody(json);
  } catch {
    return json;
  }
}
