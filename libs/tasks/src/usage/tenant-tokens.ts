import { TokenBudget, type TokenCount, TokensExceeded } from '@baton/agents';
import { TokenUsageStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { retryTransient } from '../runs/retry-transient.js';

/** How long what a call has cost is tried to be noted while Postgres is away. */
const RECORD_MS = 5_000;

/** What tenants use of models, held to their limit `tokensPerDay` over all workers. */
@Injectable()
export class TenantTokens extends TokenBudget {
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
    const { tokensPerDay: most } = await retryTransient(() => this.limits.of(tenantId), signal);
    if (most === null) return;
    const reservation = { tenantId, runId, tokens, forMs, most };
    if (await retryTransient(() => this.store.reserve(reservation), signal)) return;
    this.metrics.limitExceeded.inc({ limit: 'tokensPerDay' });
    throw new TokensExceeded(
      `The limit tokensPerDay of this tenant, which is ${most}, has no room for another call of a model: try again ` +
        'tomorrow (UTC), or ask the operator for more.',
    );
  }

  /** A call is over whether or not its cost can be noted: what is lost is counted by the provider alone. */
  override async record(tenantId: string, runId: string, spent: TokenCount): Promise<void> {
    try {
      const noted = () => this.store.record(tenantId, runId, spent);
      await retryTransient(noted, AbortSignal.timeout(RECORD_MS));
    } catch (error) {
      this.logger.warn('the cost of a call of a model could not be noted', { err: error, tenantId, runId });
    }
  }
}
