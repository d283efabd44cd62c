import { featuresOf } from './model-features.js';
import { LlmBench, summaryOf } from './llm-runtime.fixture.js';

describe('the amount of reasoning', () => {
  let bench: LlmBench;
  beforeAll(async () => {
    bench = await LlmBench.start();
  });
  afterEach(() => bench.reset());
  afterAll(() => bench.stop());

  const asked = async (config: object): Promise<object> => {
    bench.provider.reply({ text: 'ok' });
    const { status } = summaryOf(await bench.say({ key: 'mine', ...config }));
    expect(status?.text).toBeUndefined();
    return (await bench.provider.request(1)).body as object;
  };

  it.each([
    ['openai/gpt-5-mini', { reasoning: { effort: 'medium' } }],
    ['openai/our-own-name', { reasoning: { effort: 'medium' }, include: ['reasoning.encrypted_content'] }],
    ['openai-compatible/m', { reasoning_effort: 'medium' }],
    ['google/gemini-2.5-flash', { generationConfig: { thinkingConfig: { thinkingBudget: 8192 } } }],
    ['google/gemini-3-flash', { generationConfig: { thinkingConfig: { thinkingLevel: 'medium' } } }],
    ['google/gemini-flash-latest', { generationConfig: { thinkingConfig: { thinkingLevel: 'medium' } } }],
    ['anthropic/claude-3-7-sonnet-latest', { thinking: { type: 'enabled', budget_tokens: 8192 } }],
    ['anthropic/claude-opus-4-5', { thinking: { type: 'enabled', budget_tokens: 8192 } }],
    ['anthropic/claude-sonnet-4-20250514', { thinking: { type: 'enabled', budget_tokens: 8192 } }],
    ['anthropic/claude-opus-4-6', { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } }],
    ['anthropic/claude-opus-4-7', { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } }],
    ['anthropic/claude-opus-5-5', { thinking: { type: 'adaptive' }, output_config: { effort: 'medium' } }],
    ['anthropic/MiniMax-M2', { thinking: { type: 'enabled', budget_tokens: 8192 } }],
  ])('is sent to %s as %j', async (model, body) => {
    expect(await asked({ model, reasoning: 'medium' })).toMatchObject(body);
  });

  it('is sent to OpenAI chat completions of a reasoning model, which call the maximum by another name', async () => {
    const body = await asked({
      model: 'openai/gpt-5-mini',
      api: 'chat',
      reasoning: 'low',
      maxOutputTokens: 900,
    });
    expect(body).toMatchObject({ reasoning_effort: 'low', max_completion_tokens: 900 });
    expect(body).not.toHaveProperty('max_tokens');
    // Servers that are compatible may not know it.
    expect(body).not.toHaveProperty('store');
  });

  it('is part of maxOutputTokens', async () => {
    const settings = { model: 'anthropic/claude-sonnet-4-5', reasoning: 'high', maxOutputTokens: 8000 };
    const thinking = { type: 'enabled', budget_tokens: 4000 };
    expect(await asked(settings)).toMatchObject({ max_tokens: 8000, thinking });
  });

  it('is left out in a step without room for it', async () => {
    const settings = { model: 'anthropic/claude-sonnet-4-5', reasoning: 'high', maxOutputTokens: 1500 };
    const body = await asked(settings);
    expect(body).toMatchObject({ max_tokens: 1500 });
    expect(body).not.toHaveProperty('thinking');
  });

  it('and other settings that a model does not take are left out, of agents that were saved before', async () => {
    const body = await asked({ model: 'openai/gpt-4.1', api: 'chat', reasoning: 'low' });
    expect(JSON.stringify(body)).not.toContain('reasoning');
    bench.reset();
    expect(await asked({ model: 'openai/gpt-5', api: 'chat', temperature: 1 })).not.toHaveProperty(
      'temperature',
    );
  });
});

it.each([
  ['anthropic', 'claude-opus-4-10', 'adaptive'],
  ['anthropic', 'anthropic/claude-opus-4.5', 'budget'],
  ['anthropic', 'us.anthropic.claude-opus-4-7-v1:0', 'adaptive'],
  ['anthropic', 'claude-haiku-4-5-20251001', 'budget'],
  ['anthropic', 'claude-sonnet-5', 'adaptive'],
  ['anthropic', 'claude-fable-5-1', 'adaptive'],
  ['anthropic', 'claude-3-opus-20240229', 'none'],
  ['openai', 'o3', 'effort'],
  ['openai', 'gpt-6-sol', 'effort'],
  ['openai', 'gpt-5-chat-latest', 'none'],
  ['google', 'gemini-2.5-pro', 'budget'],
  ['google', 'gemini-3.1-pro-preview', 'level'],
])('%s/%s reasons by %s', (provider, name, reasoning) => {
  expect(featuresOf(provider, name).reasoning).toBe(reasoning);
});
