import { TokensExceeded } from '@baton/agents';
import { Logger, Metrics } from '@baton/telemetry';
import { TenantTokenBudget } from './tenant-token-budget.js';

function tokensOf(
  tokensPerDay: number | null,
  answers: { hasRoom?: boolean; fails?: boolean; isGone?: boolean } = {},
) {
  const asked: unknown[][] = [];
  const store = {
    reserve: (...values: unknown[]) => {
      asked.push(values);
      return Promise.resolve(answers.hasRoom ?? true);
    },
    record: (...values: unknown[]) => {
      asked.push(values);
      return answers.fails ? Promise.reject(new Error('no')) : Promise.resolve();
    },
  };
  const limits = {
    of: () => Promise.resolve({ tokensPerDay }),
    isGone: () => Promise.resolve(answers.isGone ?? false),
  };
  const metrics = new Metrics();
  const tokens = new TenantTokenBudget(store as never, limits as never, metrics, Logger.silent());
  const reserve = () => tokens.reserve('tenant-1', 'run-1', 100, 5000, new AbortController().signal);
  return { tokens, metrics, reserve, asked };
}

describe('the tokens of a tenant', () => {
  it('cost a tenant without a limit no look at what others have', async () => {
    const { reserve, asked } = tokensOf(null);
    await reserve();
    expect(asked).toEqual([]);
  });

  it('are asked for within the limit, and refused in words that name it', async () => {
    const { reserve, asked } = tokensOf(1000);
    await reserve();
    expect(asked).toEqual([[{ tenantId: 'tenant-1', runId: 'run-1', tokens: 100, forMs: 5000, max: 1000 }]]);
    const full = tokensOf(1000, { hasRoom: false });
    await expect(full.reserve()).rejects.toThrow(TokensExceeded);
    await expect(full.reserve()).rejects.toThrow(
      /^The limit tokensPerDay of this tenant, which is 1000, has no room/,
    );
    expect((await full.metrics.render()).body).toContain(
      'baton_limit_exceeded_total{limit="tokensPerDay"} 2',
    );
  });

  it('are noted, and nobody fails where that can not be done', async () => {
    const spent = { model: 'openai/m', inputTokens: 1, outputTokens: 2, cachedInputTokens: 0 };
    const { tokens, asked } = tokensOf(null);
    await tokens.record('tenant-1', 'run-1', spent);
    expect(asked).toEqual([['tenant-1', 'run-1', spent]]);
    await tokensOf(null, { fails: true }).tokens.record('tenant-1', 'run-1', spent);
  });

  it('are not noted for a tenant that is being deleted', async () => {
    const { tokens, asked } = tokensOf(null, { isGone: true });
    await tokens.record('tenant-1', 'run-1', {
      model: 'openai/m',
      inputTokens: 1,
      outputTokens: 2,
      cachedInputTokens: 0,
    });
    expect(asked).toEqual([]);
  });
});
