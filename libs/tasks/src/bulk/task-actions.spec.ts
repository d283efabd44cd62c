import { Role, TaskState } from '@baton/a2a';
import type { BulkAction, ClaimedBulk } from '@baton/database';
import { userMessage } from '../../../../test/support/agents/turns.js';
import { FirstRequests } from '../turns/first-requests.js';
import { newTask } from '../turns/new-task.js';
import { TaskActions } from './task-actions.js';

const { TASK_STATE_WORKING, TASK_STATE_COMPLETED, TASK_STATE_CANCELED } = TaskState;
const CALLER = { principal: { kind: 'token', key: 'token:ann' }, scopes: ['agents:call'] };
const ACTOR = { kind: 'token', key: 'token:ann' };

const operation = (action: BulkAction, id = '0198a000-0000-7000-8000-000000000001'): ClaimedBulk =>
  ({ tenantId: 't', id, action, caller: CALLER, actor: ACTOR }) as unknown as ClaimedBulk;

const TASK_ID = '0198a000-0000-7000-8000-00000000000a';

/** A task in this state, and what the actions have done to it. */
function world(state: TaskState, options: { isThere?: boolean; agent?: object | null } = {}) {
  const { isThere = true, agent = {} } = options;
  const message = userMessage('hello', { messageId: 'm', contextId: '', taskId: '' });
  const task = { ...newTask(message, { id: TASK_ID, contextId: 'c' }) };
  task.status = { state, message: undefined, timestamp: undefined };
  const calls: unknown[][] = [];
  const note =
    <T>(name: string, result: T) =>
    (...args: unknown[]): Promise<T> => {
      calls.push([name, ...args]);
      return Promise.resolve(result);
    };
  const answers = { cancel: false, resume: false, delete: false };
  const actions = new TaskActions(
    {
      get: () => Promise.resolve(isThere ? { task, agentId: 'echo' } : undefined),
    } as never,
    { resume: (...args: unknown[]) => note('resume', answers.resume)(...args) } as never,
    { deleteTask: (...args: unknown[]) => note('delete', answers.delete)(...args) } as never,
    { find: () => Promise.resolve(agent ?? undefined) } as never,
    { ensureTask: note('ensureTask', true) } as never,
    { cancel: (...args: unknown[]) => note('cancel', { ok: answers.cancel })(...args) } as never,
    { refill: () => void calls.push(['refill']) } as never,
    { continueFailed: note('continueFailed', {}) } as never,
    new FirstRequests({ firstDetails: () => Promise.resolve(undefined) } as never),
  );
  return { actions, calls, answers };
}

describe('an action of an operation on many tasks', () => {
  it('cancels as the caller, and counts a task that a dead worker has canceled', async () => {
    const { actions, calls, answers } = world(TASK_STATE_COMPLETED);
    answers.cancel = true;
    expect(await actions.perform(operation('cancel'), TASK_ID)).toBe('done');
    const own = { owner: 'token:ann', unowned: expect.any(Boolean) };
    expect(calls).toEqual([['cancel', 't', null, TASK_ID, { own, by: ACTOR }]]);
    answers.cancel = false;
    expect(await actions.perform(operation('cancel'), TASK_ID)).toBe('skipped');
    expect(await world(TASK_STATE_CANCELED).actions.perform(operation('cancel'), TASK_ID)).toBe('done');
  });

  it('deletes an ended task, and counts one that a dead worker has deleted', async () => {
    const { actions, answers } = world(TASK_STATE_WORKING);
    expect(await actions.perform(operation('delete'), TASK_ID)).toBe('skipped');
    answers.delete = true;
    expect(await actions.perform(operation('delete'), TASK_ID)).toBe('done');
    const gone = world(TASK_STATE_COMPLETED, { isThere: false });
    expect(await gone.actions.perform(operation('delete'), TASK_ID)).toBe('done');
  });

  it('resumes a parked run, and asks for slots only if there was one', async () => {
    const { actions, calls, answers } = world(TASK_STATE_WORKING);
    expect(await actions.perform(operation('resume'), TASK_ID)).toBe('skipped');
    answers.resume = true;
    expect(await actions.perform(operation('resume'), TASK_ID)).toBe('done');
    const resumed = ['resume', 't', TASK_ID, ACTOR];
    expect(calls).toEqual([resumed, resumed, ['refill']]);
  });

  it('sends again as the caller, with one id for a task and an operation', async () => {
    const { actions, calls } = world(TASK_STATE_COMPLETED);
    const other = '0198a000-0000-7000-8000-000000000002';
    for (const each of [operation('send-again'), operation('send-again'), operation('send-again', other)]) {
      expect(await actions.perform(each, TASK_ID)).toBe('done');
    }
    const made = calls.map(([, request]) => request as { owner: string; task: ReturnType<typeof newTask> });
    const ids = made.map(({ task }) => task.id);
    expect(ids[0]).toBe(ids[1]);
    expect(ids[2]).not.toBe(ids[0]);
    expect(ids).not.toContain(TASK_ID);
    expect(made[0]).toMatchObject({ tenantId: 't', owner: 'token:ann', task: { contextId: 'c' } });
    const [first] = made[0]!.task.history;
    expect(first).toMatchObject({ role: Role.ROLE_USER, referenceTaskIds: [TASK_ID] });
  });

  it('sends nothing again whose task or agent is gone', async () => {
    const gone = world(TASK_STATE_COMPLETED, { isThere: false });
    expect(await gone.actions.perform(operation('send-again'), TASK_ID)).toBe('skipped');
    for (const agent of [null, { status: 'disabled' }]) {
      const { actions, calls } = world(TASK_STATE_COMPLETED, { agent });
      await expect(actions.perform(operation('send-again'), TASK_ID)).rejects.toThrow(
        'no longer exists or is disabled',
      );
      expect(calls).toEqual([]);
    }
  });

  it('continues a failed task with the rights of the caller', async () => {
    const { actions, calls } = world(TaskState.TASK_STATE_FAILED);
    expect(await actions.perform(operation('continue'), TASK_ID)).toBe('done');
    expect(calls).toEqual([['continueFailed', { ...CALLER, tenantId: 't' }, TASK_ID, ACTOR]]);
  });
});
