import {
  type CallContext,
  type ClientTaskIdRule,
  type Message,
  ProtocolError,
  Role,
  SPEC_RULES,
  type SendMessageRequest,
  type Task,
  TaskState,
  tokenPrincipal,
} from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import type { EarlierTurn, MessageKey, StoredTask } from '@baton/database';
import { claimedRun, message as said } from '../runs/claimed-run.fixture.js';
import { newContextOf } from '../turns/new-task.js';
import { MessageRouter } from './message-router.js';

type ClientAlias = { clientId: string; previousTaskId?: string };

const RULE: ClientTaskIdRule = { joins: 'any-task', canceled: 'refused' };
const GONE = { endedAt: new Date(0), deletedAt: new Date(1), retentionDays: 7 };
const request = (message: Message): SendMessageRequest => ({
  tenant: '',
  message,
  configuration: undefined,
  metadata: undefined,
});

const call = (clientTaskId?: string, idempotencyKey?: string, rule = RULE): CallContext =>
  ({
    tenantId: 'tenant',
    principal: tokenPrincipal('token'),
    agent: { id: 'echo', definition: {} },
    profile: 'orloj',
    rules: { ...SPEC_RULES, clientTaskIds: rule },
    clientTaskId,
    idempotencyKey,
  }) as CallContext;

const stored = (state: TaskState, ...history: Message[]): StoredTask => {
  const { snapshot } = claimedRun();
  const status = { state, message: undefined, timestamp: undefined };
  const task = { ...snapshot.task, status, history };
  return { task, sequence: 4, agentId: 'echo', owner: null, outcome: null };
};

/** Everything behind the router. It records the calls. */
class Surroundings {
  readonly asked: string[] = [];
  /** What each look finds under the alias. */
  looks: (StoredTask | undefined)[] = [];
  /** Whether the task that the id named is past its retention. */
  isDeleted = false;
  /** How often another caller is faster. */
  losses = 0;
  /** What the same message, or another one under its key, has made earlier. */
  earlier: EarlierTurn | undefined;
  /** The keys under which the message was looked for. */
  readonly keys: (MessageKey | undefined)[] = [];

  readonly tasks = {
    findAlias: async () => (this.looks[0] ? { taskId: 'task', agentId: 'echo' } : undefined),
    earlierTurn: async (_tenant: string, key: MessageKey) => this.before(key),
    get: async () => stored(TaskState.TASK_STATE_WORKING),
  };
  readonly finder = {
    find: async (_call: unknown, id: string) => {
      const found = stored(TaskState.TASK_STATE_WORKING);
      return { ...found, task: { ...found.task, id } };
    },
    reachable: async () => this.looks.shift(),
    deleted: async (_call: unknown, id: string) =>
      this.isDeleted ? ProtocolError.taskNotFound(id, GONE) : undefined,
  };
  readonly push = {};
  readonly relay = {
    watch: async () => ({ skipTo: () => undefined, refresh: () => this.asked.push('join') }),
    leave: () => undefined,
  };
  readonly acceptance = {
    createTask: async (
      { task, alias, key }: { task: Task; alias?: ClientAlias; key?: MessageKey },
      open: () => Promise<unknown>,
    ) => {
      const named = alias && { clientId: alias.clientId, previousTaskId: alias.previousTaskId };
      const context = task.contextId === newContextOf(task.id) ? 'a new context' : task.contextId;
      this.asked.push(`create ${JSON.stringify(named ?? null)} in ${context}`);
      const earlier = this.before(key);
      const lost = this.losses-- > 0 ? { taskId: 'faster', content: null } : earlier;
      const opened = await open();
      return lost ? { opened, created: false, earlier: lost } : { opened, created: true };
    },
    continueTask: async (
      { message: sent, key }: { message: Message; key?: MessageKey },
      open: (sequence: number) => Promise<unknown>,
    ) => {
      this.asked.push(`continue ${sent.taskId}`);
      const earlier = this.before(key);
      if (earlier) return { ok: false, reason: 'repeated', earlier };
      return { ok: true, opened: await open(5) };
    },
  };

  private before(key?: MessageKey): EarlierTurn | undefined {
    this.keys.push(key);
    return key && this.earlier?.taskId !== key.goneTaskId ? this.earlier : undefined;
  }
}

const message: Message = { ...said('hello', Role.ROLE_USER), taskId: '', contextId: '' };
const { signal } = new AbortController();

describe('MessageRouter', () => {
  let behind: Surroundings;
  const routeCall = (context: CallContext, sent = message, settings: Record<string, string> = {}) =>
    new MessageRouter(
      behind.acceptance as never,
      behind.tasks as never,
      loadEnvironment({ DATABASE_URL: 'postgres://localhost/none', ...settings }),
      behind.finder as never,
      behind.push as never,
      behind.relay as never,
      { ensure: () => Promise.resolve() } as never,
    ).route(context, request(sent), signal);
  const route = (clientTaskId?: string) => routeCall(call(clientTaskId));
  beforeEach(() => (behind = new Surroundings()));

  it('makes a task of a message that names none', async () => {
    await route();
    expect(behind.asked).toEqual(['create null in a new context']);
  });

  it('gives the id that the caller has chosen to its first task', async () => {
    behind.looks = [undefined];
    await route('mine');
    expect(behind.asked).toEqual(['create {"clientId":"mine"} in a new context']);
  });

  it('joins the task of a call that was faster with the same id and message', async () => {
    behind.looks = [undefined, stored(TaskState.TASK_STATE_WORKING, message)];
    behind.losses = 1;
    await route('mine');
    expect(behind.asked).toEqual(['create {"clientId":"mine"} in a new context', 'join']);
  });

  it('answers a task that asks', async () => {
    behind.looks = [stored(TaskState.TASK_STATE_INPUT_REQUIRED, said('first', Role.ROLE_USER))];
    await route('mine');
    expect(behind.asked).toEqual(['continue task']);
  });

  it('goes on with the context of a task that has ended, and lets the id name the new one', async () => {
    behind.looks = [stored(TaskState.TASK_STATE_COMPLETED, said('first', Role.ROLE_USER))];
    await route('mine');
    expect(behind.asked).toEqual(['create {"clientId":"mine","previousTaskId":"task"} in context']);
  });

  it('refuses a task that was canceled', async () => {
    behind.looks = [stored(TaskState.TASK_STATE_CANCELED, said('first', Role.ROLE_USER))];
    await expect(route('mine')).rejects.toMatchObject({ kind: 'task-canceled' });
  });

  it('refuses an id whose task was deleted: the message may be the one it has answered', async () => {
    behind.looks = [undefined];
    behind.isDeleted = true;
    await expect(route('mine')).rejects.toThrow(
      'Task not found: mine ended at 1970-01-01T00:00:00.000Z and was deleted after 7 days of retention',
    );
    expect(behind.asked).toEqual([]);
  });

  it('takes a new turn under such an id where a task that has ended is never joined', async () => {
    behind.looks = [undefined];
    behind.isDeleted = true;
    await routeCall(call('mine', undefined, { ...RULE, joins: 'working-task' }));
    expect(behind.asked).toEqual(['create {"clientId":"mine"} in a new context']);
  });

  it('gives up on an id that others fight for', async () => {
    behind.losses = 100;
    await expect(route('mine')).rejects.toBeInstanceOf(ProtocolError);
  });

  describe('of a message that comes again', () => {
    const earlier = { taskId: 'task', content: null };

    it('joins the task that the first one has made', async () => {
      behind.earlier = earlier;
      behind.looks = [stored(TaskState.TASK_STATE_COMPLETED, message)];
      await route();
      expect(behind.asked).toEqual(['create null in a new context', 'join']);
    });

    it('joins the turn that the first one has made', async () => {
      behind.earlier = earlier;
      behind.looks = [stored(TaskState.TASK_STATE_COMPLETED, message)];
      await routeCall(call(), { ...message, taskId: 'task' });
      expect(behind.asked).toEqual(['continue task', 'join']);
    });

    it('makes another task if that one is gone', async () => {
      behind.earlier = earlier;
      behind.looks = [undefined];
      await route();
      expect(behind.asked).toEqual(['create null in a new context', 'create null in a new context']);
    });

    it.each([
      ['the environment', { IDEMPOTENCY_HOURS: '0' }, {}, undefined],
      ['its agent', {}, { idempotencyHours: 0 }, undefined],
      ['its agent, whatever the environment', { IDEMPOTENCY_HOURS: '0' }, { idempotencyHours: 2 }, 2],
    ])('is another one where %s says so', async (_who, settings, definition, hours) => {
      behind.earlier = earlier;
      const context = call();
      const agent = { ...context.agent, definition: { ...context.agent.definition, ...definition } };
      if (hours) behind.looks = [stored(TaskState.TASK_STATE_COMPLETED, message)];
      await routeCall({ ...context, agent }, message, settings);
      expect(behind.asked).toEqual(['create null in a new context', ...(hours ? ['join'] : [])]);
      expect(behind.keys.map((key) => key?.hours)).toEqual([hours]);
    });

    it('is known for a day by its Idempotency-Key where messages are not known by their id', async () => {
      behind.earlier = earlier;
      behind.looks = [stored(TaskState.TASK_STATE_COMPLETED, message)];
      await routeCall(call(undefined, 'key'), message, { IDEMPOTENCY_HOURS: '0' });
      expect(behind.asked).toEqual(['create null in a new context', 'join']);
      expect(behind.keys.map((key) => key?.hours)).toEqual([24]);
    });

    it('recognizes one without an id by its Idempotency-Key, and never without one', async () => {
      behind.earlier = earlier;
      const nameless = { ...message, messageId: '' };
      await routeCall(call(), nameless);
      expect(behind.asked).toEqual(['create null in a new context']);
      behind.looks = [stored(TaskState.TASK_STATE_COMPLETED, message)];
      await routeCall(call(undefined, 'key'), nameless);
      expect(behind.asked.at(-1)).toBe('join');
    });

    it('goes by the header before the id that the caller has chosen, but not by the message', async () => {
      const [busy, done] = [TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED];
      behind.earlier = earlier;
      behind.looks = [stored(busy, said('other', Role.ROLE_USER)), stored(done, message)];
      await routeCall(call('mine', 'key'));
      expect(behind.asked).toEqual(['join']);
      behind.looks = [stored(busy, said('other', Role.ROLE_USER))];
      await expect(routeCall(call('mine'))).rejects.toMatchObject({ kind: 'unsupported-operation' });
    });

    it('refuses another message under the same Idempotency-Key, unless the first task is gone', async () => {
      behind.earlier = { taskId: 'task', content: Buffer.from('something else') };
      behind.looks = [stored(TaskState.TASK_STATE_COMPLETED, message)];
      await expect(routeCall(call(undefined, 'key'))).rejects.toMatchObject({
        kind: 'invalid-params',
        message: expect.stringContaining('Idempotency-Key: "key"') as string,
      });
      behind.asked.length = 0;
      await routeCall(call(undefined, 'key'));
      expect(behind.asked).toEqual(['create null in a new context', 'create null in a new context']);
    });
  });
});
