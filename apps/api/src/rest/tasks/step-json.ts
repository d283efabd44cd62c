import type { StepRecord } from '@baton/tasks';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';

export const unknownOutcome = z
  .enum(['repeated', 'verified', 'asked', 'failed'])
  .optional()
  .describe(
    'Of a step whose process died while it ran: what was done about the unknown outcome. `verified`: the code has looked. `asked`: a ' +
      'person has answered',
  );

export const step = z
  .object({
    name: z.string(),
    kind: z.enum(['run', 'sleep', 'input', 'agent', 'patch', 'model', 'state', 'tool']),
    state: z
      .enum(['running', 'waiting', 'succeeded', 'failed', 'stopped'])
      .describe('`stopped`: the task ended before the step did'),
    attempts: z.int(),
    started_at: timeSchema,
    ended_at: timeSchema.nullable(),
    error: z.string().nullable(),
    unknown_outcome: unknownOutcome,
  })
  .meta({ id: 'Step' });

/**
 * The durable steps of a task. They show the code, so they are for the same callers as a stack.
 * @param hasEnded whether the task has ended: nothing of it runs or waits then
 */
export const encodeSteps = (steps: readonly StepRecord[], hasEnded: boolean): z.infer<typeof step>[] =>
  steps.map(({ name, kind, state, attempts, startedAt, endedAt, error, unknownOutcome: outcome }) => ({
    name,
    kind: kind as z.infer<typeof step>['kind'],
    state: hasEnded && (state === 'running' || state === 'waiting') ? 'stopped' : state,
    attempts,
    started_at: startedAt,
    ended_at: endedAt,
    error,
    ...(outcome && { unknown_outcome: outcome }),
  }));
