import { assertConfig } from '../runtime-configs.js';
import { turnSecrets } from '../../../../test/support/agents/turns.js';
import { openModel } from './llm/providers.js';
import { llmConfigSchema } from './llm/llm-config.js';
import { cardUrlOf } from './remote-a2a/remote-config.js';

const llm = (config: object) => () =>
  assertConfig({ runtime: 'llm', config: { model: 'openai-compatible/m', ...config } });
const mcp = (server: object) =>
  llm({ tools: { mcp: [{ name: 'a', url: 'http://a', ...server }] }, baseUrl: 'http://a' });
const slashes = '/'.repeat(500_000);

describe('settings that would take for ever', () => {
  it.each<[string, () => unknown, RegExp]>([
    ['a URL of slashes', llm({ baseUrl: `http://a${slashes}b` }), /config.baseUrl: .*2048/],
    ['a server of slashes', mcp({ url: `http://a${slashes}b` }), /mcp\[0\].url: .*2048/],
    ['a card of slashes', () => remote(`http://a${slashes}b`), /config.card: .*2048/],
    ['very many patterns', mcp({ allow: Array(100_000).fill('*') }), /allow: must be .*at most 200/],
    ['many stars', mcp({ approval: ['*a'.repeat(9)] }), /approval\[0\]: must have at most 8 stars/],
  ])('are refused by name: %s', (_what, check, message) => {
    expect(check).toThrow(message);
  });

  const remote = (card: string) => assertConfig({ runtime: 'remote-a2a', config: { card } });

  it('are no trouble where they were stored before there was a bound', async () => {
    const config = llmConfigSchema.parse({ model: 'openai-compatible/m', baseUrl: 'http://a' });
    const stored = { ...config, baseUrl: `http://a${slashes}b${slashes}` };
    await expect(openModel(stored, turnSecrets({}), fetch)).resolves.toHaveProperty('model');
    expect(cardUrlOf({ card: `http://a${slashes}b${slashes}` }).href).toMatch(/b\/\.well-known/);
  });
});
