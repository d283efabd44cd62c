import { llmConfig } from './llm-config.js';

describe('the settings of an llm agent', () => {
  it('have standard values for all but the model', () => {
    expect(llmConfig({ model: 'openai/gpt-5-mini' })).toEqual({
      model: 'openai/gpt-5-mini',
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
  ])('%j: %s', (raw, reason) => {
    expect(() => llmConfig(raw)).toThrow(reason);
  });
});
