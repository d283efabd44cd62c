import type { LanguageModelUsage } from 'ai';
import type { TokenCount } from '../../ports.js';

/** Tokens of one or more calls of a model. */
export interface Usage extends TokenCount {
  reasoningTokens: number;
  /** Those of the input that the provider still knew. */
  cachedInputTokens: number;
  /** The provider has not said all of it. */
  estimated?: true;
}

export const NO_USAGE: Usage = { inputTokens: 0, outputTokens: 0, reasoningTokens: 0, cachedInputTokens: 0 };

export function add(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    ...((a.estimated ?? b.estimated) && { estimated: true }),
  };
}

export const tokensOf = ({ inputTokens, outputTokens }: TokenCount): number => inputTokens + outputTokens;

/** Rough number of tokens of a text: four characters each, as with English. */
export const estimateTokens = (characters: number): number => Math.ceil(characters / 4);

/** Of one call, far more than any model reads or writes: a provider that says more counts something else. */
const MAX_TOKENS = 1_000_000_000;

/**
 * What the provider said it was, or the estimate where it has said nothing or what can't be: less than none would give
 * a tenant room that it does not have.
 */
export function usageOf(said: LanguageModelUsage | undefined, estimate: TokenCount): Usage {
  const { inputTokenDetails, outputTokenDetails } = said ?? {};
  const inputTokens = countOf(said?.inputTokens);
  const outputTokens = countOf(said?.outputTokens);
  const isWhole = inputTokens !== undefined && outputTokens !== undefined;
  return {
    inputTokens: inputTokens ?? estimate.inputTokens,
    outputTokens: outputTokens ?? estimate.outputTokens,
    reasoningTokens: countOf(outputTokenDetails?.reasoningTokens) ?? 0,
    cachedInputTokens: countOf(inputTokenDetails?.cacheReadTokens) ?? 0,
    ...(!isWhole && { estimated: true }),
  };
}

const countOf = (tokens: number | undefined): number | undefined =>
  tokens !== undefined && Number.isInteger(tokens) && tokens >= 0 && tokens <= MAX_TOKENS
    ? tokens
    : undefined;
