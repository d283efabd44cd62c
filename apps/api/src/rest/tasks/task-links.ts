import type { Task } from '@baton/a2a';
import { continuedBy, forkedFrom, type TaskForks, undoneBy } from '@baton/tasks';
import { z } from 'zod';

/** The tasks whose journals a task continues, and those that continue its own. */
export const links = {
  continues: z.string().nullable().describe('The failed task that it continues'),
  fork_of: z.string().nullable().describe('The task of which it is a fork'),
  continued_as: z.string().nullable().describe('The task that continues it, after it has failed'),
  undoes: z.string().nullable().describe('The canceled task whose finished steps it undoes'),
  undone_as: z.string().nullable().describe('The task that undoes its finished steps, after it was canceled'),
};

type TaskLinks = Record<keyof typeof links, string | null>;

/** The links of a task. Those to tasks that continue it are read. */
export async function linksOf(forks: TaskForks, tenantId: string, task: Task): Promise<TaskLinks> {
  const [continuedAs, undoneAs] = await Promise.all([
    forks.continuedAs(tenantId, task),
    forks.undoneAs(tenantId, task),
  ]);
  return {
    continues: continuedBy(task) ?? null,
    fork_of: forkedFrom(task) ?? null,
    continued_as: continuedAs ?? null,
    undoes: undoneBy(task) ?? null,
    undone_as: undoneAs ?? null,
  };
}
