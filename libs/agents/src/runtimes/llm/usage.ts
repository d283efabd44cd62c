import type { LanguageModelUsage } from 'ai';
import type { TokenCount } from '../../token-budget.js';

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

/** What the provider said it was, or the estimate where it has said nothing. */
export function usageOf(said: LanguageModelUsage | undefined, estimate: TokenCount): Usage {
  const { inputTokens, outputTokens, inputTokenDetails, outputTokenDetails } = said ?? {};
  const isWhole = inputTokens !== undefined && outputTokens !== undefined;
  return {
    inputTokens: inputTokens ?? estimate.inputTokens,
    outputTokens: outputTokens ?? estimate.outputTokens,
    reasoningTokens: outputTokenDetails?.reasoningTokens ?? 0,
    cachedInputTokens: inputTokenDetails?.cacheReadTokens ?? 0,
    ...(!isWhole && { estimated: true }),
  };
}
