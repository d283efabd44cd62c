import { type Message, TaskState, USAGE } from '@baton/a2a';
import { AgentEvent, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { Logger } from '@baton/telemetry';
import { generateText, jsonSchema, Output, stepCountIs, streamText, tool } from 'ai';
import { converseHere } from '../../../../../test/support/agents/executors.js';
import { MemoryJournal, summary, userMessage } from '../../../../../test/support/agents/turns.js';
import type { AgentOutput, Turn } from '../../agent-runtime.js';
import { stepsOf } from '../../author/steps-of.js';
import { KEY, LlmBench } from '../llm/llm-runtime.fixture.js';
import type { DurableSteps, CodeModelSettings } from './child/steps.js';
import { TurnModels } from './turn-models.js';

const { TASK_STATE_COMPLETED } = TaskState;

type Code = (steps: DurableSteps) => Promise<unknown>;
type Stored = Record<string, unknown>;

let llm: LlmBench;
let settings: CodeModelSettings;
let bench: Bench;
beforeAll(async () => {
  llm = await LlmBench.start();
  settings = { model: 'openai/gpt-5-mini', baseUrl: llm.provider.url };
});
beforeEach(() => {
  llm.reset();
  bench = new Bench();
});
afterAll(() => llm.stop());

/** A task of an agent in code whose attempts share a journal. */
class Bench {
  readonly journal = new MemoryJournal();
  outputs: AgentOutput[] = [];
  private attempt = 0;

  async run(code: Code, { crashAfter = Infinity } = {}): Promise<unknown> {
    this.outputs = [];
    let left = crashAfter;
    const { journal } = this;
    const write = (stored: () => Promise<void>): Promise<void> =>
      left-- > 0 ? stored() : Promise.reject(new Error('the worker has died'));
    const turn: Turn = {
      ...llm.turn(),
      attempt: ++this.attempt,
      journal: {
        read: () => journal.read(),
        append: (value: unknown, record?: string) => write(() => journal.append(value, record)),
        noteRemoteCall: () => Promise.resolve(),
        noteCompensable: () => Promise.resolve(),
        restart: (value: unknown) => write(() => journal.restart(value)),
      },
      records: { byDefault: 'all', hold: () => undefined },
    };
    const execute = async (context: RequestContext, bus: ExecutionEventBus): Promise<void> => {
      const text = JSON.stringify(await code(stepsOf(context)));
      const message: Message = userMessage(text);
      const status = { state: TASK_STATE_COMPLETED, message, timestamp: undefined };
      bus.publish(AgentEvent.statusUpdate({ taskId: 'task-1', contextId: 'c', metadata: undefined, status }));
    };
    const executor = { execute, cancelTask: () => Promise.resolve() };
    const models = new TurnModels(llm.models, llm.pool);
    const tools = { close: () => Promise.resolve() };
    const ports = { models, tools, limits: { depth: 1, tasks: 1 } } as never;
    const { signal } = new AbortController();
    for await (const output of converseHere(executor, turn, signal, Logger.silent(), ports))
      this.outputs.push(output);
    const said = summary(this.outputs).at(-1) as { text: string };
    return JSON.parse(said.text);
  }

  get entries(): Stored[] {
    return this.journal.entries.map(({ value }) => value as Stored);
  }
}

const messageOf = (error: unknown): string => (error as Error).message;
const prompts = (): unknown[] => llm.provider.requests.map(({ body }) => JSON.stringify(body));

describe('a call of a model in code', () => {
  const two: Code = async ({ model }) => {
    const { generate } = model(settings);
    const first = await generate('one');
    const second = await generate({ prompt: 'two', temperature: 0.5 });
    return [first.text, second.text, first.usage.outputTokens];
  };

  // A call writes three entries: it begins, the model has answered, the step has ended.
  it.each([0, 1, 2, 3, 4, 5])(
    'is not made again once the model has answered (crash after %i entries)',
    async (crashAfter) => {
      llm.provider.answer(({ body }) => ({
        text: JSON.stringify(body).includes('"two"') ? 'second' : 'first',
        usage: { input: 10, output: 4 },
      }));
      await expect(bench.run(two, { crashAfter })).rejects.toThrow('the worker has died');
      expect(await bench.run(two)).toEqual(['first', 'second', 4]);
      const made = prompts().filter((prompt) => String(prompt).includes('"one"')).length;
      // Only an answer that could not be stored is asked for again.
      expect(made).toBe(crashAfter === 1 ? 2 : 1);
      expect(llm.tokens.spent.length).toBe(llm.provider.requests.length);
    },
  );

  it('is metered, recorded and stored as one of an llm agent, and the end of the turn has its tokens', async () => {
    llm.provider.reply({ text: `I know ${KEY}.`, usage: { input: 10, output: 4 } });
    const answer = await bench.run(({ model }) => model({ ...settings, prompt: 'Be kind.' }).generate('hi'));
    expect(JSON.stringify(answer)).not.toContain(KEY);
    expect(answer).toMatchObject({
      text: 'I know [secret].',
      finishReason: 'stop',
      model: 'openai/gpt-5-mini',
    });
    const [, called] = bench.entries;
    expect(called).toMatchObject({
      event: 'called',
      kind: 'step',
      usage: { inputTokens: 10, outputTokens: 4 },
    });
    expect(JSON.parse(bench.journal.records.get(2)!)).toMatchObject({ sent: { instructions: 'Be kind.' } });
    expect(JSON.stringify([bench.entries, bench.journal.records.get(2)])).not.toContain(KEY);
    const end = bench.outputs.at(-1)!;
    expect(end.$case === 'statusUpdate' && end.value.metadata?.[USAGE]).toMatchObject({
      inputTokens: 10,
      model: 'openai/gpt-5-mini',
      metered: true,
    });
  });

  it('fails with the fault, the same in every attempt: the provider, the budget, the settings', async () => {
    const code: Code = async ({ model, step }) => {
      const failures = [
        await model({ ...settings, retries: 1 })
          .generate('hi')
          .catch(messageOf),
        await step('empty', () => (llm.tokens.isFull = true)).then(() =>
          model(settings).generate('hi').catch(messageOf),
        ),
        await model({ ...settings, temperature: 9 })
          .generate('hi')
          .catch(messageOf),
        await model({ ...settings, key: 'none' })
          .generate('hi')
          .catch(messageOf),
        await model({ ...settings, tools: {} } as never)
          .generate('hi')
          .catch(messageOf),
        await model(settings)
          .generate({
            messages: [
              {
                role: 'user',
                content: [{ type: 'file', data: 'http://a.example/x', mediaType: 'image/png' }],
              },
            ],
          })
          .catch(messageOf),
      ];
      await step('on', () => undefined);
      return failures;
    };
    llm.provider.answer(() => ({ status: 503, error: 'busy' }));
    await expect(bench.run(code, { crashAfter: 16 })).rejects.toThrow('died');
    const calls = llm.provider.requests.length;
    expect(calls).toBe(2);
    llm.tokens.isFull = false;
    const failures = (await bench.run(code)) as string[];
    expect(llm.provider.requests.length).toBe(calls);
    expect(failures).toEqual([
      expect.stringMatching(/^step "openai\/gpt-5-mini" failed: ModelError: .*2 times/),
      expect.stringContaining('TokensExceeded: no room in tokensPerDay'),
      expect.stringContaining('config.temperature: must be a number from 0 to 2'),
      expect.stringContaining('set the secret "none"'),
      expect.stringContaining('the settings of the model: tools is no setting'),
      expect.stringContaining('not with a URL'),
    ]);
    expect(bench.entries.filter(({ kind }) => kind === 'failed-call')).toHaveLength(2);
  });

  it('keeps to the budget of its settings', async () => {
    llm.provider.answer(() => ({ text: 'x', usage: { input: 90, output: 20 } }));
    const code: Code = async ({ model }) => {
      const { generate } = model({ ...settings, budget: { tokens: 100 } });
      await generate('one');
      return generate('two').catch(messageOf);
    };
    expect(await bench.run(code)).toContain('its budget of 100');
    expect(llm.provider.requests).toHaveLength(1);
  });

  it('gives JSON of a schema, and has a wrong answer corrected', async () => {
    const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    llm.provider.reply({ text: '{"n":"one"}' }, { text: '```json\n{"n":1}\n```' });
    const code: Code = async ({ model }) =>
      (await model(settings).generate({ prompt: 'count', output: { schema } })).data;
    await expect(bench.run(code, { crashAfter: 3 })).rejects.toThrow('died');
    expect(await bench.run(code)).toEqual({ n: 1 });
    expect(llm.provider.requests).toHaveLength(2);
    expect(prompts()[1]).toContain('Answer again');
  });

  it('streams its text, and an answer that is stored comes at once', async () => {
    llm.provider.reply({ text: ['a', 'b', 'c'] });
    const code: Code = async ({ model, step }) => {
      const { textStream, answer } = model(settings).stream('hi');
      const texts: string[] = [];
      for await (const text of textStream) texts.push(text);
      const count = await step('count', () => texts.length);
      return [texts.join(''), (await answer).text, count, texts.length];
    };
    await expect(bench.run(code, { crashAfter: 3 })).rejects.toThrow('died');
    const [text, whole, , last] = (await bench.run(code)) as unknown[];
    expect([text, whole, last]).toEqual(['abc', 'abc', 1]);
    expect(llm.provider.requests).toHaveLength(1);
  });
});

describe('a model for the AI SDK', () => {
  it('runs generateText with tools, and no call is made again after a crash', async () => {
    llm.provider.answer(({ body }) =>
      JSON.stringify(body).includes('function_call_output')
        ? { text: 'It is warm.', usage: { input: 5, output: 5 } }
        : { calls: [{ name: 'weather', input: { city: 'Bonn' } }], usage: { input: 5, output: 5 } },
    );
    const code: Code = async ({ model, step }) => {
      const weather = tool({
        description: 'The weather',
        inputSchema: jsonSchema<{ city: string }>({
          type: 'object',
          properties: { city: { type: 'string' } },
        }),
        execute: ({ city }) => step('weather', () => `warm in ${city}`),
      });
      const { text, steps, totalUsage } = await generateText({
        model: model(settings),
        system: 'Be brief.',
        prompt: 'How is it?',
        tools: { weather },
        stopWhen: stepCountIs(5),
      });
      return [text, steps.length, totalUsage.outputTokens];
    };
    // The first call has ended, and the tool has begun.
    await expect(bench.run(code, { crashAfter: 4 })).rejects.toThrow('died');
    expect(await bench.run(code)).toEqual(['It is warm.', 2, 10]);
    expect(llm.provider.requests).toHaveLength(2);
    expect(prompts()[1]).toContain('warm in Bonn');
  });

  it('runs streamText, and an object of a schema', async () => {
    llm.provider.reply({ text: 'hello' }, { text: '{"n":1}' });
    const code: Code = async ({ model }) => {
      const { textStream } = streamText({ model: model(settings), prompt: 'hi' });
      let text = '';
      for await (const piece of textStream) text += piece;
      const schema = jsonSchema<{ n: number }>({ type: 'object', properties: { n: { type: 'number' } } });
      const { output } = await generateText({
        model: model(settings),
        prompt: 'count',
        output: Output.object({ schema }),
      });
      return [text, output];
    };
    expect(await bench.run(code)).toEqual(['hello', { n: 1 }]);
  });
});
