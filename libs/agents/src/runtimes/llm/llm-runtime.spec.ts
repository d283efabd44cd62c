import { TaskState } from '@baton/a2a';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { userMessage } from '../../../../../test/support/agents/turns.js';
import { jsonPart, plainTextPart } from '../../agent-runtime.js';
import { LlmBench, reply, summaryOf, toolOf } from './llm-runtime.fixture.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_FAILED: FAILED } = TaskState;

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const PROVIDERS = [
  ['openai/gpt-5-mini', {}],
  ['openai/gpt-4o', { api: 'chat' }],
  ['anthropic/claude-sonnet-4-5', {}],
  ['google/gemini-2.5-flash', {}],
  ['openai-compatible/llama3', { key: 'mine' }],
] as const;

describe.each(PROVIDERS)('%s', (model, more) => {
  it('streams its answer, with the prompt before the question, and reports its cost', async () => {
    bench.provider.reply({ text: ['Hel', 'lo ', 'you'], usage: { input: 12, output: 3 } });
    const { artifacts, status, usage } = summaryOf(await bench.say({ model, ...more, prompt: 'Be kind.' }));
    expect(artifacts).toEqual({ 'reply-1': reply('Hello you') });
    expect(status).toEqual({ state: COMPLETED });
    expect(usage).toMatchObject({ inputTokens: 12, outputTokens: 3, model });
    const { body, streamed } = await bench.provider.request(1);
    expect(streamed).toBe(true);
    const text = JSON.stringify(body);
    expect(text.indexOf('Be kind.')).toBeGreaterThan(0);
    expect(text).toContain('hi');
  });

  it('calls a tool and answers with its result', async () => {
    bench.tools.push(toolOf('weather', ({ city }: { city: string }) => ({ city, sky: 'clear' })));
    bench.provider.reply({ calls: [{ name: 'weather', input: { city: 'Bern' } }] }, { text: 'Clear sky.' });
    const { artifacts, status } = summaryOf(await bench.say({ model, ...more }));
    expect(artifacts).toMatchObject({
      'call-1-1': {
        kind: 'tool-call',
        data: { tool: 'weather', ok: true, input: { city: 'Bern' }, output: { city: 'Bern', sky: 'clear' } },
      },
      'reply-2': reply('Clear sky.'),
    });
    expect(status).toEqual({ state: COMPLETED });
    const { body } = await bench.provider.request(2);
    expect(JSON.stringify(body)).toContain('sky');
  });
});

it.each([
  ['openai/gpt-4o', { api: 'chat' }],
  ['anthropic/claude-sonnet-4-5', {}],
  ['google/gemini-2.5-flash', {}],
  ['openai-compatible/llama3', { key: 'mine' }],
] as const)(
  '%s is asked with the temperature or topP of the agent, and with none by default',
  async (model, more) => {
    const asked = async (settings: object): Promise<string> => {
      bench.provider.reset();
      bench.provider.reply({ text: 'ok' });
      await bench.say({ model, ...more, ...settings });
      return JSON.stringify((await bench.provider.request(1)).body);
    };
    expect(await asked({ temperature: 0.3 })).toMatch(/"temperature":0\.3[,}]/);
    expect(await asked({ topP: 0.8 })).toMatch(/"top_?[pP]":0\.8[,}]/);
    expect(await asked({})).not.toMatch(/temperature|top_?p/i);
  },
);

describe('the output of a model', () => {
  it('is kept apart from what it thinks', async () => {
    bench.provider.reply({ reasoning: ['Let me ', 'see'], text: 'Yes.' });
    const { artifacts } = summaryOf(await bench.say({ reasoning: 'low' }));
    expect(artifacts).toEqual({
      'reasoning-1': { kind: 'reasoning', text: 'Let me see', closed: true },
      'reply-1': reply('Yes.'),
    });
    expect((await bench.provider.request(1)).body).toMatchObject({
      reasoning: { effort: 'low' },
      store: false,
    });
  });

  it('makes far fewer events than it has words', async () => {
    bench.provider.reply({ text: Array.from({ length: 2000 }, (_, i) => `w${i} `) });
    const outputs = await bench.say();
    expect(summaryOf(outputs).artifacts['reply-1']?.text).toMatch(/^w0 w1 .* w1999 $/s);
    expect(outputs.length).toBeLessThan(200);
  });

  it('is data where the agent has a schema for it, and is asked for again until it is valid', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    bench.provider.reply({ text: 'I think it is 3' }, { text: '{"n": "3"}' }, { text: ['{"n"', ': 3}'] });
    const { artifacts, status } = summaryOf(await bench.say({ output: { schema } }));
    expect(artifacts).toEqual({ 'output-3': { kind: undefined, text: '', data: { n: 3 }, closed: true } });
    expect(status).toEqual({ state: COMPLETED });
    const [first, second, third] = bench.provider.requests;
    expect(first?.body).toMatchObject({ text: { format: { type: 'json_schema', schema } } });
    expect(JSON.stringify(second?.body)).toContain('it is not JSON');
    expect(JSON.stringify(third?.body)).toContain('/n must be integer');
  });

  it('fails the task if it is never of the schema', async () => {
    bench.provider.answer(() => ({ text: 'no' }));
    const { status, artifacts } = summaryOf(await bench.say({ output: { schema: { type: 'object' } } }));
    expect(status).toEqual({
      state: FAILED,
      text: "The model's answer is not of the agent's output schema: it is not JSON.",
    });
    expect(artifacts).toEqual({});
    expect(bench.provider.requests).toHaveLength(3);
  });

  it.each([
    [{ text: 'half', finish: 'length' }, 'cut off at the limit of its tokens: raise maxOutputTokens'],
    [{ text: 'half', finish: 'filter' }, "The provider's filter has stopped the answer"],
    [{ text: '' }, 'The model gave no answer.'],
  ] as const)('fails the task where it is not whole: %j', async (scripted, text) => {
    bench.provider.reply(scripted);
    const { status } = summaryOf(await bench.say());
    expect(status).toEqual({ state: FAILED, text: expect.stringContaining(text) as string });
  });
});

describe('what a model is given', () => {
  it('has its thoughts back together with the result of the call that came of them', async () => {
    for (const [model, kept] of [
      ['openai/gpt-5-mini', '"encrypted_content":"sealed"'],
      ['anthropic/claude-sonnet-4-5', '"signature":"signed"'],
    ] as const) {
      bench.reset();
      bench.tools.push(toolOf('weather', () => 'sun'));
      const calls = [{ name: 'weather', input: { city: 'Bern' } }];
      bench.provider.reply({ reasoning: 'Let me see', calls }, { text: 'Sun.' });
      const { status } = summaryOf(await bench.say({ model, reasoning: 'low' }));
      expect(status).toEqual({ state: COMPLETED });
      expect(JSON.stringify((await bench.provider.request(2)).body)).toContain(kept);
    }
  });

  it('is text, data and files as they are, and text files as text', async () => {
    const raw = (value: string, mediaType: string, filename: string) => ({
      content: { $case: 'raw' as const, value: Buffer.from(value) },
      metadata: undefined,
      mediaType,
      filename,
    });
    bench.provider.reply({ text: 'ok' });
    const parts = [
      plainTextPart('look'),
      jsonPart({ a: 1 }),
      raw('PNG', 'image/png', 'x.png'),
      raw('%PDF', 'application/pdf', 'x.pdf'),
      raw('a,b', 'text/csv', 'x.csv'),
    ];
    await bench.say({}, userMessage(parts));
    const { body } = await bench.provider.request(1);
    expect(body.input.at(-1).content).toEqual([
      { type: 'input_text', text: 'look' },
      { type: 'input_text', text: '{"a":1}' },
      { type: 'input_image', image_url: `data:image/png;base64,${Buffer.from('PNG').toString('base64')}` },
      {
        type: 'input_file',
        filename: 'x.pdf',
        file_data: `data:application/pdf;base64,${Buffer.from('%PDF').toString('base64')}`,
      },
      { type: 'input_text', text: 'x.csv:\na,b' },
    ]);
  });

  it('fails the task if the model does not take it', async () => {
    const video = {
      content: { $case: 'raw' as const, value: Buffer.from('x') },
      metadata: undefined,
      mediaType: 'video/mp4',
      filename: 'x.mp4',
    };
    const { status } = summaryOf(
      await bench.say({ model: 'anthropic/claude-sonnet-4-5' }, userMessage([video])),
    );
    expect(status?.state).toBe(FAILED);
    expect(status?.text).toMatch(
      /^anthropic does not take this in the model "claude-sonnet-4-5": .*video\/mp4/,
    );
  });

  it('is the bytes of a file at a URL, which the platform reads', async () => {
    const server = createServer((_, response) => response.setHeader('content-type', 'image/png').end('PNG'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const value = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x.png`;
    bench.provider.reply({ text: 'ok' });
    const file = {
      content: { $case: 'url' as const, value },
      metadata: undefined,
      mediaType: '',
      filename: '',
    };
    await bench.say({}, userMessage([file]));
    server.close();
    const { body } = await bench.provider.request(1);
    const image_url = `data:image/png;base64,${Buffer.from('PNG').toString('base64')}`;
    expect(body.input.at(-1).content).toEqual([{ type: 'input_image', image_url }]);
  });

  it('is counted by estimate, files by the piece', async () => {
    const raw = { content: { $case: 'raw' as const, value: Buffer.alloc(5_000_000) } };
    const image = { ...raw, metadata: undefined, mediaType: 'image/png', filename: '' };
    bench.provider.reply({ text: 'ok' });
    await bench.say({ maxOutputTokens: 10 }, userMessage([plainTextPart('x'.repeat(4000)), image]));
    expect(bench.tokens.reserved[0]).toBeGreaterThan(2000);
    expect(bench.tokens.reserved[0]).toBeLessThan(2200);
  });

  it('is a file at a URL only if the platform may call it', async () => {
    const url = (value: string) => ({
      content: { $case: 'url' as const, value },
      metadata: undefined,
      mediaType: 'image/png',
      filename: '',
    });
    const { status } = summaryOf(await bench.say({}, userMessage([url('http://10.0.0.1/x.png')])));
    expect(status?.state).toBe(FAILED);
    expect(status?.text).toContain('The file at 10.0.0.1 cannot be read');
    expect(bench.provider.requests).toHaveLength(0);
  });
});
