import { TaskState } from '@baton/a2a';
import {
  type ModernMcpServer,
  type ModernTask,
  type ModernTool,
} from '../../../../../../../test/support/mcp-server/modern-server.js';
import { turnWith } from '../../../../../../../test/support/agents/turns.js';
import { type AgentOutput, jsonPart } from '../../../../agent-runtime.js';
import { SENT_BY_AGENT } from '../../../../approvals.js';
import type { TaskOrigin } from '../../../../task-origin.js';
import { LlmBench, summaryOf } from '../../llm-runtime.fixture.js';
import { McpBench } from './mcp-tools.fixture.js';
import { form, says, SLOW, startReportServer } from './report-server.fixture.js';
import { TaskTalk } from './task-talk.fixture.js';

let llm: LlmBench;
const mcp = new McpBench();
let server: ModernMcpServer;
/** The newest attempt of the newest turn. */
let talk: Talk;

beforeAll(async () => {
  llm = await LlmBench.start();
});
afterEach(async () => {
  llm.reset();
  await mcp.reset();
});
afterAll(async () => {
  await llm.stop();
  await mcp.stop();
});

class Talk extends TaskTalk {
  /** @param origin the task that this one continues */
  constructor(
    private readonly settings: object,
    private readonly origin?: TaskOrigin,
  ) {
    super('call-1-1-progress');
  }

  protected outputs(
    { runId, attempt, history, artifacts }: Parameters<TaskTalk['outputs']>[0],
    signal: AbortSignal,
  ): AsyncIterable<AgentOutput> {
    const base = llm.turn({ tools: { mcp: [this.settings] } });
    const turn = turnWith(history, {
      ...base,
      runId,
      attempt,
      origin: this.origin,
      journal: this.journal,
      message: history.at(-1),
      task: { ...base.task, history, artifacts },
    });
    return llm.runtimeWith(mcp.source()).run(turn, signal);
  }
}

/** An agent whose model calls the tool once, and then says what it has read. */
async function begin(call: ModernTool['call'], settings: object = {}, origin?: TaskOrigin): Promise<void> {
  server = await startReportServer(mcp, call);
  talk = new Talk({ name: 'desk', url: server.url, ...settings }, origin);
  llm.provider.reply({ calls: [{ name: 'desk_report', input: { city: 'Rome' } }] }, { text: 'Done.' });
}

const begun =
  (options?: ModernTask['options']): ModernTool['call'] =>
  () =>
    server.newTask(options);

/** What the model has read as the result of its call. */
const read = (): unknown => {
  const { input } = llm.provider.requests.at(-1)?.body as { input: { type?: string; output?: string }[] };
  return input.find(({ type }) => type === 'function_call_output')?.output;
};

const stateOf = (outputs: AgentOutput[]) => summaryOf(outputs).status;
const calls = (): number => server.calls.length;
const get = (): number => server.methods.filter((method) => method === 'tasks/get').length;

describe('a tool that answers with a task', () => {
  it('is called once: the run is suspended, and any worker goes on with the same task', async () => {
    await begin(begun(SLOW));
    expect(await talk.waits()).toMatchObject({ taskIds: [], wakeInMs: 5_000 });
    const [task] = server.tasks.values() as unknown as [ModernTask];
    expect(talk.journal.entries.at(-1)?.value).toMatchObject({
      kind: 'remote',
      remote: { server: 'desk', url: server.url, tool: 'report', task: { taskId: task.taskId, ttlMs: null } },
    });
    const { length } = server.methods;
    await talk.waits();
    // A look at the task needs no list of tools.
    expect(server.methods.slice(length)).toEqual(['tasks/get']);
    task.complete(says('the report'));
    expect(stateOf(await talk.run())?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(read()).toBe('the report');
    expect([calls(), llm.provider.requests.length]).toEqual([1, 2]);
  });

  it('has its id in the journal before its state is read', async () => {
    await begin(begun(SLOW));
    const append = talk.journal.append.bind(talk.journal);
    const order: string[] = [];
    talk.journal.append = async (value, record) => {
      if ((value as { kind: string }).kind === 'remote') order.push(`journal, ${get()} looks`);
      return append(value, record);
    };
    await talk.waits();
    expect(order).toEqual(['journal, 0 looks']);
    expect(get()).toBe(1);
  });

  it('that is soon done needs no suspension', async () => {
    await begin(() => {
      const task = server.newTask();
      void server.until(() => task.gets > 0).then(() => task.complete(says('quick')));
      return task;
    });
    expect(stateOf(await talk.run())?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(read()).toBe('quick');
  });

  it.each([
    [
      'is done with an error',
      (task: ModernTask) => task.complete({ ...says('no room'), isError: true }),
      'no room',
    ],
    [
      'fails',
      (task: ModernTask) => task.fail({ code: -32603, message: 'rate limit' }),
      'The call of report at desk failed: its task has failed: "rate limit"',
    ],
    [
      'is canceled there',
      (task: ModernTask) => task.set('cancelled'),
      'The call of report at desk failed: its task was canceled there',
    ],
    [
      'is gone',
      ({ taskId }: ModernTask) => server.tasks.delete(taskId),
      'The call of report at desk failed: it no longer knows the task of this call, so its result is not known: "Failed to retrieve task: Task not found"',
    ],
  ])('and %s: the model reads it', async (_, end, result) => {
    await begin(begun(SLOW));
    await talk.waits();
    end(await server.task());
    expect(stateOf(await talk.run())?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(read()).toBe(result);
    expect(calls()).toBe(1);
  });

  it('that outlives its time is given up', async () => {
    await begin(begun({ pollIntervalMs: 50, ttlMs: 10 }));
    await talk.waits();
    for (const { value } of talk.journal.entries) {
      const { remote } = value as { remote?: { task: { receivedAt: string } } };
      if (remote) remote.task.receivedAt = new Date(Date.now() - 120_000).toISOString();
    }
    await talk.run();
    expect(read()).toContain('its task has not ended in its time, so its result is not known');
  });

  it.each([
    ['works', {}],
    ['asks nothing', { status: 'input_required', inputRequests: {} }],
    ['has a time without an end', { ttlMs: Number.MAX_VALUE }],
  ])('that %s for a month is given up', async (_, more) => {
    await begin(begun({ pollIntervalMs: 50, ...more }));
    await talk.waits();
    for (const { value } of talk.journal.entries) {
      const { remote } = value as { remote?: { task: { receivedAt: string } } };
      if (remote) remote.task.receivedAt = new Date(Date.now() - 31 * 86_400_000).toISOString();
    }
    await talk.run();
    expect(read()).toContain('its task has not ended in its time, so its result is not known');
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
    task.complete(says('the report'));
    expect(summaryOf(await talk.run()).artifacts['call-1-1']?.data).toMatchObject({ ok: true });
  });

  /** Stops a run that polls its task, as a cancel or a worker does. @returns the task of the server */
  const stopped = async (reason: string) => {
    const stop = new AbortController();
    const running = talk.run(stop.signal);
    const task = await server.task();
    await server.until(() => task.gets > 0);
    stop.abort(reason);
    await running.catch(() => undefined);
    return task;
  };

  it('is canceled with the task of Baton', async () => {
    await begin(begun());
    const task = await stopped('canceled');
    await server.until(() => task.cancels === 1);
  });

  it('is not canceled with a fork: the task that it forks may still need it', async () => {
    await begin(begun(), {}, { taskIds: ['first'], history: [], copied: 0 });
    await stopped('canceled');
    expect(server.methods).not.toContain('tasks/cancel');
  });

  it('is not canceled when a worker shuts down', async () => {
    await begin(begun());
    const task = await stopped('shutdown');
    task.complete(says('the report'));
    await talk.run();
    expect([task.cancels, calls()]).toEqual([0, 1]);
    expect(read()).toBe('the report');
  });

  it('waits for a server that is away', async () => {
    await begin(begun(SLOW));
    await talk.waits();
    const task = await server.task();
    await server.stop();
    expect(await talk.waits()).toMatchObject({ wakeInMs: 30_000 });
    await talk.waits();
    const away = talk.journal.entries.filter(({ value }) =>
      JSON.stringify(value).includes('unreachableSince'),
    );
    expect(away).toHaveLength(1);
    await server.start();
    task.complete(says('the report'));
    await talk.run();
    expect(read()).toBe('the report');
  });

  it('whose worker dies before the answer is not called again, where the settings say so', async () => {
    await begin(begun(SLOW), { neverRepeat: 'all' });
    const append = talk.journal.append.bind(talk.journal);
    talk.journal.append = (value, record) =>
      (value as { kind: string }).kind === 'remote'
        ? Promise.reject(new Error('died'))
        : append(value, record);
    await expect(talk.run()).rejects.toThrow('died');
    talk.journal.append = append;
    await talk.run();
    expect(read()).toContain('Whether "desk_report" was carried out is not known');
    expect(calls()).toBe(1);
  });
});

const link = {
  method: 'elicitation/create',
  params: { mode: 'url', message: 'Sign the contract.', url: 'https://sign.example/c/1' },
};
const asks = (outputs: AgentOutput[]) => {
  const { state, text } = stateOf(outputs) ?? {};
  expect(state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
  return text;
};

describe('a task of a tool that asks', () => {
  it('has the answer of the caller, from any worker, once', async () => {
    await begin(begun(SLOW));
    await talk.waits();
    const task = await server.task();
    task.ask({ who: form('Who are you?') });
    const text = asks(await talk.run());
    expect(text).toContain('desk_report of the server desk asks: Who are you?');
    await talk.say([jsonPart({ name: 'Ada' })]).catch(() => undefined);
    expect(task.updates).toEqual([{ who: { action: 'accept', content: { name: 'Ada' } } }]);
    // The server has not processed the answer yet: the question is not asked again.
    await talk.waits();
    task.complete(says('hello Ada'));
    expect(stateOf(await talk.run())?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(read()).toBe('hello Ada');
    expect([task.updates.length, calls()]).toEqual([1, 1]);
  });

  it('reads a refusal as one', async () => {
    await begin(begun(SLOW));
    await talk.waits();
    const task = await server.task();
    task.ask({ who: form('Who are you?') });
    await talk.run();
    await talk.say('no').catch(() => undefined);
    expect(task.updates).toEqual([{ who: { action: 'decline' } }]);
  });

  it('asks again after an answer that its form does not take, and does not get that answer', async () => {
    await begin(begun(SLOW));
    await talk.waits();
    const task = await server.task();
    task.ask({ who: form('Who are you?') });
    await talk.run();
    expect(asks(await talk.say([jsonPart({ name: 7 })]))).toContain('The answer is not valid');
    expect(task.updates).toEqual([]);
    await talk
      .say([jsonPart({ approval: { callId: 'call-1-1/who', approved: true, input: { name: 'Ada' } } })])
      .catch(() => undefined);
    expect(task.updates).toEqual([{ who: { action: 'accept', content: { name: 'Ada' } } }]);
  });

  it('is answered by a person, and by no agent', async () => {
    await begin(begun(SLOW));
    await talk.waits();
    const task = await server.task();
    task.ask({ who: form('Who are you?') });
    await talk.run();
    asks(await talk.say([jsonPart({ name: 'Ada' })], SENT_BY_AGENT));
    expect(task.updates).toEqual([]);
  });

  it('names the host of an address, and the address', async () => {
    await begin(begun(SLOW));
    await talk.waits();
    const task = await server.task();
    task.ask({ sign: link });
    expect(asks(await talk.run())).toContain('open an address of sign.example: https://sign.example/c/1');
    await talk.say('yes').catch(() => undefined);
    expect(task.updates).toEqual([{ sign: { action: 'accept' } }]);
  });

  it.each([
    ['a model', { method: 'sampling/createMessage', params: {} }, 'sampling/createMessage'],
    [
      'for an inner address',
      { ...link, params: { ...link.params, url: 'file:///etc/passwd' } },
      'not on the web',
    ],
    [
      'with a reference',
      {
        ...form(''),
        params: { message: '', requestedSchema: { type: 'object', properties: { a: { $ref: 'http://x' } } } },
      },
      'no flat object',
    ],
  ])('%s: the model reads it', async (_, request, result) => {
    await begin(begun(SLOW));
    await talk.waits();
    (await server.task()).ask({ it: request });
    await talk.run();
    expect(read()).toContain(result);
  });
});

describe('a call that the server answers with a question', () => {
  it('is repeated with the answer and the state of the server, from any worker', async () => {
    await begin((_, { inputResponses, requestState }) =>
      inputResponses === undefined
        ? { resultType: 'input_required', inputRequests: { who: form('Who are you?') }, requestState: 'a"ö' }
        : says(`${requestState} ${JSON.stringify(inputResponses)}`),
    );
    asks(await talk.run());
    expect(stateOf(await talk.say([jsonPart({ name: 'Ada' })]))?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(read()).toBe('a"ö {"who":{"action":"accept","content":{"name":"Ada"}}}');
    expect(server.calls.map(({ input, meta }) => [input, meta['baton/effectKey']])).toEqual(
      Array(2).fill([{ city: 'Rome' }, server.calls[0]?.meta['baton/effectKey']]),
    );
  });

  it('may ask a second question with the same key', async () => {
    await begin((_, { requestState }) =>
      requestState === 'two'
        ? says('done')
        : {
            resultType: 'input_required',
            inputRequests: { q: form(requestState === undefined ? 'First?' : 'Second?') },
            requestState: requestState === undefined ? 'one' : 'two',
          },
    );
    expect(asks(await talk.run())).toContain('First?');
    expect(asks(await talk.say([jsonPart({ name: 'a' })]))).toContain('Second?');
    // A worker that dies here must not take the first answer for the second question.
    await talk.say([jsonPart({ name: 'b' })]);
    expect(read()).toBe('done');
    expect(calls()).toBe(3);
  });

  it('is sent again at once if the server only needs its state back', async () => {
    await begin((_, { requestState }) =>
      requestState === undefined
        ? { resultType: 'input_required', requestState: 'later' }
        : says(requestState),
    );
    await talk.run();
    expect(read()).toBe('later');
  });

  it('is given up when the server has wanted that twenty times', async () => {
    await begin((_, { requestState }) => ({
      resultType: 'input_required',
      requestState: `${String(requestState)}x`,
      ...(requestState === undefined && { inputRequests: { who: form('Who?') } }),
    }));
    asks(await talk.run());
    for (const { value } of talk.journal.entries) {
      const { remote } = value as { remote?: { rounds: number } };
      if (remote) remote.rounds = 20;
    }
    await talk.say([jsonPart({ name: 'Ada' })]);
    expect(read()).toContain('it has wanted the call again more than 20 times');
    expect(calls()).toBe(2);
  });
});
