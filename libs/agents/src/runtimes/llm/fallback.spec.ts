import { TaskState } from '@baton/a2a';
import { COMMAND_LINE } from '@baton/config';
import { MemoryJournal } from '../../../../../test/support/agents/turns.js';
import { calledUrls } from '../../called-urls.js';
import { secretUses } from '../../secret-uses.js';
import { KEY, LlmBench, reply, summaryOf, toolOf } from './llm-runtime.fixture.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_FAILED: FAILED } = TaskState;
const weather = { name: 'weather', input: { city: 'Bern' } };

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const small = (fields: Record<string, unknown> = {}) => ({
  model: 'openai-compatible/small',
  baseUrl: bench.provider.url,
  key: 'mine',
  ...fields,
});

const asked = () => bench.provider.requests.map(({ model }) => model);

const modelsIn = ({ entries }: MemoryJournal) =>
  entries.flatMap(({ value }) => {
    const { kind, model } = value as { kind: string; model?: string };
    return model === undefined ? [] : [`${kind} ${model}`];
  });

describe('an agent with a fallback model', () => {
  it.each([
    ['is overloaded', { status: 529 }, {}],
    ['has a limit of requests', { status: 429 }, {}],
    ['asks to wait for long', { status: 429, headers: { 'retry-after': '3600' } }, {}],
    ['falls silent', { text: ['a', 'b'], fault: { kind: 'stall' as const, after: 4 } }, { stall: '100ms' }],
    ['breaks off', { text: ['a', 'b'], fault: { kind: 'break' as const, after: 4 } }, {}],
  ])('asks it in the same step if the model %s, and no word is said twice', async (_, failing, config) => {
    bench.provider.answer(({ model }) => (model === 'small' ? { text: 'hello' } : failing));
    const journal = new MemoryJournal();
    const turn = bench.turn({ ...config, retries: 1, fallback: [small()] }, { journal });
    const { artifacts, status, usage } = summaryOf(await bench.run(turn));
    expect(artifacts).toEqual({ 'reply-1': reply('hello') });
    expect(status).toEqual({ state: COMPLETED });
    expect(usage).toMatchObject({ model: 'openai-compatible/small' });
    expect(asked().at(-1)).toBe('small');
    expect(modelsIn(journal).at(0)).toBe('failed-call openai/gpt-5-mini');
    expect(modelsIn(journal).at(-1)).toBe('step openai-compatible/small');
    // What is counted and priced.
    expect(bench.tokens.spent.at(-1)).toMatchObject({ model: 'openai-compatible/small', inputTokens: 10 });
    expect((await bench.metrics.render()).body).toContain(
      'baton_model_fallbacks_total{provider="openai-compatible",model="small"}',
    );
  });

  it('does not ask it after an error of the request or of the key', async () => {
    for (const status of [400, 401]) {
      bench.reset();
      bench.provider.reply({ status, error: 'no' });
      const said = summaryOf(await bench.say({ fallback: [small()] }));
      expect(said.status).toMatchObject({ state: FAILED, text: expect.stringContaining(`(${status})`) });
      expect(asked()).toEqual(['gpt-5-mini']);
    }
  });

  it('names each model that did not answer', async () => {
    bench.provider.answer(() => ({ status: 503, error: 'down' }));
    const fallback = [small({ key: 'absent' }), small({ model: 'openai-compatible/other' })];
    const { status } = summaryOf(await bench.say({ retries: 1, fallback }));
    expect(status).toEqual({
      state: FAILED,
      text:
        'No model of the agent has answered. openai failed (503): down. Try again later. It was tried 2 times. ' +
        'There is no key for openai-compatible: set the secret "absent" on the page Secrets of the console, or with ' +
        `${COMMAND_LINE} secrets set absent < file. ` +
        'openai-compatible failed (503): down. Try again later. It was tried 2 times.',
    });
    expect(asked()).toEqual(['gpt-5-mini', 'gpt-5-mini', 'other', 'other']);
  });

  it('stays with it until the end of the turn, also after the death of the worker', async () => {
    bench.tools.push(toolOf('weather', () => 'sun'));
    bench.provider.answer(({ model, body }) => {
      if (model !== 'small') return { status: 503 };
      return JSON.stringify(body).includes('sun') ? { text: 'sunny' } : { calls: [weather] };
    });
    const journal = new MemoryJournal();
    const turn = bench.turn({ retries: 0, fallback: [small()] }, { journal });
    const dead = new AbortController();
    for await (const output of bench.runtime.run(turn, dead.signal)) {
      // The result of the call is stored now.
      if (output.$case === 'artifactUpdate') break;
    }
    dead.abort('lease-lost');
    expect(asked()).toEqual(['gpt-5-mini', 'small']);
    const { status } = summaryOf(await bench.run({ ...turn, attempt: 2 }));
    expect(status).toEqual({ state: COMPLETED });
    expect(asked()).toEqual(['gpt-5-mini', 'small', 'small']);
  });

  it('goes back to the first model if the fallback is overloaded, too', async () => {
    bench.tools.push(toolOf('weather', () => 'sun'));
    let isDown = true;
    bench.provider.answer(({ model }) => {
      if (model !== 'small') return isDown ? { status: 503 } : { text: 'sunny' };
      if (!isDown) return { status: 503 };
      isDown = false;
      return { calls: [weather] };
    });
    const { artifacts, status } = summaryOf(await bench.say({ retries: 0, fallback: [small()] }));
    expect(status).toEqual({ state: COMPLETED });
    expect(artifacts['reply-2']).toEqual(reply('sunny'));
    expect(asked()).toEqual(['gpt-5-mini', 'small', 'small', 'gpt-5-mini']);
  });

  it('does not send it the reasoning and the signatures of another model', async () => {
    bench.tools.push(toolOf('weather', () => 'sun'));
    bench.provider.reply({ reasoning: 'I think', text: 'I look', calls: [weather] });
    bench.provider.answer(({ model }) => (model === 'small' ? { text: 'sunny' } : { status: 529 }));
    const config = {
      model: 'anthropic/claude-sonnet-4-5',
      reasoning: 'low',
      retries: 0,
      fallback: [small()],
    };
    const { status } = summaryOf(await bench.say(config));
    expect(status).toEqual({ state: COMPLETED });
    const [, own, fallback] = bench.provider.requests.map(({ body }) => JSON.stringify(body));
    expect(own).toContain('signed');
    expect(fallback).not.toMatch(/signed|I think/);
    expect(fallback).toContain('I look');
    expect(fallback).toContain('sun');
  });

  it('has settings of its own for it', async () => {
    bench.provider.answer(({ model }) => (model === 'small' ? { text: 'ok' } : { status: 503 }));
    const fallback = [small({ temperature: 0.5, maxOutputTokens: 77 })];
    await bench.say({ retries: 0, reasoning: 'high', maxOutputTokens: 5000, fallback });
    const body = bench.provider.requests.at(-1)?.body as object;
    expect(body).toMatchObject({ model: 'small', temperature: 0.5, max_tokens: 77 });
    expect(body).not.toHaveProperty('reasoning_effort');
    expect(bench.provider.requests.at(-1)?.headers.authorization).toBe(`Bearer ${KEY}`);
  });
});

it('names the secrets and the addresses of fallback models', () => {
  const config = { model: 'openai/m', fallback: [{ model: 'anthropic/m' }, small({ model: 'openai/n' })] };
  const definition = { runtime: 'llm', config };
  expect(secretUses(definition)).toEqual([
    { field: 'config.model', secret: 'openai', destinations: ['https://api.openai.com'] },
    { field: 'config.fallback[0].model', secret: 'anthropic', destinations: ['https://api.anthropic.com'] },
    { field: 'config.fallback[1].baseUrl', secret: 'mine', destinations: [bench.provider.origin] },
  ]);
  expect(calledUrls(definition)).toEqual([
    { field: 'config.model', url: 'https://api.openai.com/v1' },
    { field: 'config.fallback[0].model', url: 'https://api.anthropic.com/v1' },
    { field: 'config.fallback[1].baseUrl', url: bench.provider.url },
  ]);
});

describe('provider options', () => {
  it.each<[string, object, object, Record<string, unknown>?]>([
    ['openai/gpt-5-mini', { openai: { serviceTier: 'flex' } }, { service_tier: 'flex', store: false }],
    ['openai/gpt-5-mini', { openai: { service_tier: 'flex' } }, { service_tier: 'flex' }, { api: 'chat' }],
    ['anthropic/claude-sonnet-4-5', { anthropic: { effort: 'low' } }, { output_config: { effort: 'low' } }],
    [
      'google/gemini-3-flash',
      { google: { labels: { team: 'blue' } } },
      { labels: { team: 'blue' } },
      { reasoning: 'low' },
    ],
    ['openai-compatible/m', { openaiCompatible: { top_k: 3 } }, { top_k: 3 }, { key: 'mine' }],
  ])('of %s go to the provider: %j', async (model, providerOptions, body, more = {}) => {
    bench.provider.reply({ text: 'ok' });
    await bench.say({ model, providerOptions, ...more });
    expect((await bench.provider.request(1)).body).toMatchObject(body);
  });
});
