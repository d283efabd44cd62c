import { counter, histogram, type Metrics } from '@baton/telemetry';
import type { LanguageModelUsage } from 'ai';
import type { TokenCount } from '../../token-budget.js';

/** Tokens of one or more model calls. */
export interface ModelUsage extends TokenCount {
  reasoningTokens: number;
  /** Input tokens that came from the provider's cache. */
  cachedInputTokens: number;
  /** Those that the provider has written into its cache. Unset: none. */
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

export function add(a: ModelUsage, b: ModelUsage): ModelUsage {
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

export const tokensOf = ({ inputTokens, outputTokens }: TokenCount): number => inputTokens + outputTokens;

/** Rough number of tokens of a text: four characters each, as with English. */
export const estimateTokens = (characters: number): number => Math.ceil(characters / 4);

/** Maximum plausible tokens of one call. A larger number of a provider is ignored. */
const MAX_TOKENS = 1_000_000_000;

/**
 * The tokens that the provider reports, or the estimate for numbers that are missing or impossible. Negative numbers
 * would increase a tenant's budget.
 */
export function usageOf(said: LanguageModelUsage | undefined, estimate: TokenCount): ModelUsage {
  const { inputTokenDetails, outputTokenDetails } = said ?? {};
  const inputTokens = countOf(said?.inputTokens);
  const outputTokens = countOf(said?.outputTokens);
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

/** Models with figures of their own. Tenants choose the names; further models count as `other`. */
const MAX_MODELS = 100;

const CALLS = histogram('baton_model_call_seconds', 'Duration of model calls', [
  'provider',
  'model',
  'outcome',
]);
const FIRST_WORD = histogram('baton_model_first_word_seconds', 'Time from a model call to its first token', [
  'provider',
  'model',
]);
const TOKENS = counter(
  'baton_model_tokens_total',
  'Tokens of models: those of prompts (input) and of answers (output)',
  ['provider', 'model', 'kind'],
);
const RETRIES = counter('baton_model_retries_total', 'Model calls that were repeated, by the reason', [
  'provider',
  'model',
  'reason',
]);

const FALLBACKS = counter(
  'baton_model_fallbacks_total',
  'Steps for which a fallback model was asked, by that model',
  ['provider', 'model'],
);

/** The figures of one model call. */
interface ModelCallFigures {
  provider: string;
  model: string;
  /** `ok`, `stopped`, or the kind of failure. */
  outcome: string;
  seconds: number;
  firstWordSeconds?: number;
  tokens: { inputTokens: number; outputTokens: number };
  /** Of its span. */
  traceparent?: string | undefined;
}

/** Metrics of model calls. */
export class ModelMetrics {
  private readonly models = new Set<string>();

  constructor(private readonly metrics: Metrics) {}

  /** Records one model call with any outcome. */
  call({ provider, model: name, ...figures }: ModelCallFigures): void {
    const { outcome, seconds, firstWordSeconds, tokens, traceparent } = figures;
    const model = this.labelOf(provider, name);
    this.metrics.of(CALLS).observe({ provider, model, outcome }, seconds, traceparent);
    if (firstWordSeconds !== undefined) {
      this.metrics.of(FIRST_WORD).observe({ provider, model }, firstWordSeconds, traceparent);
    }
    this.metrics.of(TOKENS).inc({ provider, model, kind: 'input' }, tokens.inputTokens);
    this.metrics.of(TOKENS).inc({ provider, model, kind: 'output' }, tokens.outputTokens);
  }

  /** Records a retry, by kind of failure (`429`, `timeout`, `network` …). */
  retry(provider: string, model: string, reason: string): void {
    this.metrics.of(RETRIES).inc({ provider, model: this.labelOf(provider, model), reason });
  }

  /** Records that a model is asked because the one before can not answer. */
  fallback(provider: string, model: string): void {
    this.metrics.of(FALLBACKS).inc({ provider, model: this.labelOf(provider, model) });
  }

  private labelOf(provider: string, model: string): string {
    const name = `${provider}/${model}`;
    if (this.models.size < MAX_MODELS) this.models.add(name);
    return this.models.has(name) ? model : 'other';
  }
}
