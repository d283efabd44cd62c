import { decodePageToken, encodePageToken } from '@baton/a2a';
import type { DeadLetter } from '@baton/tasks';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';
import { cutPage } from '../paging.js';
import { namesOfTask, taskNames } from '../task-names.js';

export const deadLetter = z
  .object({
    run_id: z.string(),
    ...taskNames,
    agent_id: z.string(),
    reason: z.string(),
    attempts: z.int(),
    died_at: timeSchema,
    redelivered_at: timeSchema.nullable(),
    redelivered_as: z.string().nullable().describe('The task of the last redelivery'),
  })
  .meta({ id: 'DeadLetter' });

/** The dead letter after which the page begins. Throws `invalid-params`. */
export function readLetterCursor(cursor: string | undefined) {
  const position = cursor ? decodePageToken(cursor, 'cursor') : undefined;
  return position && { diedAt: position.statusAt, runId: position.taskId };
}

/** @param found one more than the page has, if there are more */
export function pageOfLetters<T extends DeadLetter>(found: readonly T[], limit: number) {
  const { page, last } = cutPage(found, limit);
  const nextCursor = last ? encodePageToken({ statusAt: last.diedAt, taskId: last.runId }) : null;
  return { page, nextCursor };
}

export const encodeDeadLetter = (letter: DeadLetter): z.infer<typeof deadLetter> => ({
  run_id: letter.runId,
  ...namesOfTask(letter.taskId),
  agent_id: letter.agentId,
  reason: letter.reason,
  attempts: letter.attempts,
  died_at: letter.diedAt.toISOString(),
  redelivered_at: letter.redeliveredAt?.toISOString() ?? null,
  redelivered_as: letter.redeliveredAt && letter.redeliveredTaskId,
});
