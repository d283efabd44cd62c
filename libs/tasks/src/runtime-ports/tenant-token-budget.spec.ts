import { TokensExceeded } from '@baton/agents';
import type { FullCap } from '@baton/database';
import { Logger, Metrics } from '@baton/telemetry';
import { TenantTokenBudget } from './tenant-token-budget.js';

const RUN = '019abf5c-22e4-7d7a-9d4a-2f7c0e1b9a11';
const PRICES = {
  modelPrices: {
    'openai/*': { input: 1.25, output: 10 },
    'anthropic/*': { input: 1, cacheWrite: 2.5, output: 10 },
  },
  modelPricesCurrency: 'EUR',
};

function tokensOf(
  tokensPerDay: number | null,
  answers: { hasRoom?: boolean; fails?: boolean; isGone?: boolean; cap?: FullCap } = {},
) {
  const asked: unknown[][] = [];
  const store = {
    reserve: (...values: unknown[]) => {
      asked.push(values);
      const isOverTokens = answers.hasRoom === false;
      const refused = { isOverTokens, caps: answers.cap ? [answers.cap] : [] };
      return Promise.resolve(isOverTokens || answers.cap ? refused : undefined);
    },
    record: (...values: unknown[]) => {
      asked.push(values);
      return answers.fails ? Promise.reject(new Error('no')) : Promise.resolve();
    },
  };
  const limits = {
    get: () => Promise.resolve({ tokensPerDay }),
    isGone: () => Promise.resolve(answers.isGone ?? false),
    hasSpendingCaps: () => Promise.resolve(answers.cap !== undefined),
  };
  const metrics = new Metrics();
  const tokens = new TenantTokenBudget(store as never, limits as never, PRICES, metrics, Logger.silent());
  const call = { model: 'openai/m', inputTokens: 60, outputTokens: 40 };
  const reserve = (model = call.model) =>
    tokens.reserve('tenant-1', RUN, { ...call, model }, 5000, new AbortController().signal);
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
    expect(asked).toMatchObject([
      [{ tenantId: 'tenant-1', runId: RUN, id: RUN, tokens: 100, forMs: 5000, max: 1000 }],
    ]);
    const full = tokensOf(1000, { hasRoom: false });
    await expect(full.reserve()).rejects.toThrow(TokensExceeded);
    await expect(full.reserve()).rejects.toThrow(
      /^The limit tokensPerDay of this tenant, which is 1000, has no room/,
    );
    expect((await full.metrics.render()).body).toContain(
      'baton_limit_exceeded_total{limit="tokensPerDay"} 2',
    );
  });

  const cap: FullCap = {
    id: '1',
    kind: 'agent',
    subject: 'a-1',
    name: 'helper',
    period: 'day',
    micros: 2_500_000,
    onLimit: 'fail',
    setBy: 'tenant',
    periodStart: '2026-11-26',
    periodEnd: '2026-11-27',
    of: 'a-1',
    usedMicros: 2_499_900,
    reservedMicros: 0,
    allowedMicros: 0,
  };

  it('cost money where caps bound it, and a refusal names the cap, what is used, and what to do', async () => {
    const full = tokensOf(null, { cap });
    await expect(full.reserve()).rejects.toThrow(
      'The spending cap of the agent "helper" for a day, which is 2.50 EUR, has no room for another call: 2.4999 EUR are used ' +
        'since 2026-11-26 (UTC), and the call may cost 0.000475 EUR. Try again from 2026-11-27 (UTC), or ask an administrator ' +
        'of the tenant for a higher cap.',
    );
    expect(full.asked[0]).toMatchObject([{ tokens: 100, max: null, micros: 475 }]);
    // All of the input may be written into the provider's cache.
    const writing = tokensOf(null, { cap });
    await expect(writing.reserve('anthropic/m')).rejects.toThrow(TokensExceeded);
    expect(writing.asked[0]).toMatchObject([{ tokens: 100, micros: 550 }]);
    const spent = { model: 'openai/m', inputTokens: 10, outputTokens: 2, cachedInputTokens: 0 };
    await full.tokens.record('tenant-1', 'run-1', spent);
    expect(full.asked[1]).toEqual(['tenant-1', 'run-1', spent, undefined, 33]);
    const life = {
      ...cap,
      kind: 'task',
      subject: '*',
      period: 'life',
      periodStart: null,
      periodEnd: null,
    } as const;
    await expect(
      tokensOf(null, { cap: { ...life, setBy: 'operator', reservedMicros: 100 } }).reserve(),
    ).rejects.toThrow(
      /^The spending cap of each task, which is 2.50 EUR, .* are used, 0.0001 EUR are reserved .* Ask the operator for a higher cap.$/,
    );
  });

  it('are reserved for each of the calls that a run makes at a time; the first call of an attempt replaces all', async () => {
    const { tokens, reserve, asked } = tokensOf(1000);
    const spent = { model: 'openai/m', inputTokens: 1, outputTokens: 2, cachedInputTokens: 0 };
    const [first, second] = await Promise.all([reserve(), reserve()]);
    expect(first).toBe(RUN);
    expect(second).not.toBe(first);
    await tokens.record('tenant-1', RUN, spent, first);
    expect(await reserve()).toBe(first);
    await Promise.all([first, second].map((id) => tokens.record('tenant-1', RUN, spent, id)));
    await reserve();
    const reserved = asked.filter(([call]) => typeof call === 'object') as [
      { id: string; replaces: string[] },
    ][];
    expect(reserved.map(([{ replaces }]) => replaces.length)).toEqual([16, 0, 0, 16]);
    expect(reserved[3]?.[0].replaces).toEqual(expect.arrayContaining([first, second]));
    // The same in every process: the next attempt may be in another.
    const other = tokensOf(1000);
    expect(await Promise.all([other.reserve(), other.reserve()])).toEqual([first, second]);
  });

  it('are noted, and no call fails where that is impossible', async () => {
    const spent = { model: 'openai/m', inputTokens: 1, outputTokens: 2, cachedInputTokens: 0 };
    const { tokens, asked } = tokensOf(null);
    await tokens.record('tenant-1', 'run-1', spent);
    expect(asked).toEqual([['tenant-1', 'run-1', spent, undefined, 0]]);
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
