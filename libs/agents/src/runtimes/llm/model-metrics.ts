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
const TOKENS = counter('baton_model_tokens_total', 'Model tokens', ['provider', 'model', 'kind']);
const RETRIES = counter('baton_model_retries_total', 'Repeated model calls', ['provider', 'model', 'reason']);

/** What is known of one call of a model. */
interface ModelCallFigures {
  provider: string;
  model: string;
  /** `ok`, `stopped` or the failure. */
  outcome: string;
  seconds: number;
  firstWordSeconds?: number;
  tokens: { inputTokens: number; outputTokens: number };
}

/** Counts the calls of models. */
export class ModelMetrics {
  private readonly models = new Set<string>();

  constructor(private readonly metrics: Metrics) {}

  /** Count one call of a model, whatever its outcome. */
  call({ provider, model: name, outcome, seconds, firstWordSeconds, tokens }: ModelCallFigures): void {
    const model = this.labelOf(provider, name);
    this.metrics.of(CALLS).observe({ provider, model, outcome }, seconds);
    if (firstWordSeconds !== undefined) {
      this.metrics.of(FIRST_WORD).observe({ provider, model }, firstWordSeconds);
    }
    this.metrics.of(TOKENS).inc({ provider, model, kind: 'input' }, tokens.inputTokens);
    this.metrics.of(TOKENS).inc({ provider, model, kind: 'output' }, tokens.outputTokens);
  }

  /** Count a call of a model that is repeated, by what went wrong (`429`, `timeout`, `network` …). */
  retry(provider: string, model: string, reason: string): void {
    this.metrics.of(RETRIES).inc({ provider, model: this.labelOf(provider, model), reason });
  }

  private labelOf(provider: string, model: string): string {
    const name = `${provider}/${model}`;
    if (this.models.size < MAX_MODELS) this.models.add(name);
    return this.models.has(name) ? model : 'other';
  }
}
