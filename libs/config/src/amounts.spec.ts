import { formatMicros, parseMicros } from './amounts.js';
import { costOf, microsOf } from './model-cost.js';

describe('an amount of money', () => {
  it.each([
    ['0', 0, '0.00'],
    ['2.5', 2_500_000, '2.50'],
    ['0.000001', 1, '0.000001'],
    ['10.1200', 10_120_000, '10.12'],
    ['999999999.999999', 999_999_999_999_999, '999999999.999999'],
  ])('%s is %d millionths, and is shown as %s', (text, micros, shown) => {
    expect(parseMicros(text)).toBe(micros);
    expect(formatMicros(micros)).toBe(shown);
  });

  it.each(['', '-1', '1e3', '1,5', '.5', '1.', '0.0000001', '1000000000', ' 1', 'NaN'])(
    'is not written as "%s"',
    (text) => expect(parseMicros(text)).toBeUndefined(),
  );
});

describe('the cost of a call', () => {
  const price = { input: 1.25, cached: 0.125, output: 10 };

  it('counts tokens from the cache at their own price', () => {
    expect(microsOf({ inputTokens: 1000, cachedTokens: 400, outputTokens: 100 }, price)).toBe(
      750 + 50 + 1000,
    );
  });

  it('counts tokens that are written into the cache at their own price', () => {
    const tokens = { inputTokens: 1000, cachedTokens: 400, cacheWriteTokens: 200, outputTokens: 0 };
    expect(microsOf(tokens, { ...price, cacheWrite: 2 })).toBe(500 + 50 + 400);
    expect(costOf(tokens, { ...price, cacheWrite: 2 })).toBeCloseTo(0.00095, 9);
    expect(microsOf(tokens, price)).toBe(750 + 50);
    expect(microsOf({ ...tokens, cacheWriteTokens: 900 }, { ...price, cacheWrite: 2 })).toBe(50 + 1200);
  });

  it('is exact where floating point is not, and rounded up', () => {
    const tenth = { input: 0.1, output: 0.2 };
    expect(microsOf({ inputTokens: 10, cachedTokens: 0, outputTokens: 10 }, tenth)).toBe(3);
    expect(microsOf({ inputTokens: 3, cachedTokens: 0, outputTokens: 0 }, tenth)).toBe(1);
    expect(
      microsOf({ inputTokens: 1e9, cachedTokens: 0, outputTokens: 1e9 }, { input: 1e6, output: 1e6 }),
    ).toBe(2e15);
  });

  it('never counts more cached tokens than there were', () => {
    expect(microsOf({ inputTokens: 100, cachedTokens: 900, outputTokens: 0 }, price)).toBe(13);
  });
});
