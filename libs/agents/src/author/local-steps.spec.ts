import { TaskState } from '@a2a-js/sdk';
import { AgentEvent, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { defineAgent } from './define-agent.js';
import { runExecutor } from './run-executor.js';
import type { ScriptedCall } from './scripted-models.js';
import { stepsOf } from './steps-of.js';
import type { DurableSteps, InputTimeout, StepOptions } from '../runtimes/executor/child/steps.js';

/** An executor that says what its steps give. */
const executorOf = (code: (steps: DurableSteps) => Promise<unknown>) => ({
  execute: async (request: RequestContext, bus: ExecutionEventBus) => {
    const { taskId, contextId } = request;
    const text = JSON.stringify(await code(stepsOf(request)));
    const message = { messageId: 'm', role: 2, parts: [{ content: { $case: 'text', value: text } }] };
    const status = { state: TaskState.TASK_STATE_COMPLETED, message };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status } as never));
  },
  canceled: 0,
  async cancelTask(): Promise<void> {
    this.canceled += 1;
    return Promise.resolve();
  },
});

describe('durable steps in a unit test', () => {
  it('run at once, and the test answers for the caller and for other agents', async () => {
    let tries = 0;
    const executor = executorOf(async ({ step, sleep, waitForInput, callAgent }) => {
      const at = await step('fails once', () => {
        tries += 1;
        if (tries === 1) throw new Error('not yet');
        return new Date(0);
      });
      await sleep('long', '300d');
      const { parts } = await waitForInput('name', 'Your name?');
      const { content } = await callAgent('ask', 'helper', 'help');
      return [at, parts[0]?.content?.value, content];
    });
    const { text } = await runExecutor(executor, 'hi', {
      answers: { name: 'Ada' },
      replies: { ask: { a: 1 } },
    });
    expect(text).toBe('["1970-01-01T00:00:00.000Z","Ada",{"a":1}]');
  });

  describe('with `replay`', () => {
    const run = (code: (steps: DurableSteps) => Promise<unknown>, more: object = {}) =>
      runExecutor(executorOf(code), 'hi', {
        replay: true,
        answers: { name: 'Ada' },
        replies: { ask: 1 },
        models: ['a', 'b'],
        ...more,
      });

    it('run the code again after each step, and no function of a step', async () => {
      let [runs, effects] = [0, 0];
      const { text, events } = await run(async (steps) => {
        runs += 1;
        const { step, sleep, waitForInput, callAgent, model, patched, history } = steps;
        const [one, two] = await Promise.all([
          step('one', () => (effects += 1)),
          step('two', () => (effects += 1)),
        ]);
        await sleep('nap', '1d');
        await waitForInput('name', 'Name?');
        await callAgent('ask', 'helper', 'help');
        await patched('later');
        await history();
        return [one, two, (await model({ model: 'openai/gpt-5-mini' }).generate('hi')).text];
      });
      expect([text, events.length, effects]).toEqual(['[1,2,"a"]', 1, 2]);
      // Once for the test, and after each of eight ends.
      expect(runs).toBe(9);
    });

    it('fail for code that takes another way the second time', async () => {
      let runs = 0;
      const fickle = async ({ step }: DurableSteps): Promise<unknown> => {
        runs += 1;
        await step('first', () => 1);
        return step(runs === 1 ? 'second' : 'third', () => 2);
      };
      await expect(run(fickle)).rejects.toThrow(
        'replay after the steps first, second: Step "third" is new, but an earlier attempt began "second" here',
      );
      let tries = 0;
      const forgetful = async ({ step }: DurableSteps): Promise<unknown> => {
        tries += 1;
        return tries === 1 ? step('only', () => 1) : 0;
      };
      await expect(run(forgetful)).rejects.toThrow('The code ends, but an earlier attempt began "only" here');
    });

    it('replay each execution, and code that has thrown and is undone', async () => {
      const undone: string[] = [];
      const failing = async ({ step }: DurableSteps): Promise<unknown> => {
        await step('pay', () => 1, { compensate: () => void undone.push('pay') });
        throw new Error('no seat');
      };
      await expect(run(failing)).rejects.toThrow('no seat');
      expect(undone).toEqual(['pay']);
      const counting = async ({ step, lastState, continueAs }: DurableSteps): Promise<unknown> => {
        const n = ((lastState as number | undefined) ?? 0) + (await step('one', () => 1));
        return n < 3 ? continueAs(n) : n;
      };
      expect((await run(counting)).text).toBe('3');
    });
  });

  it('have models that say what the test has written', async () => {
    const schema = { type: 'object' };
    const executor = executorOf(async ({ model }) => {
      const { generate, stream } = model({ model: 'openai/gpt-5-mini' });
      const [first, second] = [await generate('one'), await generate({ prompt: 'two', output: { schema } })];
      let streamed = '';
      for await (const text of stream('three').textStream) streamed += text;
      return [first.text, first.toolCalls, second.data, streamed];
    });
    const toolCalls = [{ name: 'look', input: { at: 'it' }, id: 'c' }];
    const models = [{ text: '1', toolCalls }, { data: { n: 2 } }, '3'];
    const { text } = await runExecutor(executor, 'hi', { models });
    expect(JSON.parse(text)).toEqual(['1', toolCalls, { n: 2 }, '3']);
    const asked: string[] = [];
    const echo = ({ messages }: ScriptedCall): string => {
      const content = messages.at(-1)?.content;
      asked.push(typeof content === 'string' ? content : '');
      return '{}';
    };
    await runExecutor(executor, 'hi', { models: echo });
    expect(asked).toEqual(['one', 'two', 'three']);
    await expect(runExecutor(executor, 'hi')).rejects.toThrow('add it to models');
  });

  it('have the history and the state of the context that the test gives', async () => {
    const executor = executorOf(async ({ history, contextState: state }) => {
      const { value, version } = await state.get('count');
      const late = await state.set('count', 9, { version: 7 });
      const set = await state.set('count', Number(value) + 1, { version });
      return [await history(), late, set, (await state.get('none')).version];
    });
    const history = [{ role: 'user' as const, content: 'before' }];
    const { text, contextState } = await runExecutor(executor, 'hi', {
      history,
      contextState: { count: 1, other: 'x' },
    });
    expect(JSON.parse(text)).toEqual([
      history,
      { isSet: false, value: 1, version: 1 },
      { isSet: true, version: 2 },
      0,
    ]);
    expect(contextState).toEqual({ count: 2, other: 'x' });
  });

  it('have tools that do what the test has written', async () => {
    const executor = executorOf(async ({ tools }) => {
      const { list, call } = await tools({ mcp: [] });
      return [list.map(({ name }) => name), await call('desk_look', { at: 'it' })];
    });
    const tools = { desk_look: ({ at }: { at: string }) => `saw ${at}` };
    const { text } = await runExecutor(executor, 'hi', { tools });
    expect(JSON.parse(text)).toEqual([['desk_look'], { ok: true, content: 'saw it' }]);
  });

  it('have tools that answer later: the code is left, and runs once more from its beginning', async () => {
    const seen: string[] = [];
    const executor = executorOf(async ({ tools, step, model }) => {
      seen.push('begins');
      const { generate } = model({ model: 'openai/gpt-5-mini' });
      const first = await generate('one');
      await step('order', () => seen.push('orders'));
      const { call } = await tools({ mcp: [] });
      const [slow, quick] = await Promise.all([call('slow', { at: 1 }), call('quick', {})]);
      return [first.text, slow.content, quick.content, (await generate('two')).text];
    });
    const made: string[] = [];
    const tools = {
      slow: ({ at }: { at: number }) => `slow ${made.push('slow')} ${at}`,
      quick: () => `quick ${made.push('quick')}`,
    };
    const given = { tools, later: ['slow'], models: ['one', 'two'] };
    const { text, journals, events } = await runExecutor(executor, 'hi', { ...given, replay: true });
    expect(JSON.parse(text)).toEqual(['one', 'slow 2 1', 'quick 1', 'two']);
    expect(seen.filter((each) => each === 'orders')).toHaveLength(1);
    expect(made).toEqual(['quick', 'slow']);
    expect(events).toHaveLength(1);
    const begun = seen.filter((each) => each === 'begins').length;
    expect(begun).toBe(2 + journals.length);
  });

  it('do not repeat what the code has published before a tool answers', async () => {
    const executor = defineAgent(async ({ tools, stream }) => {
      stream('Wait. ');
      const { call } = await tools({ mcp: [] });
      return String((await call('slow', {})).content);
    });
    const { text } = await runExecutor(executor, 'hi', { tools: { slow: () => 'Done.' }, later: ['slow'] });
    expect(text).toBe('Wait. Done.');
  });

  it('die the given number of times, to test the reaction of the code', async () => {
    let charges = 0;
    const code =
      (options: StepOptions) =>
      ({ step }: DurableSteps) =>
        step('charge', ({ key }) => `${key} ${++charges}`, options).catch((error: unknown) =>
          String((error as Error).cause),
        );
    const run = async (options: StepOptions, answer = 'no') => {
      charges = 0;
      const given = { crashes: ['charge'], answers: { charge: answer } };
      const { text } = await runExecutor(executorOf(code(options)), 'hi', given);
      return [text, charges];
    };
    expect(await run({})).toEqual(['"test-step-1 2"', 2]);
    expect(await run({ verify: () => ({ done: true, result: 'found' }) })).toEqual(['"found"', 1]);
    expect(await run({ verify: () => ({ done: false }) })).toEqual(['"test-step-1 2"', 2]);
    expect(await run({ onUnknown: 'ask' }, 'no')).toEqual(['"test-step-1 2"', 2]);
    expect(await run({ onUnknown: 'ask' }, 'yes')).toEqual(['', 1]);
    const [failure, made] = await run({ onUnknown: 'fail' });
    expect([String(failure).slice(0, 16), made]).toEqual(['"UnknownOutcome:', 1]);
  });

  it('go on after the journal of an earlier run, also with changed code that fits it', async () => {
    const ran: string[] = [];
    const note = (name: string) => () => ran.push(name);
    const first = executorOf(async ({ step }) => {
      await step('book', note('book'));
      return step('charge', note('charge'));
    });
    const { journals } = await runExecutor(first, 'hi');
    expect(journals).toHaveLength(2);
    // As from a file.
    const [booked, charged] = JSON.parse(JSON.stringify(journals)) as typeof journals;
    ran.length = 0;
    const second = executorOf(async ({ step }) => [
      await step('book', note('book')),
      await step('mail', note('mail')),
    ]);
    const gone = await runExecutor(second, 'hi', { journal: booked!, replay: true });
    expect([gone.text, ran, gone.journals.length]).toEqual(['[1,1]', ['mail'], 1]);
    const run = runExecutor(second, 'hi', { journal: charged! });
    await expect(run).rejects.toThrow(/does not fit the journal: .*mail.*charge/);
    const shorter = executorOf(async ({ step }) => step('book', note('book')));
    await expect(runExecutor(shorter, 'hi', { journal: charged! })).rejects.toThrow(
      'does not fit the journal',
    );
  });

  it('reject when the test cancels the task, and the run has the output so far', async () => {
    const executor = executorOf(async ({ step }) => {
      await step('book', () => 'room');
      return step(
        'wait',
        ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', reject)),
      );
    });
    const { events, journals } = await runExecutor(executor, 'hi', { cancelAt: 'wait' });
    expect([executor.canceled, events, journals.length]).toEqual([1, [], 1]);
    const deaf = executorOf(async ({ step }) => {
      await step('wait', () => undefined).catch(() => undefined);
      return new Promise(() => undefined);
    });
    await expect(runExecutor(deaf, 'hi', { cancelAt: 'wait' })).rejects.toThrow(
      'did not stop 2 s after the cancel',
    );
  });

  describe('that were finished when the test cancels the task', () => {
    const undone: unknown[] = [];
    const undo = (result: unknown, { key }: { key: string }) => undone.push([result, key]);
    const canceledAt = async (
      cancelAt: string,
      code: (steps: DurableSteps) => Promise<unknown>,
      more: object = {},
    ) => {
      undone.length = 0;
      return runExecutor(executorOf(code), 'hi', { cancelAt, ...more });
    };
    const order =
      (charge: StepOptions = {}) =>
      async ({ step }: DurableSteps) => {
        await step('book', () => 'room', { compensate: undo });
        await step('look', () => 'seen');
        await step('charge', () => 'money', charge);
        await step('mail', () => 'sent', { compensate: undo });
      };

    it('are undone by the code, the last one first, with result and key as in Baton', async () => {
      const run = await canceledAt('mail', order({ compensate: undo }));
      expect(undone).toEqual([
        ['money', 'test-step-5'],
        ['room', 'test-step-6'],
      ]);
      expect(run.undone).toEqual({ steps: ['charge', 'book'], unknown: ['mail'] });
      expect([run.text, run.journals.length]).toEqual(['', 3]);
    });

    it('are undone also if an earlier run has finished them', async () => {
      const code = order({ compensate: undo });
      const { journals } = await runExecutor(executorOf(code), 'hi');
      const [booked] = JSON.parse(JSON.stringify(journals)) as typeof journals;
      await canceledAt('charge', code, { journal: booked! });
      expect(undone.map((one) => (one as unknown[])[0])).toEqual(['room']);
    });

    it('leave one under way to `verify`, which decides whether it is undone as well', async () => {
      const keys: string[] = [];
      const verify =
        (done: boolean): StepOptions['verify'] =>
        ({ key }) => {
          keys.push(key);
          return done ? { done, result: 'found' } : { done };
        };
      const found = await canceledAt('charge', order({ compensate: undo, verify: verify(true) }));
      expect(undone.map((one) => (one as unknown[])[0])).toEqual(['found', 'room']);
      expect(found.undone).toEqual({ steps: ['charge', 'book'], unknown: [] });
      const absent = await canceledAt('charge', order({ compensate: undo, verify: verify(false) }));
      expect(undone.map((one) => (one as unknown[])[0])).toEqual(['room']);
      expect(absent.undone).toEqual({ steps: ['book'], unknown: [] });
      // Also once before its first try in each run.
      expect(new Set(keys)).toEqual(new Set(['test-step-3']));
    });

    it('are undone in a task of its own, whose words are dropped', async () => {
      const tasks: string[] = [];
      const execute = async (request: RequestContext, bus: ExecutionEventBus) => {
        const { taskId, contextId } = request;
        tasks.push(`${taskId} ${contextId}`);
        const text = { content: { $case: 'text', value: 'at work' } };
        const message = { messageId: 'm', role: 2, parts: [text] };
        const status = { state: TaskState.TASK_STATE_WORKING, message };
        bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status } as never));
        await order()(stepsOf(request));
      };
      const { text } = await runExecutor({ ...executorOf(order()), execute }, 'hi', { cancelAt: 'charge' });
      const [first = '', second = ''] = tasks;
      expect([text, tasks.length, first === second]).toEqual(['at work', 2, false]);
      expect(second.split(' ')[1]).toBe(first.split(' ')[1]);
    });

    it('have the error of a compensation that fails, and the others go on', async () => {
      const compensate = () => {
        throw new Error('no refund');
      };
      const { undone: task } = await canceledAt('mail', order({ compensate, backoff: 0 }));
      expect(undone).toHaveLength(1);
      expect([task?.steps, (task?.error as Error).name]).toEqual([['charge', 'book'], 'CompensationError']);
      expect((task?.error as Error).message).toContain('no refund');
    });

    it('are undone by their own list if the cancel comes while the code undoes them', async () => {
      const code = async (steps: DurableSteps) => {
        await order({ compensate: undo })(steps);
        throw new Error('nothing in stock');
      };
      const run = await canceledAt('compensate charge', code);
      expect(run.undone).toEqual({ steps: ['mail', 'charge', 'book'], unknown: [] });
      expect(undone.map((one) => (one as unknown[])[0])).toContain('room');
    });

    it('are left alone if none can be undone, and an execution that goes on has only its own', async () => {
      const none = await canceledAt('charge', async ({ step }) => {
        await step('book', () => 1);
        await step('charge', () => 2);
      });
      expect(none.undone).toBeUndefined();
      const second = await canceledAt('charge', async ({ step, continueAs, lastState }) => {
        if (lastState === undefined) {
          await step('first', () => 1, { compensate: undo });
          return continueAs(1);
        }
        await step('second', () => 2, { compensate: undo });
        return step('charge', () => 3);
      });
      expect(second.undone?.steps).toEqual(['second']);
    });

    it('have the error of those that the code no longer calls', async () => {
      let runs = 0;
      const run = canceledAt('charge', async ({ step }) => {
        runs += 1;
        if (runs > 1) return;
        await step('book', () => 'room', { compensate: undo });
        await step('charge', () => 'money');
      });
      const { undone: task } = await run;
      expect((task?.error as Error).message).toContain('the code no longer calls it');
    });
  });

  it('are compensated when the code throws', async () => {
    const undone: unknown[] = [];
    const undo = (result: unknown) => undone.push(result);
    const code = async ({ step }: DurableSteps) => {
      await step('book', () => 'room', { compensate: undo });
      await step('charge', () => 'money', { compensate: undo });
      throw new Error('nothing in stock');
    };
    await expect(runExecutor(executorOf(code), 'hi')).rejects.toThrow('nothing in stock');
    expect(undone).toEqual(['money', 'room']);
  });

  it('have a question time out for which the test has no answer, and begin anew', async () => {
    const executor = executorOf(async ({ step, waitForInput, continueAs, lastState = 0 }) => {
      const n = await step('add', () => Number(lastState) + 1);
      if (n < 3) return continueAs(n);
      const error = await waitForInput('name', 'Who?', { timeout: '1h' }).catch((thrown: unknown) => thrown);
      return [n, (error as InputTimeout).code, (error as InputTimeout).step];
    });
    expect((await runExecutor(executor, 'hi')).text).toBe('[3,"INPUT_TIMEOUT","name"]');
    expect((await runExecutor(executor, 'hi', { answers: { name: 'Ada' } })).text).toBe('[3,null,null]');
    expect(await runExecutor(executor, 'hi', { executions: 1 })).toMatchObject({ events: [], lastState: 1 });
    expect(await runExecutor(executor, 'hi', { executions: 2, lastState: 1 })).toMatchObject({
      text: '[3,"INPUT_TIMEOUT","name"]',
    });
    const endless = executorOf(async ({ continueAs }) => continueAs(null));
    await expect(runExecutor(endless, 'hi')).rejects.toThrow('set `executions`');
  });

  it('are checked as Baton checks them, and say what the test has left out', async () => {
    const refused = (code: (steps: DurableSteps) => Promise<unknown>) =>
      expect(runExecutor(executorOf(code), 'hi')).rejects;
    await refused(({ step }) => step('big', () => 'x'.repeat(300_000))).toThrow('at most 262144 bytes');
    await refused(({ waitForInput }) => waitForInput('name', 'Who?')).toThrow('add it to answers');
    await refused(({ callAgent }) => callAgent('ask', 'helper', 'help')).toThrow('add it to replies');
  });
});
