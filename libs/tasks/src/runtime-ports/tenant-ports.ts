import {
  type IndexModel,
  IndexModels,
  SecretReader,
  type SpentTokens,
  TokenBudget,
  TokensExceeded,
} from '@baton/agents';
import { Environment } from '@baton/config';
import { retryTransient, TenantStore, TokenUsageStore } from '@baton/database';
import { LimitsService, Secrets } from '@baton/identity';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';

/** How long a run waits for Postgres to give it a secret. */
const READ_SECRET_MS = 60_000;
/** How long to retry saving the token usage of a model call. */
const RECORD_USAGE_MS = 5_000;

/** The secrets of tenants, for runs. An outage of Postgres does not fail a task that needs one. */
@Injectable()
export class TenantSecrets extends SecretReader {
  constructor(private readonly secrets: Secrets) {
    super();
  }

  override get(tenantId: string, name: string, destinations: readonly string[]): Promise<string | undefined> {
    return retryTransient(() => this.secrets.get(tenantId, name, destinations), {
      signal: AbortSignal.timeout(READ_SECRET_MS),
    });
  }
}

/** The model that answers as the agent `index`: the tenant's own, or the one of the environment. */
@Injectable()
export class TenantIndexModels extends IndexModels {
  constructor(
    private readonly tenants: TenantStore,
    private readonly environment: Environment,
  ) {
    super();
  }

  override async of(tenantId: string): Promise<IndexModel | undefined> {
    const tenant = await this.tenants.byId(tenantId);
    const { indexModel, indexModelUrl } = this.environment;
    const own = tenant?.indexModel ?? null;
    const model = own ?? indexModel;
    const url = own === null ? indexModelUrl : tenant?.indexModelUrl;
    if (model === undefined || model === 'none') return undefined;
    return { model, ...(url && { baseUrl: url }) };
  }
}

/** The model tokens of tenants, and their limit `tokensPerDay` over all workers. */
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
