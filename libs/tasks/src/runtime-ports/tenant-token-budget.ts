import {
  CapReached,
  type CapQuestion,
  type CallEstimate,
  type SpentTokens,
  TokenBudget,
  TokensExceeded,
} from '@baton/agents';
import { Environment, microsOf, priceOf } from '@baton/config';
import { retryTransient, TokenUsageStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Logger, Metrics } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { fullCapReason } from '../spending/full-cap-reason.js';

/** How long to retry saving the token usage of a model call. */
const RECORD_USAGE_MS = 5_000;

/** The model tokens of tenants: their limit `tokensPerDay` and their spending caps, over all workers. */
@Injectable()
export class TenantTokenBudget extends TokenBudget {
  constructor(
    private readonly store: TokenUsageStore,
    private readonly limits: LimitsService,
    @Inject(Environment)
    private readonly environment: Pick<Environment, 'modelPrices' | 'modelPricesCurrency'>,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
  ) {
    super();
  }

  override async reserve(
    tenantId: string,
    runId: string,
    call: CallEstimate,
    forMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const [{ tokensPerDay: max }, isCapped] = await retryTransient(
      () => Promise.all([this.limits.of(tenantId), this.limits.hasSpendingCaps(tenantId)]),
      { signal },
    );
    const { inputTokens, outputTokens } = call;
    const cost = isCapped ? this.microsOf({ ...call, cachedInputTokens: 0 }) : 0;
    if (max === null && cost === 0) return;
    const micros = cost > 0 ? cost : undefined;
    const reservation = { tenantId, runId, tokens: inputTokens + outputTokens, forMs, max, micros };
    const refused = await retryTransient(() => this.store.reserve(reservation), { signal });
    if (!refused) return;
    const [cap] = refused.caps;
    this.metrics.limitExceeded.inc({ limit: refused.isOverTokens ? 'tokensPerDay' : 'spendingCap' });
    if (cap && !refused.isOverTokens) {
      const { modelPricesCurrency: currency } = this.environment;
      const { id: capId, of: subject, micros: amount, onLimit } = cap;
      const reason = fullCapReason(cap, cost, currency);
      if (onLimit === 'fail') throw new TokensExceeded(reason);
      throw new CapReached({ capId, subject, micros: amount, currency, reason });
    }
    throw new TokensExceeded(
      `The limit tokensPerDay of this tenant, which is ${max}, has no room for another model call: try again ` +
        'tomorrow (UTC), or ask the operator for more.',
    );
  }

  override async allow(
    tenantId: string,
    runId: string,
    question: Pick<CapQuestion, 'capId' | 'subject' | 'micros'>,
    answer: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { capId, subject, micros } = question;
    await retryTransient(() => this.store.allow({ tenantId, runId, capId, subject, micros, answer }), {
      signal,
    });
  }

  /**
   * Save the usage of a call. Never rejects, because the call is over. If it cannot be saved, only the provider knows
   * it.
   */
  override async record(tenantId: string, runId: string, spent: SpentTokens): Promise<void> {
    try {
      const record = async (): Promise<void> => {
        // What is stored of a tenant that is being deleted would outlast it.
        if (await this.limits.isGone(tenantId)) return;
        const isCapped = await this.limits.hasSpendingCaps(tenantId);
        await this.store.record(tenantId, runId, spent, isCapped ? this.microsOf(spent) : 0);
      };
      await retryTransient(record, { signal: AbortSignal.timeout(RECORD_USAGE_MS) });
    } catch (error) {
      this.logger.warn('the token usage of a model call could not be saved', {
        err: error,
        tenantId,
        runId,
      });
    }
  }

  /** A model without a price costs nothing. */
  private microsOf({ model, inputTokens, outputTokens, cachedInputTokens }: SpentTokens): number {
    const price = priceOf(model, this.environment.modelPrices);
    return price ? microsOf({ inputTokens, outputTokens, cachedTokens: cachedInputTokens }, price) : 0;
  }
}
