import type { ModelPrice } from './values.js';

/** Prices by `provider/model`, or by the beginning of it and `*`. */
export type ModelPrices = Readonly<Record<string, ModelPrice>>;

/** The price of a model: under its own name, or else under the longest beginning of it. Undefined: it has none. */
export function priceOf(model: string, prices: ModelPrices | undefined): ModelPrice | undefined {
  if (!prices || model === '') return undefined;
  if (Object.hasOwn(prices, model) && !model.endsWith('*')) return prices[model];
  const fitting = Object.keys(prices).filter(
    (name) => name.endsWith('*') && model.startsWith(name.slice(0, -1)),
  );
  const [longest] = fitting.sort((a, b) => b.length - a.length);
  return longest === undefined ? undefined : prices[longest];
}

/** Tokens of calls of one model. */
interface Tokens {
  inputTokens: number;
  outputTokens: number;
  /** Those of the input tokens that came from the provider's cache. */
  cachedTokens: number;
  /** Input tokens that the provider has written into its cache. */
  cacheWriteTokens?: number | undefined;
}

/** What tokens of a model cost, in the currency of the prices. */
export const costOf = (
  { inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0 }: Tokens,
  price: ModelPrice,
): number =>
  ((inputTokens - cachedTokens - cacheWriteTokens) * price.input +
    cachedTokens * (price.cached ?? price.input) +
    cacheWriteTokens * (price.cacheWrite ?? price.input) +
    outputTokens * price.output) /
  1_000_000;

/** A cost as answers have it: rounded to a millionth. */
export const roundedCost = (cost: number): number => Math.round(cost * 1_000_000) / 1_000_000;

/** Prices have up to six decimal places. */
const PRICE_SCALE = 1_000_000;
const scaled = (price: number): bigint => BigInt(Math.round(price * PRICE_SCALE));

/**
 * What tokens of a model cost, in millionths of the currency, rounded up. Exact: it is an amount of a spending cap.
 * @returns at most 2^53
 */
export function microsOf(
  { inputTokens, outputTokens, cachedTokens, cacheWriteTokens = 0 }: Tokens,
  price: ModelPrice,
): number {
  const cached = Math.min(cachedTokens, inputTokens);
  const written = Math.min(cacheWriteTokens, inputTokens - cached);
  // A price is for a million tokens, so tokens times the price are millionths.
  const micros =
    BigInt(inputTokens - cached - written) * scaled(price.input) +
    BigInt(cached) * scaled(price.cached ?? price.input) +
    BigInt(written) * scaled(price.cacheWrite ?? price.input) +
    BigInt(outputTokens) * scaled(price.output);
  return Number((micros + BigInt(PRICE_SCALE - 1)) / BigInt(PRICE_SCALE));
}
