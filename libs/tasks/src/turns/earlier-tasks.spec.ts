import type { StoredTask, TaskStore } from '@baton/database';
import { agent } from '../../../../test/support/agents/turns.js';
import { EarlierTasks } from './earlier-tasks.js';
import { newContextOf } from './new-task.js';

const CLERK = agent('clerk');
const ID = 'a3c0f6a2-8d6f-4a63-9f0e-6f0f7a0f1c11';

/** What the store is asked for, and its answer. */
function contextOf(...ids: string[]) {
  const listContext = jest.fn(async (..._: unknown[]) =>
    ids.map((id) => ({ task: { id } }) as unknown as StoredTask),
  );
  return { listContext, earlier: new EarlierTasks({ listContext } as unknown as TaskStore) };
}

describe('the earlier tasks of a context', () => {
  it('are not read for a task that has begun its context', async () => {
    const { listContext, earlier } = contextOf('other');
    expect(await earlier.list('t', CLERK, { id: ID, contextId: newContextOf(ID) }, undefined)).toEqual([]);
    expect(listContext).not.toHaveBeenCalled();
  });

  it('are those before the task, at most 100, without those whose journal it continues', async () => {
    const { listContext, earlier } = contextOf('kept', 'forked');
    const origin = { taskIds: ['forked'], history: [], copied: 0 };
    const found = await earlier.list('t', CLERK, { id: ID, contextId: 'c' }, origin, 500);
    expect(found.map(({ task }) => task.id)).toEqual(['kept']);
    expect(listContext).toHaveBeenCalledWith('t', CLERK.id, 'c', ID, 100);
  });
});
