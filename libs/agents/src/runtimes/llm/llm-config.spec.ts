import { llmConfig, llmConfigSchema } from './llm-config.js';

describe('the settings of an llm agent', () => {
  it('take options of the provider', () => {
    const providerOptions = {
      openai: { serviceTier: 'flex', metadata: { budgetTokens: 1, tokens: ['a', null] } },
    };
    expect(llmConfig({ model: 'openai/m', providerOptions })).toMatchObject({ providerOptions });
  });

  it('have standard values for all but the model', () => {
    expect(llmConfig({ model: 'openai/gpt-5-mini' })).toEqual({
      model: 'openai/gpt-5-mini',
      fallback: [],
      promptCache: 'auto',
      compaction: { at: 0.8 },
      memory: { turns: 20, tokens: 8000 },
      steps: 10,
      budget: {},
      timeout: 120_000,
      firstToken: 60_000,
      stall: 30_000,
      retries: 3,
      tools: { mcp: [] },
      agents: [],
      delegation: {},
      functions: { timeout: 60_000, resultLimit: 50_000 },
      approvals: { guests: false, by: 'anybody' },
    });
  });

  it('take durations as text', () => {
    const { timeout, stall } = llmConfig({ model: 'openai/m', timeout: '1.5m', stall: '250ms' });
    expect({ timeout, stall }).toEqual({ timeout: 90_000, stall: 250 });
  });

  it.each([
    [{}, 'config.model: must be provider/model, and the provider one of openai, anthropic, google'],
    [{ model: 'gpt-5' }, 'config.model: must be provider/model'],
    [{ model: 'acme/gpt' }, 'config.model: must be provider/model'],
    [{ model: 'openai/m', modell: 1 }, 'config.modell: is not a setting'],
    [{ model: 'openai/m', budget: { token: 1 } }, 'config.budget.token: is not a setting'],
    [{ model: 'openai/m', budget: { tokens: 0 } }, 'config.budget.tokens: must be a whole number from 1 to'],
    [{ model: 'openai/m', temperature: 3 }, 'config.temperature: must be a number from 0 to 2'],
    [{ model: 'openai/m', timeout: 30 }, 'config.timeout: must be a duration such as 500ms, 30s or 2m'],
    [{ model: 'openai/m', stall: '0s' }, 'config.stall: must be from 1ms to 24h'],
    [{ model: 'openai/m', agents: ['Not A Slug'] }, 'config.agents: must be "all" or a list of slugs'],
    [
      { model: 'openai/m', delegation: { depth: 0 } },
      'config.delegation.depth: must be a whole number from 1 to',
    ],
    [{ model: 'openai/m', record: 'some' }, 'config.record: must be "none", "failed" or "all"'],
    [{ model: 'openai/m', memory: 'on' }, 'config.memory: must be "off" or {turns, tokens}'],
    [{ model: 'openai/m', baseUrl: 'ftp://x/' }, 'config.baseUrl: must be an http or https URL'],
    [{ model: 'openai-compatible/m' }, 'config.baseUrl: is needed with an openai-compatible model'],
    [{ model: 'anthropic/m', api: 'chat' }, 'config.api: is for openai models only'],
    [
      { model: 'openai/m', output: { schema: { type: 'string' } } },
      'config.output.schema: must be a JSON schema',
    ],
    [
      { model: 'openai/m', output: { schema: { type: 'object', title: 'x'.repeat(70_000) } } },
      'config.output.schema: is larger than 65536 bytes',
    ],
    [
      { model: 'anthropic/claude-3-5-haiku-latest', reasoning: 'low' },
      'config.reasoning: "claude-3-5-haiku-latest" does not reason: remove it, or choose another model',
    ],
    [{ model: 'openai/gpt-4.1', reasoning: 'low' }, 'config.reasoning: "gpt-4.1" does not reason'],
    [{ model: 'google/gemini-2.0-flash', reasoning: 'low' }, 'config.reasoning: "gemini-2.0-flash" does not'],
    [{ model: 'openai/gpt-5-pro', reasoning: 'low' }, 'config.reasoning: must be "high" with "gpt-5-pro"'],
    [
      { model: 'google/gemini-3-pro-preview', reasoning: 'medium' },
      'config.reasoning: must be "low" or "high" with "gemini-3-pro-preview"',
    ],
    [
      { model: 'openai/gpt-5-mini', temperature: 1 },
      'config.temperature: is not taken by "gpt-5-mini": remove it',
    ],
    [{ model: 'anthropic/claude-opus-4-7', topP: 1 }, 'config.topP: is not taken by "claude-opus-4-7"'],
    [
      { model: 'anthropic/claude-sonnet-4-5', reasoning: 'low', temperature: 1 },
      'config.temperature: is not taken together with reasoning: remove it',
    ],
    [
      { model: 'anthropic/claude-sonnet-4-5', temperature: 1, topP: 1 },
      'config.topP: is not taken together with temperature by "claude-sonnet-4-5": remove one of them',
    ],
    [{ model: 'anthropic/m', temperature: 1.5 }, 'config.temperature: must be a number from 0 to 1'],
    [
      { model: 'anthropic/claude-sonnet-4-5', reasoning: 'low', maxOutputTokens: 2000 },
      'config.maxOutputTokens: must be at least 2048 with reasoning, which is part of it',
    ],
    [{ model: 'openai/m', fallback: [{ model: 'm' }] }, 'config.fallback.0.model: must be provider/model'],
    [
      { model: 'openai/m', fallback: [{ model: 'openai/m', steps: 1 }] },
      'config.fallback.0.steps: is not a setting',
    ],
    [
      { model: 'openai/m', fallback: [{ model: 'openai-compatible/m' }] },
      'config.fallback.0.baseUrl: is needed',
    ],
    [
      { model: 'openai/gpt-4.1', temperature: 1, fallback: [{ model: 'openai/gpt-5-mini', temperature: 1 }] },
      'config.fallback.0.temperature: is not taken by "gpt-5-mini"',
    ],
    [
      { model: 'openai/m', fallback: Array.from({ length: 6 }, () => ({ model: 'openai/m' })) },
      'config.fallback: must have at most 5 models',
    ],
    [{ model: 'openai/m', providerOptions: [] }, 'config.providerOptions: must be options by the name'],
    [
      { model: 'openai/m', providerOptions: { anthropic: {} } },
      'config.providerOptions.anthropic: must be options of the model\'s provider: "openai"',
    ],
    [
      { model: 'openai/m', api: 'chat', providerOptions: { openai: { max_tokens: 9 } } },
      'config.providerOptions.openai.max_tokens: cannot be set by an agent: remove it',
    ],
    [
      { model: 'openai/m', providerOptions: { openai: { a: [{ apiKey: 'x' }] } } },
      'config.providerOptions.openai.a.0.apiKey: must not be a secret',
    ],
    [
      { model: 'openai/m', providerOptions: { openai: { user: 'sk-1234' } } },
      'config.providerOptions.openai.user: must not be a secret',
    ],
    [
      { model: 'openai/m', providerOptions: { openai: { user: new Date(0) } } },
      'config.providerOptions.openai.user: must be a JSON value',
    ],
    [
      { model: 'openai/m', providerOptions: { openai: { user: 'x'.repeat(17_000) } } },
      'config.providerOptions: must have at most 16384 characters of JSON',
    ],
  ])('%j: %s', (raw, reason) => {
    expect(() => llmConfig(raw)).toThrow(reason);
  });

  it('still run if they were saved before a rule about their model', () => {
    const config = { model: 'openai/gpt-5-mini', temperature: 1 };
    expect(llmConfigSchema.safeParse(config).success).toBe(true);
  });
});
