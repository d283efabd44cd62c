import type { RunErrorRecord, RunRecord } from '@baton/tasks';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';

export const runError = z
  .object({
    run_id: z.string(),
    attempt: z.int(),
    at: timeSchema,
    message: z.string(),
    stack: z.string().nullable().optional().describe('For tokens that may change agents'),
    output: z.array(z.string()).optional().describe('The last lines of the console, for the same tokens'),
  })
  .meta({ id: 'RunError' });

export const runAnswer = z
  .object({
    run_id: z.string(),
    state: z.enum(['queued', 'running', 'suspended', 'succeeded', 'failed', 'canceled']),
    attempt: z.int().describe('How often a worker has claimed it'),
    crashes: z.int().describe('Attempts that ended with their worker'),
    worker_id: z.string().nullable().describe('The worker that has it, or had it last'),
    start_event: z.int().describe('The event with which its turn was accepted'),
    created_at: timeSchema,
    not_before: timeSchema.nullable().describe('It waits until then'),
    finished_at: timeSchema.nullable(),
  })
  .meta({ id: 'Run' });

export const encodeRun = (run: RunRecord): z.infer<typeof runAnswer> => ({
  run_id: run.runId,
  state: run.state,
  attempt: run.attempt,
  crashes: run.crashes,
  worker_id: run.workerId,
  start_event: run.startSequence,
  created_at: run.createdAt.toISOString(),
  not_before: run.notBefore?.toISOString() ?? null,
  finished_at: run.finishedAt?.toISOString() ?? null,
});

/**
 * An error in an agent's code. Stack and console are only for callers who may change agents, because they show the
 * code.
 */
export const encodeRunError = (
  { runId, attempt, at, message, stack, output = [] }: RunErrorRecord,
  isAuthor: boolean,
): z.infer<typeof runError> => ({
  run_id: runId,
  attempt,
  at,
  message,
  ...(isAuthor && { stack: stack ?? null, output }),
});
