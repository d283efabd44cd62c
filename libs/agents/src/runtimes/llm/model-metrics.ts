import { counter, histogram, type Metrics } from '@baton/telemetry';

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
  /** `traceparent` of its span. */
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
    this.metrics.get(CALLS).observe({ provider, model, outcome }, seconds, traceparent);
    if (firstWordSeconds !== undefined) {
      this.metrics.get(FIRST_WORD).observe({ provider, model }, firstWordSeconds, traceparent);
    }
    this.metrics.get(TOKENS).inc({ provider, model, kind: 'input' }, tokens.inputTokens);
    this.metrics.get(TOKENS).inc({ provider, model, kind: 'output' }, tokens.outputTokens);
  }

  /** Records a retry, by kind of failure (`429`, `timeout`, `network` …). */
  retry(provider: string, model: string, reason: string): void {
    this.metrics.get(RETRIES).inc({ provider, model: this.labelOf(provider, model), reason });
  }

  /** Records that a model is asked because the one before cannot answer. */
  fallback(provider: string, model: string): void {
    this.metrics.get(FALLBACKS).inc({ provider, model: this.labelOf(provider, model) });
  }

  private labelOf(provider: string, model: string): string {
    const name = `${provider}/${model}`;
    if (this.models.size < MAX_MODELS) this.models.add(name);
    return this.models.has(name) ? model : 'other';
  }
}
