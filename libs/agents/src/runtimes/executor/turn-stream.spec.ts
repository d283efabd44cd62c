import { Role, type Task, TaskState } from '@baton/a2a';
import { Logger } from '@baton/telemetry';
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { type AgentOutput, plainTextPart, type Turn } from '../../agent-runtime.js';
import { converseHere } from '../../../../../test/support/agents/executors.js';
import {
  agent,
  collect,
  firstTurn,
  summary,
  turnSecrets,
  turnWith,
  userMessage,
} from '../../../../../test/support/agents/turns.js';

const { TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_COMPLETED, TASK_STATE_CANCELED } = TaskState;
const { TASK_STATE_INPUT_REQUIRED } = TaskState;

/** An executor that does this, and keeps note of what it was called with. */
class Fake implements AgentExecutor {
  contexts: RequestContext[] = [];
  cancels: string[] = [];
  onCancel: (bus: ExecutionEventBus) => void = () => undefined;

  constructor(private readonly act: (bus: ExecutionEventBus, context: RequestContext) => unknown) {}

  async execute(context: RequestContext, bus: ExecutionEventBus): Promise<void> {
    this.contexts.push(context);
    await this.act(bus, context);
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus): Promise<void> {
    this.cancels.push(taskId);
    this.onCancel(bus);
    await Promise.resolve();
  }
}

const never = new AbortController().signal;
const run = (executor: AgentExecutor, turn: Turn = firstTurn('hi'), signal = never) =>
  collect(converseHere(executor, turn, signal, Logger.silent()));

describe('the secrets of the tenant', () => {
  type Context = { secret: (name: string) => Promise<string> };
  const reading = (name: string) =>
    new Fake(async (bus, { context }) => {
      const { secret } = context as unknown as Context;
      const said = await secret(name).catch((error: unknown) => (error as Error).message);
      bus.publish(AgentEvent.message(message(`it is ${said}`)));
    });
  const asker = agent('researcher');
  asker.definition.config = { secrets: ['search', 'absent'] };

  it('are read when the code asks, for this agent alone, and are in none of its output', async () => {
    const values: Record<string, string> = { search: 'first-value' };
    const asked: unknown[] = [];
    const reader = {
      get: async (tenantId: string, name: string, destinations: readonly string[]) => {
        asked.push([tenantId, name, destinations]);
        return values[name];
      },
    };
    const lengths: number[] = [];
    const executor = new Fake(async (bus, { context }) => {
      const value = await (context as unknown as Context).secret('search');
      lengths.push(value.length);
      bus.publish(AgentEvent.message(message(`it is ${value}`)));
    });
    for (const value of ['first-value', 'rotated']) {
      values.search = value;
      const turn = firstTurn('hi', { agent: asker, secrets: turnSecrets({}, reader) });
      const outputs = await collect(
        turn.secrets.scrub(turn, converseHere(executor, turn, never, Logger.silent())),
      );
      expect(JSON.stringify(outputs)).not.toContain(value);
      expect(summary(outputs)).toEqual([{ message: 'it is [secret]' }]);
    }
    // The second turn has the rotated value.
    expect(lengths).toEqual(['first-value'.length, 'rotated'.length]);
    expect(asked[0]).toEqual(['tenant-1', 'search', ['agent:researcher']]);
  });

  it.each([
    ['that the settings do not name', 'other', 'config.secrets of its agent.yaml does not name it'],
    [
      'that the tenant does not have',
      'absent',
      'node bin/baton.cjs secrets set absent --origin agent:researcher',
    ],
  ])('say what is missing for one %s', async (_, name, remedy) => {
    const outputs = await run(
      reading(name),
      firstTurn('hi', { agent: asker, secrets: turnSecrets({ other: 'hidden-value' }) }),
    );
    expect(JSON.stringify(summary(outputs))).toContain(remedy);
    expect(JSON.stringify(outputs)).not.toContain('hidden-value');
  });
});

const message = (text: string) => ({ ...userMessage(text), messageId: text, role: Role.ROLE_AGENT });
const task = (state: TaskState): Task => ({ ...firstTurn('hi').task, status: statusOf(state) });
const statusOf = (state: TaskState, text?: string) => ({
  state,
  message: text === undefined ? undefined : message(text),
  timestamp: undefined,
});
const update = (state: TaskState, text?: string) =>
  AgentEvent.statusUpdate({
    taskId: 'task-1',
    contextId: 'context-1',
    status: statusOf(state, text),
    metadata: undefined,
  });
const chunk = (text: string, taskId = 'task-1') =>
  AgentEvent.artifactUpdate({
    taskId,
    contextId: 'context-1',
    artifact: {
      artifactId: 'a',
      name: '',
      description: '',
      parts: [plainTextPart(text)],
      metadata: undefined,
      extensions: [],
    },
    append: false,
    lastChunk: true,
    metadata: undefined,
  });
const said = async (...args: Parameters<typeof run>) => summary(await run(...args));

/** A promise that the test settles. */
function latch() {
  let resolve: (value: unknown) => void = () => undefined;
  let reject: (reason: Error) => void = () => undefined;
  const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

describe('an executor', () => {
  it('answers with a bare message', async () => {
    const executor = new Fake((bus) => bus.publish(AgentEvent.message(message('hello'))));
    expect(await said(executor)).toEqual([{ message: 'hello' }]);
  });

  it('answers with a task and its updates, in order', async () => {
    const executor = new Fake(async (bus) => {
      bus.publish(AgentEvent.task(task(TASK_STATE_SUBMITTED)));
      bus.publish(update(TASK_STATE_WORKING));
      await Promise.resolve();
      bus.publish(chunk('1'));
      bus.publish(update(TASK_STATE_COMPLETED));
      bus.finished();
    });
    expect(await said(executor)).toMatchObject([
      { task: TASK_STATE_SUBMITTED },
      { state: TASK_STATE_WORKING },
      { artifact: 'a', text: '1' },
      { state: TASK_STATE_COMPLETED },
    ]);
  });

  it('ends with the state of the task it published, when it returns', async () => {
    const executor = new Fake((bus) => {
      bus.publish(AgentEvent.task(task(TASK_STATE_COMPLETED)));
      bus.publish(chunk('late'));
    });
    expect(await said(executor)).toMatchObject([
      { task: undefined },
      { text: 'late' },
      { state: TASK_STATE_COMPLETED },
    ]);
  });

  it('publishes nothing after the end of the turn, nor after finished()', async () => {
    const afterStatus = new Fake((bus) => {
      bus.publish(update(TASK_STATE_COMPLETED));
      bus.publish(chunk('late'));
    });
    expect(await said(afterStatus)).toEqual([{ state: TASK_STATE_COMPLETED }]);
    const afterFinished = new Fake((bus) => {
      bus.finished();
      bus.publish(chunk('late'));
    });
    expect(await said(afterFinished)).toEqual([]);
    expect(afterStatus.cancels).toEqual([]);
  });

  it('fails the turn with what it throws, after what it had said', async () => {
    const executor = new Fake((bus) => {
      bus.publish(chunk('1'));
      throw new Error('boom');
    });
    const outputs = converseHere(executor, firstTurn('hi'), never, Logger.silent());
    expect(summary([(await outputs.next()).value as AgentOutput])).toMatchObject([{ text: '1' }]);
    await expect(outputs.next()).rejects.toThrow('boom');
  });

  it('gets an error at once for an invalid event', async () => {
    const executor = new Fake((bus) => bus.publish({ kind: 'status-update' } as never));
    await expect(run(executor)).rejects.toThrow('publish() takes {kind, data}');
  });

  it('may leave out what JSON may leave out, and change its objects afterwards', async () => {
    const status = { state: TASK_STATE_WORKING };
    const executor = new Fake((bus) => {
      bus.publish(AgentEvent.statusUpdate({ status } as never));
      status.state = TASK_STATE_COMPLETED;
      const metadata = { step: 1 };
      bus.publish(AgentEvent.artifactUpdate({ artifact: { artifactId: 'a', metadata } } as never));
      metadata.step = 2;
      bus.publish(AgentEvent.statusUpdate({ status } as never));
    });
    const [first, second] = await run(executor);
    expect(first).toMatchObject({ value: { taskId: 'task-1', status: { state: TASK_STATE_WORKING } } });
    expect(second).toMatchObject({
      value: { append: false, artifact: { parts: [], extensions: [], metadata: { step: 1 } } },
    });
  });

  it('publishes for its own task only', async () => {
    const executor = new Fake((bus) => bus.publish(chunk('1', 'another-task')));
    expect(await run(executor)).toMatchObject([{ value: { taskId: 'task-1', contextId: 'context-1' } }]);
  });
});

describe('the request context of an executor', () => {
  const contextOf = async (turn: Turn): Promise<RequestContext> => {
    const executor = new Fake(() => undefined);
    await run(executor, turn);
    return executor.contexts[0] as RequestContext;
  };

  it('has no task in the first turn, but the ids it will have', async () => {
    const asked = userMessage('hi', { taskId: '', contextId: '' });
    const context = await contextOf(firstTurn(asked));
    expect(context).toMatchObject({ taskId: 'task-1', contextId: 'context-1' });
    expect(context.task).toBeUndefined();
    expect(context.referenceTasks).toBeUndefined();
    expect(context.userMessage).toMatchObject({ taskId: 'task-1', contextId: 'context-1', messageId: 'm-1' });
  });

  it('has the tenant, the user and the extensions that the agent declares', async () => {
    const tester = agent('tester');
    tester.definition.extensions = [{ uri: 'urn:a', description: '', required: false, params: undefined }];
    const { context } = await contextOf(firstTurn('hi', { agent: tester, extensions: ['urn:a', 'urn:b'] }));
    expect(context).toMatchObject({
      tenant: 'tenant-1',
      requestedExtensions: ['urn:a'],
      requestedVersion: '1.0',
    });
    expect(context.user).toMatchObject({ isAuthenticated: true });
  });

  it('has the tasks that the message refers to', async () => {
    const other = { ...task(TASK_STATE_COMPLETED), id: 'task-0' };
    const asked = userMessage('hi', { referenceTaskIds: ['task-0', 'gone'] });
    const { referenceTasks } = await contextOf(firstTurn(asked, { referenceTasks: [other] }));
    expect(referenceTasks?.map(({ id }) => id)).toEqual(['task-0']);
  });

  it('has the stored task, waiting for input, in a later turn', async () => {
    const history = [userMessage('plan'), message('where to?'), userMessage('Rome', { messageId: 'm-2' })];
    // A dead attempt had already said something.
    const turn = turnWith(history, { attempt: 2 });
    turn.task.history = [...history, message('one moment')];
    const { task: stored } = await contextOf(turn);
    expect(stored?.status).toMatchObject({
      state: TASK_STATE_INPUT_REQUIRED,
      message: { messageId: 'where to?' },
    });
    expect(stored?.history.map(({ messageId }) => messageId)).toEqual(['m-1', 'where to?', 'm-2']);
  });

  it('may be published again as the first event without ending the turn', async () => {
    const history = [userMessage('plan'), message('where to?'), userMessage('Rome', { messageId: 'm-2' })];
    const executor = new Fake((bus, { task: stored }) => {
      bus.publish(AgentEvent.task(stored as Task));
      bus.publish(update(TASK_STATE_COMPLETED));
    });
    expect(await said(executor, turnWith(history))).toEqual([
      { task: undefined },
      { state: TASK_STATE_COMPLETED },
    ]);
  });
});

describe('stopping an executor', () => {
  it.each(['canceled', 'lease-lost', 'shutdown'])('calls cancelTask once (%s)', async (reason) => {
    const stop = new AbortController();
    const release = latch();
    const executor = new Fake((bus) => {
      bus.publish(chunk('1'));
      return release.promise;
    });
    executor.onCancel = (bus) => {
      bus.publish(update(TASK_STATE_CANCELED));
      release.resolve(undefined);
    };
    const outputs = converseHere(executor, firstTurn('hi'), stop.signal, Logger.silent());
    await outputs.next();
    stop.abort(reason);
    expect(await collect(outputs)).toEqual([]);
    expect(executor.cancels).toEqual(['task-1']);
  });

  it.each([
    ['canceled', ['info After the cancel: 3 of 5 rows were written']],
    ['shutdown', []],
  ])('keeps what it says then for its author, if the task is canceled (%s)', async (reason, lines) => {
    const stop = new AbortController();
    const release = latch();
    const executor = new Fake((bus) => {
      bus.publish(chunk('1'));
      return release.promise;
    });
    executor.onCancel = (bus) => {
      bus.publish(update(TASK_STATE_CANCELED, '3 of 5 rows were written'));
      release.resolve(undefined);
    };
    const written: string[] = [];
    const console = { write: (level: string, text: string) => (written.push(`${level} ${text}`), text) };
    const turn = firstTurn('hi', { console });
    const outputs = converseHere(executor, turn, stop.signal, Logger.silent());
    await outputs.next();
    stop.abort(reason);
    expect(await collect(outputs)).toEqual([]);
    expect(written).toEqual(lines);
  });

  it('does not start one for a turn that was stopped before', async () => {
    const executor = new Fake(() => undefined);
    expect(await run(executor, firstTurn('hi'), AbortSignal.abort('canceled'))).toEqual([]);
    expect(executor.contexts).toEqual([]);
  });

  it('does not wait for one that ignores it, and drops its later events', async () => {
    jest.useFakeTimers();
    try {
      const stop = new AbortController();
      let bus: ExecutionEventBus | undefined;
      const executor = new Fake((given) => {
        bus = given;
        return new Promise(() => undefined);
      });
      const all = run(executor, firstTurn('hi'), stop.signal);
      stop.abort('canceled');
      await jest.advanceTimersByTimeAsync(2_000);
      expect(await all).toEqual([]);
      expect(executor.cancels).toHaveLength(1);
      expect(() => bus?.publish(chunk('late'))).not.toThrow();
    } finally {
      jest.useRealTimers();
    }
  });

  it('takes a throw of a stopped executor, or of its cancelTask, for its end', async () => {
    const stop = new AbortController();
    const release = latch();
    const executor = new Fake(() => release.promise);
    executor.onCancel = () => {
      release.reject(new Error('aborted'));
      throw new Error('not now');
    };
    const all = run(executor, firstTurn('hi'), stop.signal);
    stop.abort('canceled');
    expect(await all).toEqual([]);
  });

  it('happens when its reader leaves before the end', async () => {
    const executor = new Fake((bus) => {
      bus.publish(chunk('1'));
      return new Promise(() => undefined);
    });
    for await (const output of converseHere(executor, firstTurn('hi'), never, Logger.silent())) {
      expect(output.$case).toBe('artifactUpdate');
      break;
    }
    expect(executor.cancels).toEqual(['task-1']);
  });
});
