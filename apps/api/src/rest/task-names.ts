import { z } from 'zod';

/** The members with which an answer about another thing names a task. */
export const taskNames = {
  task_id: z.string().describe('The id of the task'),
  request_id: z
    .string()
    .meta({ deprecated: true })
    .describe('The same as `task_id`, for clients of release 0.2.0. Release 0.4.0 removes it'),
};

/** The members of {@link taskNames} for a task. */
export const namesOfTask = (taskId: string): { task_id: string; request_id: string } => ({
  task_id: taskId,
  request_id: taskId,
});
