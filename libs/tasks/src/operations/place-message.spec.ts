import {
  type CallContext,
  type ClientTaskIdRule,
  type Message,
  ProtocolError,
  Role,
  SPEC_RULES,
  type SendMessageRequest,
  TaskState,
} from '@baton/a2a';
import type { StoredTask } from '@baton/database';
import { claimedRun, message as said } from '../runs/claimed-run.fixture.js';
import { MessagePlacement } from './place-message.js';

const RULE: ClientTaskIdRule = { joins: 'any-task', canceled: 'refused' };
const request = (message: Message): SendMessageRequest => ({
  tenant: '',
  message,
  configuration: undefined,
  metadata: undefined,
});

const call = (clientTaskId?: string): CallContext =>
  ({
    tenantId: 'tenant',
    agent: { id: 'echo' },
    profile: 'orloj',
    rules: { ...SPEC_RULES, clientTaskIds: RULE },
    clientTaskId,
  }) as CallContext;

const stored = (state: TaskState, ...history: Message[]): StoredTask => {
  const { cut } = claimedRun();
  const status = { state, message: undefined, timestamp: undefined };
  return { task: { ...cut.task, status, history }, sequence: 4, agentId: 'echo', outcome: null };
};

/** Everything behind the placement; it tells what was asked of it. */
class Surroundings {
  readonly asked: string[] = [];
  /** What each look finds under the alias. */
  looks: (StoredTask | undefined)[] = [];
  /** How often another caller is faster. */
  losses = 0;

  readonly tasks = {
    findAlias: async () => (this.looks[0] ? { taskId: 'task', agentId: 'echo' } : undefined),
    get: async () => this.looks.shift(),
  };
  readonly intake = {
    createTask: async (
      _call: unknown,
      _request: unknown,
      message: Message,
      _signal: unknown,
      alias?: object,
    ) => {
      this.asked.push(`create ${JSON.stringify(alias ?? null)} in ${message.contextId || 'a new context'}`);
      if (this.losses-- > 0) return undefined;
      return {};
    },
    continueTask: async (_call: unknown, message: Message) => this.done(`continue ${message.taskId}`),
    join: async () => this.done('join'),
  };

  private done(what: string): object {
    this.asked.push(what);
    return {};
  }
}

const message: Message = { ...said('hello', Role.ROLE_USER), taskId: '', contextId: '' };
const { signal } = new AbortController();

describe('MessagePlacement', () => {
  let behind: Surroundings;
  const place = (clientTaskId?: string, sent = message) =>
    new MessagePlacement(behind.intake as never, behind.tasks as never).place(
      call(clientTaskId),
      request(sent),
      signal,
    );
  beforeEach(() => (behind = new Surroundings()));

  it('makes a task of a message that names none', async () => {
    await place();
    expect(behind.asked).toEqual(['create null in a new context']);
  });

  it('gives the id that the caller has chosen to its first task', async () => {
    behind.looks = [undefined];
    await place('mine');
    expect(behind.asked).toEqual(['create {"clientId":"mine"} in a new context']);
  });

  it('joins the task of a call that was faster with the same id and message', async () => {
    behind.looks = [undefined, stored(TaskState.TASK_STATE_WORKING, message)];
    behind.losses = 1;
    await place('mine');
    expect(behind.asked).toEqual(['create {"clientId":"mine"} in a new context', 'join']);
  });

  it('answers a task that asks', async () => {
    behind.looks = [stored(TaskState.TASK_STATE_INPUT_REQUIRED, said('first', Role.ROLE_USER))];
    await place('mine');
    expect(behind.asked).toEqual(['continue task']);
  });

  it('goes on with the context of a task that has ended, and lets the id name the new one', async () => {
    behind.looks = [stored(TaskState.TASK_STATE_COMPLETED, said('first', Role.ROLE_USER))];
    await place('mine');
    expect(behind.asked).toEqual(['create {"clientId":"mine","previousTaskId":"task"} in context']);
  });

  it('refuses a task that was canceled', async () => {
    behind.looks = [stored(TaskState.TASK_STATE_CANCELED, said('first', Role.ROLE_USER))];
    await expect(place('mine')).rejects.toMatchObject({ kind: 'task-canceled' });
  });

  it('gives up on an id that others fight for', async () => {
    behind.losses = 100;
    await expect(place('mine')).rejects.toBeInstanceOf(ProtocolError);
  });
});
