import { TaskState } from '@baton/a2a';
import type { TaskStore, TaskTreeStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { TurnEnds } from './turn-ends.js';

const RUN = { tenantId: 'tenant', taskId: 'parent', runId: 'run', attempt: 1 };
const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED } = TaskState;

/** What happens to other tasks, in its order. */
function turnEnds() {
  const trace: string[] = [];
  const note =
    <Result>(what: string, result: Result) =>
    async (_tenantId: string, taskId: unknown): Promise<Result> => {
      trace.push(`${what} ${String(taskId)}`);
      return result;
    };
  const ends = new TurnEnds(
    {
      cancel: async (_: string, __: null, taskId: string) => note('cancel', { ok: false })('', taskId),
    } as unknown as TaskStore,
    {
      suspend: async ({ taskId }: typeof RUN) => note('suspend', true)('', taskId),
      wake: note('wake', true),
      openChildren: note('children of', ['child']),
    } as unknown as TaskTreeStore,
    {} as never,
    { ended: (tenantId) => void trace.push(`slot of ${tenantId}`), refill: () => void trace.push('refill') },
    Logger.silent(),
  );
  return { ends, trace };
}

it('looks after it has suspended a run whether the tasks have ended meanwhile: their ends found no suspended run', async () => {
  const { ends, trace } = turnEnds();
  await ends.suspend(RUN, { taskIds: ['child'], wakeInMs: undefined }, new AbortController().signal);
  expect(trace).toEqual(['suspend parent', 'wake parent', 'refill']);
});

describe('the end of a turn', () => {
  const run = { tenantId: 'tenant', taskId: 'task', parentTaskId: 'parent' };

  it('cancels the children of a task that has ended, and wakes its parent', async () => {
    const { ends, trace } = turnEnds();
    await ends.follow(run, { state: TASK_STATE_COMPLETED, mayHaveChildren: true });
    expect(trace[0]).toBe('slot of tenant');
    expect(trace.slice(1).sort()).toEqual(['cancel child', 'children of task', 'refill', 'wake parent']);
  });

  it('leaves the children of a task that asks: it continues with its answer', async () => {
    const { ends, trace } = turnEnds();
    await ends.follow(run, { state: TASK_STATE_INPUT_REQUIRED, mayHaveChildren: true });
    expect(trace).toEqual(['slot of tenant', 'wake parent', 'refill']);
  });

  it('frees the slot of a run that goes on later, and does nothing else', async () => {
    const { ends, trace } = turnEnds();
    await ends.follow(run, undefined);
    expect(trace).toEqual(['slot of tenant']);
  });
});
