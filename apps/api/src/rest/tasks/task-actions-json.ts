import { z } from 'zod';
import { taskSummary } from './task-summary-json.js';

export const sentAgain = taskSummary
  .extend({ again_of: z.string().describe('The task whose message was sent') })
  .meta({ id: 'SentAgain' });

export const continuation = taskSummary
  .extend({ continues: z.string().describe('The failed task that it continues') })
  .meta({ id: 'Continuation' });

export const forkBody = z
  .strictObject({
    at: z
      .int()
      .min(1)
      .optional()
      .describe('The entry after which the fork continues: `entry` of a span. Unset: the last one'),
    text: z.string().optional().describe('Another message for the turn'),
    message: z.record(z.string(), z.unknown()).optional().describe('The same as a message of A2A 1.0'),
    agent: z.string().min(1).max(200).optional().describe('Another agent: its slug or id'),
    dry_run: z.boolean().default(false).describe('Makes no task: the answer says what would be done again'),
  })
  .meta({ id: 'NewFork' });

/** What the fork may do again. */
const doneAgain = z.object({
  entry: z.int(),
  kind: z.enum(['step', 'agent', 'tool']),
  name: z.string(),
});
export const forkAnswer = z
  .object({
    task_id: z.string().nullable().describe('The fork. Null: a dry run'),
    fork_of: z.string(),
    at: z.int().describe('The last entry that the fork takes over. 0: none'),
    done_again: z
      .array(doneAgain)
      .describe(
        'Steps and calls of tools with effects after that entry, which the fork may make once more: at most 1,000',
      ),
  })
  .meta({ id: 'Fork' });

export const cancelAnswer = z.object({ task_id: z.string(), cancelled: z.literal(true) });
export const resumeAnswer = z.object({ task_id: z.string(), resumed: z.literal(true) });
export const cancelRefusal = z.object({
  task_id: z.string(),
  cancelled: z.literal(false),
  reason: z.string(),
});
