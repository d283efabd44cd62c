import { type SpentTokens, TokenBudget, TokensExceeded } from '@baton/agents';
import { retryTransient, TokenUsageStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
/** How long to retry saving the token usage of a model call. */
const RECORD_USAGE_MS = 5_000;

/** The model tokens of tenants, and their limit `tokensPerDay` over all workers. */
@Injectable()
export class TenantTokenBudget extends TokenBudget {
  constructor(
    private readonly store: TokenUsageStore,
    private readonly limits: LimitsService,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
  ) {
    super();
  }

  override async reserve(
    tenantId: string,
    runId: string,
    tokens: number,
    forMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const { tokensPerDay: limit } = await retryTransient(() => this.limits.of(tenantId), { signal });
    if (limit === null) return;
    const reservation = { tenantId, runId, tokens, forMs, max: limit };
    if (await retryTransient(() => this.store.reserve(reservation), { signal })) return;
    this.metrics.limitExceeded.inc({ limit: 'tokensPerDay' });
    throw new TokensExceeded(
      `The limit tokensPerDay of this tenant, which is ${limit}, has no room for another model call: try again ` +
        'tomorrow (UTC), or ask the operator for more.',
    );
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
        await this.store.record(tenantId, runId, spent);
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
}
