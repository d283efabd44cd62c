import type { LanguageModelUsage } from 'ai';
import type { TokenCount } from '../../token-budget.js';

/** Tokens of one or more model calls. */
export interface ModelUsage extends TokenCount {
  reasoningTokens: number;
  /** Input tokens that came from the provider's cache. */
  cachedInputTokens: number;
  /** Input tokens that the provider has written into its cache. Unset: none. */
  cacheWriteTokens?: number;
  /** The provider did not report all numbers. */
  estimated?: true;
}

export const NO_USAGE: ModelUsage = {
  inputTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  cachedInputTokens: 0,
};

/** The sum of two usages. It counts as estimated if one of them is. */
export function addUsage(a: ModelUsage, b: ModelUsage): ModelUsage {
  const written = (a.cacheWriteTokens ?? 0) + (b.cacheWriteTokens ?? 0);
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    reasoningTokens: a.reasoningTokens + b.reasoningTokens,
    cachedInputTokens: a.cachedInputTokens + b.cachedInputTokens,
    ...(written > 0 && { cacheWriteTokens: written }),
    ...((a.estimated ?? b.estimated) && { estimated: true }),
  };
}

/** Input and output tokens together. Reasoning is part of the output, cached input part of the input. */
export const tokensOf = ({ inputTokens, outputTokens }: TokenCount): number => inputTokens + outputTokens;

/** Rough number of tokens of a text: four characters each, as with English. */
export const estimateTokens = (characters: number): number => Math.ceil(characters / 4);

/** Maximum plausible tokens of one call. A larger number of a provider is ignored. */
const MAX_TOKENS = 1_000_000_000;

/**
 * The tokens that the provider reports, or the estimate for numbers that are missing or impossible. Negative numbers
 * would increase a tenant's budget.
 */
export function usageOf(reported: LanguageModelUsage | undefined, estimate: TokenCount): ModelUsage {
  const { inputTokenDetails, outputTokenDetails } = reported ?? {};
  const inputTokens = countOf(reported?.inputTokens);
  const outputTokens = countOf(reported?.outputTokens);
  const written = countOf(inputTokenDetails?.cacheWriteTokens) ?? 0;
  const isWhole = inputTokens !== undefined && outputTokens !== undefined;
  return {
    inputTokens: inputTokens ?? estimate.inputTokens,
    outputTokens: outputTokens ?? estimate.outputTokens,
    reasoningTokens: countOf(outputTokenDetails?.reasoningTokens) ?? 0,
    cachedInputTokens: countOf(inputTokenDetails?.cacheReadTokens) ?? 0,
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(!isWhole && { estimated: true }),
  };
}

const countOf = (tokens: number | undefined): number | undefined =>
  tokens !== undefined && Number.isInteger(tokens) && tokens >= 0 && tokens <= MAX_TOKENS
    ? tokens
    : undefined;
