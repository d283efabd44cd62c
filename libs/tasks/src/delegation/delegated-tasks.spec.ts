import { TaskState } from '@baton/a2a';
import { ChildRefusal, type Turn } from '@baton/agents';
import type { RetentionStore, StoredTask, TaskStore, TaskTreeStore } from '@baton/database';
import { agent, firstTurn } from '../../../../test/support/agents/turns.js';
import type { TurnAcceptance } from '../turns/turn-acceptance.js';
import { DelegatedTasks } from './delegated-tasks.js';

const CLERK = agent('clerk');
const PARENT = 'f5d1a1de-1f3b-4f0b-9e1c-3c7a0f7f6b22';
const CHILD = 'a3c0f6a2-8d6f-4a63-9f0e-6f0f7a0f1c11';
const { signal } = new AbortController();

/** Stores with these tasks below the task of the turn. */
function delegation(
  turn: Turn,
  { stored, isDeleted = false, isNew = true }: { stored?: StoredTask; isDeleted?: boolean; isNew?: boolean },
) {
  const acceptance = {
    ensureTask: jest.fn(async () => isNew),
    continueTask: jest.fn(async (_: unknown) => ({ ok: true, opened: undefined })),
  };
  const own = [{ taskId: turn.task.id, agentId: turn.agent.id }];
  const tasks = new DelegatedTasks(
    { get: async () => stored, earlierTurn: async () => undefined } as unknown as TaskStore,
    {
      ancestors: async (_: string, taskId: string) =>
        taskId === turn.task.id ? own : [{ taskId, agentId: CLERK.id }, ...own],
    } as unknown as TaskTreeStore,
    { findTombstone: async () => (isDeleted ? {} : undefined) } as unknown as RetentionStore,
    acceptance as unknown as TurnAcceptance,
  );
  return { tasks, acceptance };
}

const asking = (callId: string): StoredTask => {
  const request = { callId, tool: 'pay', input: {} };
  const parts = [{ content: { $case: 'data', value: { approval: request } } }];
  const status = { state: TaskState.TASK_STATE_INPUT_REQUIRED, message: { parts } };
  return { agentId: CLERK.id, task: { id: CHILD, contextId: 'c', status } } as unknown as StoredTask;
};

describe('a child', () => {
  const first = firstTurn('?');
  const turn = { ...first, task: { ...first.task, id: PARENT } };
  const request = {
    callId: 'call',
    lane: 1,
    agent: CLERK,
    message: 'hi',
    limits: { depth: 5, tasks: 5 },
    signal,
  };

  it('is not made again for a call whose child retention has deleted', async () => {
    const { tasks, acceptance } = delegation(turn, { isDeleted: true });
    await expect(tasks.call(turn, request)).rejects.toThrow(ChildRefusal);
    expect(acceptance.ensureTask).not.toHaveBeenCalled();
  });

  it('that another attempt has made, and retention has deleted at once, has no answer', async () => {
    const { tasks, acceptance } = delegation(turn, { isNew: false });
    await expect(tasks.call(turn, request)).rejects.toThrow(
      new ChildRefusal('The answer of the agent was deleted by retention'),
    );
    expect(acceptance.ensureTask).toHaveBeenCalledTimes(1);
  });

  it('gets the answer of a person also when the tenant has no room: the answer was accepted with the turn of its parent', async () => {
    const { tasks, acceptance } = delegation(turn, { stored: asking('call') });
    const decisions = [{ callId: 'call', approved: true }];
    await tasks.answer(turn, { agent: CLERK, callId: 'call', taskId: CHILD, number: 1, decisions, signal });
    expect(acceptance.continueTask).toHaveBeenCalledWith(expect.objectContaining({ isUnlimited: true }));
  });
});
