import { TaskState } from '@baton/a2a';
import { AgentEvent, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { ComputePool } from '@baton/compute';
import { loadEnvironment } from '@baton/config';
import { Logger, Metrics } from '@baton/telemetry';
import { converseHere } from '../../../../../test/support/agents/executors.js';
import {
  agent,
  NO_ACCESS_TOKENS,
  turnSecrets,
  turnWith,
  userMessage,
} from '../../../../../test/support/agents/turns.js';
import {
  type ModernMcpServer,
  type ModernTask,
  type ModernTool,
} from '../../../../../test/support/mcp-server/modern-server.js';
import type { AccessTokens } from '../../access-tokens.js';
import { type AgentOutput, jsonPart, type Turn } from '../../agent-runtime.js';
import { SENT_BY_AGENT } from '../../approvals.js';
import { stepsOf } from '../../author/steps-of.js';
import { cancelRemoteCalls } from '../../remote-call-cancel.js';
import { SignInNeeded } from '../../sign-in-needed.js';
import { summaryOf, toolOf } from '../llm/llm-runtime.fixture.js';
import { McpBench } from '../llm/tools/mcp/mcp-tools.fixture.js';
import { form, says, SLOW, startReportServer } from '../llm/tools/mcp/report-server.fixture.js';
import { TaskTalk } from '../llm/tools/mcp/task-talk.fixture.js';
import { ToolSources, type ToolSource } from '../llm/tools/tool-sources.js';
import type { DurableSteps } from './child/steps.js';
import { TurnTools } from './turn-tools.js';

const { TASK_STATE_AUTH_REQUIRED, TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED } = TaskState;
const pool = new ComputePool({ threads: 2, timeoutMs: 30_000 });
const mcp = new McpBench();
let server: ModernMcpServer;
let talk: Talk;

afterEach(() => mcp.reset());
afterAll(async () => {
  await Promise.all([mcp.stop(), pool.close()]);
});

type Code = (steps: DurableSteps) => Promise<unknown>;

/** A task of an agent in code. Each attempt has a process of its own, too. */
class Talk extends TaskTalk {
  /** How often the code has run. */
  runs = 0;
  /** When a task that asks continues without an answer, in ms. */
  wakeInMs: number | undefined;
  tokens: AccessTokens = NO_ACCESS_TOKENS;
  noted = 0;

  constructor(
    private readonly code: Code,
    private readonly source: () => ToolSource = () => mcp.source(),
  ) {
    super('step-1-2-progress');
  }

  protected outputs(
    { runId, attempt, history, artifacts }: Parameters<TaskTalk['outputs']>[0],
    signal: AbortSignal,
  ): AsyncIterable<AgentOutput> {
    this.wakeInMs = undefined;
    const { journal } = this;
    const base = turnWith(history, {
      runId,
      attempt,
      outbound: mcp.outbound,
      secrets: turnSecrets({}, undefined, this.tokens),
      journal: {
        read: () => journal.read(),
        append: (value) => journal.append(value),
        restart: (value) => journal.restart(value),
        noteCompensable: () => Promise.resolve(),
        noteRemoteCall: () => Promise.resolve(void (this.noted += 1)),
      },
    });
    const log = { ...base.log, wakeIn: (ms: number) => void (this.wakeInMs = ms) };
    const turn: Turn = { ...base, log, task: { ...base.task, artifacts } };
    const execute = async (context: RequestContext, bus: ExecutionEventBus): Promise<void> => {
      this.runs += 1;
      const message = userMessage(JSON.stringify(await this.code(stepsOf(context))));
      const status = { state: TASK_STATE_COMPLETED, message, timestamp: undefined };
      bus.publish(AgentEvent.statusUpdate({ taskId: 'task-1', contextId: 'c', metadata: undefined, status }));
    };
    const tools = new TurnTools(new ToolSources([this.source()]), pool, new Metrics());
    const ports = { tools, limits: { depth: 1, tasks: 1 } } as never;
    const executor = { execute, cancelTask: () => Promise.resolve() };
    return converseHere(executor, turn, signal, Logger.silent(), ports);
  }

  /** An attempt that ends the task. @returns what the code has made of the result */
  async ends(outputs?: AgentOutput[]): Promise<unknown> {
    const { state, text = '' } = summaryOf(outputs ?? (await this.run())).status ?? {};
    expect(state).toBe(TASK_STATE_COMPLETED);
    return JSON.parse(text);
  }
}

const begun =
  (options: ModernTask['options'] = SLOW): ModernTool['call'] =>
  () =>
    server.newTask(options);

const callOnce =
  (settings: object): Code =>
  async ({ tools }) => {
    const { call } = await tools({ mcp: [{ name: 'desk', url: server.url, ...settings }] });
    const { ok, text, content } = await call('desk_report', { city: 'Rome' });
    return [ok, text ?? content];
  };

async function begin(call: ModernTool['call'], settings: object = {}, code = callOnce): Promise<void> {
  server = await startReportServer(mcp, call);
  talk = new Talk(code(settings));
}

const asks = (outputs: AgentOutput[]): string => {
  const { state, text = '' } = summaryOf(outputs).status ?? {};
  expect(state).toBe(TASK_STATE_INPUT_REQUIRED);
  return text;
};

describe('a tool that answers code with a task', () => {
  it('is called once: the code is left, and any worker goes on with the same task', async () => {
    await begin(begun());
    const { wakeInMs } = await talk.waits();
    expect(wakeInMs).toBeGreaterThan(4_000);
    const task = await server.task();
    expect(talk.journal.entries.at(-1)?.value).toMatchObject({
      event: 'remote',
      kind: 'remote',
      call: 'step-1-2',
      remote: { server: 'desk', url: server.url, tool: 'report', task: { taskId: task.taskId, ttlMs: null } },
      settings: { name: 'desk', url: server.url },
    });
    expect(talk.noted).toBe(1);
    const { length } = server.methods;
    const entries = talk.journal.entries.length;
    await talk.waits();
    await talk.waits();
    // A look needs no list of tools, no code, and no room in the journal.
    expect(server.methods.slice(length)).toEqual(['tasks/get', 'tasks/get']);
    expect([talk.runs, talk.journal.entries.length]).toEqual([1, entries]);
    task.complete(says('the report'));
    expect(await talk.ends()).toEqual([true, 'the report']);
    expect([server.calls.length, talk.runs]).toEqual([1, 2]);
  });

  it('has its id in the journal before its state is read', async () => {
    await begin(begun());
    const append = talk.journal.append.bind(talk.journal);
    const order: string[] = [];
    talk.journal.append = (value) => {
      const looks = server.methods.filter((method) => method === 'tasks/get').length;
      if ((value as { event: string }).event === 'remote') order.push(`${talk.noted} noted, ${looks} looks`);
      return append(value);
    };
    await talk.waits();
    expect(order).toEqual(['1 noted, 0 looks']);
  });

  it('reports its progress, each item once', async () => {
    await begin(begun({ ...SLOW, statusMessage: 'reads the books' }));
    await talk.waits();
    await talk.waits();
    const task = await server.task();
    task.say('counts the money');
    await talk.waits();
    expect(talk.progress).toEqual([
      { tool: 'desk_report', message: 'reads the books' },
      { tool: 'desk_report', message: 'counts the money' },
    ]);
  });

  it.each([
    [
      'fails',
      (task: ModernTask) => task.fail({ code: -32603, message: 'rate limit' }),
      'its task has failed',
    ],
    ['is gone', ({ taskId }: ModernTask) => server.tasks.delete(taskId), 'it no longer knows the task'],
  ])('and %s: the code gets the error', async (_, end, message) => {
    await begin(begun());
    await talk.waits();
    end(await server.task());
    expect(await talk.ends()).toEqual([false, expect.stringContaining(message)]);
    expect(server.calls).toHaveLength(1);
  });

  it('is canceled with the task of Baton', async () => {
    await begin(begun({ pollIntervalMs: 50 }));
    const stop = new AbortController();
    const running = talk.run(stop.signal);
    const task = await server.task();
    await server.until(() => task.gets > 0);
    stop.abort('canceled');
    await running.catch(() => undefined);
    await server.until(() => task.cancels === 1);
    expect(server.calls).toHaveLength(1);
  });

  it('is not canceled when a worker shuts down', async () => {
    await begin(begun({ pollIntervalMs: 50 }));
    const stop = new AbortController();
    const running = talk.run(stop.signal);
    const task = await server.task();
    await server.until(() => task.gets > 0);
    stop.abort('shutdown');
    await running.catch(() => undefined);
    task.complete(says('the report'));
    expect(await talk.ends()).toEqual([true, 'the report']);
    expect([task.cancels, server.calls.length]).toEqual([0, 1]);
  });

  it('is canceled by the sweep of canceled tasks, with the settings of the code', async () => {
    await begin(begun());
    await talk.waits();
    const task = await server.task();
    const ports = {
      outbound: mcp.outbound,
      secrets: turnSecrets({}),
      environment: loadEnvironment({ DATABASE_URL: 'postgres://baton@db/baton' }),
      logger: Logger.silent(),
    };
    expect(await cancelRemoteCalls(agent('coder', 'executor'), talk.journal.entries, ports)).toBe(true);
    expect(task.cancels).toBe(1);
    task.status = 'working';
    task.complete(says('the report'));
    await talk.ends();
    await cancelRemoteCalls(agent('coder', 'executor'), talk.journal.entries, ports);
    expect(task.cancels).toBe(1);
  });

  it('whose worker dies before the id is stored has an unknown outcome', async () => {
    await begin(begun(), { neverRepeat: 'all' });
    const append = talk.journal.append.bind(talk.journal);
    talk.journal.append = (value) =>
      (value as { event: string }).event === 'remote' ? Promise.reject(new Error('died')) : append(value);
    await expect(talk.run()).rejects.toThrow('died');
    talk.journal.append = append;
    expect(await talk.ends()).toEqual([false, expect.stringContaining('is not known')]);
    expect(server.calls).toHaveLength(1);
  });

  it('goes on beside other calls: the code waits for all', async () => {
    const both: typeof callOnce = () => async (steps) => {
      const { call } = await steps.tools({ mcp: [{ name: 'desk', url: server.url }] });
      const [one, two] = await Promise.all([
        call('desk_report', {}),
        call('desk_report', {}),
        steps.sleep('nap', '1h'),
      ]);
      return [one.text, two.text];
    };
    await begin(begun(), {}, both);
    await talk.waits();
    const [first, second] = server.tasks.values();
    const { length } = server.methods;
    await talk.waits();
    expect(server.methods.slice(length)).toEqual(['tasks/get', 'tasks/get']);
    first!.complete(says('one'));
    await talk.waits();
    second!.complete(says('two'));
    const { wakeInMs } = await talk.waits();
    expect(wakeInMs).toBeGreaterThan(3_500_000);
    expect(server.calls).toHaveLength(2);
  });
});

describe('a tool that asks a person, called by code', () => {
  it('has the answer of the caller to its task, from any worker, once', async () => {
    await begin(begun(), { approval: 'all', neverRepeat: 'all' });
    asks(await talk.run());
    await talk.say('yes').catch(() => undefined);
    const task = await server.task();
    task.ask({ who: form('Who are you?') });
    expect(asks(await talk.run())).toContain('desk_report of the server desk asks: Who are you?');
    expect(asks(await talk.say('x', SENT_BY_AGENT))).toContain('Only a person can answer this');
    expect(asks(await talk.say([jsonPart({ name: 7 })]))).toContain('The answer is not valid');
    await talk.say([jsonPart({ name: 'Ada' })]).catch(() => undefined);
    expect(task.updates).toEqual([{ who: { action: 'accept', content: { name: 'Ada' } } }]);
    // The server has not processed the answer yet: the question is not asked again.
    await talk.waits();
    task.complete(says('hello Ada'));
    expect(await talk.ends()).toEqual([true, 'hello Ada']);
    expect([task.updates.length, server.calls.length]).toEqual([1, 1]);
  });

  it('is called again with the answer, with the input to which a person has changed the call', async () => {
    const tool: ModernTool['call'] = (_, { inputResponses, requestState }) =>
      inputResponses
        ? says(`${requestState} ${JSON.stringify(inputResponses)}`)
        : { resultType: 'input_required', inputRequests: { who: form('Who?') }, requestState: 'state-1' };
    await begin(tool, { approval: 'all', neverRepeat: 'all' });
    asks(await talk.run());
    const changed = { approval: { approved: true, input: { city: 'Ulm' } } };
    expect(asks(await talk.say([jsonPart(changed)]))).toContain('Who?');
    // Another attempt asks the same, and calls nothing.
    asks(await talk.run());
    expect(server.calls).toHaveLength(1);
    expect(await talk.ends(await talk.say('no'))).toEqual([true, 'state-1 {"who":{"action":"decline"}}']);
    expect(server.calls.map(({ input }) => input)).toEqual([{ city: 'Ulm' }, { city: 'Ulm' }]);
  });

  it('is asked for, while another call goes on', async () => {
    const both: typeof callOnce =
      () =>
      async ({ tools, waitForInput }) => {
        const { call } = await tools({ mcp: [{ name: 'desk', url: server.url }] });
        const [report, answer] = await Promise.all([
          call('desk_report', {}),
          waitForInput('color', 'Which color?'),
        ]);
        return [report.text, answer.parts.length];
      };
    await begin(begun(), {}, both);
    expect(asks(await talk.run())).toBe('Which color?');
    // Each look asks again, so there are few.
    expect(talk.wakeInMs).toBeGreaterThan(500_000);
    const task = await server.task();
    await talk.say('red').catch(() => undefined);
    task.complete(says('the report'));
    expect(await talk.ends()).toEqual(['the report', 1]);
    expect(server.calls).toHaveLength(1);
  });
});

describe('a tool that wants a sign-in, called by code', () => {
  const settings = { mcp: [{ name: 'desk', url: 'https://desk.example.com/mcp' }] };
  const request = {
    url: 'https://desk.example.com/mcp',
    settings: { credentials: 'perCaller' },
  } as unknown as SignInNeeded['request'];
  const offers = (offer: { link: string; forMs: number } | undefined): AccessTokens => ({
    ...NO_ACCESS_TOKENS,
    offer: () => Promise.resolve(offer),
  });

  it.each([
    ['to list its tools', true],
    ['in the middle of a call, which must not be repeated', false],
  ])('%s: the task waits, and goes on by itself', async (_, atList) => {
    let isSignedIn = false;
    const made: unknown[] = [];
    const refuse = (): void => {
      if (!isSignedIn) throw new SignInNeeded(request);
    };
    const pay = {
      ...toolOf('pay', () => undefined, { repeat: 'never' as const }),
      execute: async (input: unknown) => {
        made.push(input);
        if (!atList) refuse();
        return Promise.resolve({ ok: true, content: 'paid' });
      },
    };
    const open: ToolSource['open'] = async () => {
      if (atList) refuse();
      return Promise.resolve({ tools: [pay], close: () => Promise.resolve() });
    };
    talk = new Talk(
      async ({ tools }) => (await (await tools(settings)).call('pay', { city: 'Bonn' })).content,
      () => ({ open }),
    );
    talk.tokens = offers({ link: 'https://baton.example/sign-in', forMs: 60_000 });
    const { state, text } = summaryOf(await talk.run()).status!;
    expect(state).toBe(TASK_STATE_AUTH_REQUIRED);
    expect(text).toContain(
      'you are not signed in at desk.example.com. To sign in, open https://baton.example/sign-in',
    );
    expect(talk.wakeInMs).toBe(60_000);
    // A message is no sign-in.
    expect(summaryOf(await talk.say('done')).status?.state).toBe(TASK_STATE_AUTH_REQUIRED);
    isSignedIn = true;
    expect(await talk.ends()).toBe('paid');
    expect(made).toHaveLength(atList ? 1 : 3);
  });

  it('that arrives too late fails the call', async () => {
    talk = new Talk(
      ({ tools }) =>
        tools(settings).then(
          () => 'opened',
          (error: unknown) => String(error),
        ),
      () => ({ open: () => Promise.reject(new SignInNeeded(request)) }),
    );
    expect(await talk.ends()).toContain('There was no sign-in in time');
  });
});
