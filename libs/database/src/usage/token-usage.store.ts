import { Injectable } from '@nestjs/common';
import { Database, type Statement, tenantLock } from '../connection/database.js';
import { RECORD_CALL } from './usage-hours.store.js';

/** How many days of a tenant are kept. */
const KEPT_DAYS = 400;
const TODAY = `(clock_timestamp() AT TIME ZONE 'UTC')::date`;

/** Tokens to reserve for a model call of a run. Replaces the run's earlier reservation. */
export interface TokenReservation {
  tenantId: string;
  runId: string;
  tokens: number;
  /** After this time the reservation expires. */
  forMs: number;
  /** Tokens that the tenant may use in a day. */
  max: number;
}

// One reservation of a tenant at a time, so that each sees those before it.
const LOCK = tenantLock('tokens');

/** $1 tenant $2 run $3 tokens $4 milliseconds $5 maximum */
const RESERVE: Statement = {
  name: 'tokens-reserve',
  text: `
INSERT INTO token_reservations (tenant_id, run_id, tokens, expires_at)
SELECT $1, $2, $3::bigint, clock_timestamp() + $4::int * interval '1 millisecond'
WHERE $3::bigint + (
  SELECT COALESCE(sum(input_tokens + output_tokens), 0) FROM token_usage WHERE tenant_id = $1 AND day = ${TODAY}
) + (
  SELECT COALESCE(sum(tokens), 0) FROM token_reservations
  WHERE tenant_id = $1 AND run_id <> $2 AND expires_at > clock_timestamp()
) <= $5::bigint
ON CONFLICT (tenant_id, run_id) DO UPDATE SET tokens = excluded.tokens, expires_at = excluded.expires_at
RETURNING tokens`,
};

/** Reservations of runs that are gone, and old days: $1 tenant */
const FORGET: Statement = {
  name: 'tokens-forget',
  text: `
WITH gone AS (
  DELETE FROM token_reservations WHERE tenant_id = $1 AND expires_at < clock_timestamp() - interval '1 minute'
)
DELETE FROM token_usage WHERE tenant_id = $1 AND day < ${TODAY} - ${KEPT_DAYS}`,
};

/** $1 tenant $2 run */
const RELEASE: Statement = {
  name: 'tokens-release',
  text: 'DELETE FROM token_reservations WHERE tenant_id = $1 AND run_id = $2',
};

/** $1 tenant $2 input $3 output */
const RECORD: Statement = {
  name: 'tokens-record',
  text: `
INSERT INTO token_usage AS u (tenant_id, day, input_tokens, output_tokens)
VALUES ($1, ${TODAY}, $2, $3)
ON CONFLICT (tenant_id, day) DO UPDATE SET
  input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens`,
};

/** Tokens of one model call. */
export interface ModelCallTokens {
  /** `provider/model` */
  model: string;
  inputTokens: number;
  outputTokens: number;
  /** Those of the input tokens that came from the provider's cache. */
  cachedInputTokens: number;
}

/** The model tokens of tenants: by day for their limit, and by hour, agent, owner and model for reports. */
@Injectable()
export class TokenUsageStore {
  constructor(private readonly database: Database) {}

  /** Reserve tokens for a call. @returns whether there was room; if not, nothing is reserved for the run */
  async reserve({ tenantId, runId, tokens, forMs, max }: TokenReservation): Promise<boolean> {
    const [, , , rows] = await this.database.tenantQueries(tenantId, [
      [LOCK, [tenantId]],
      [RELEASE, [tenantId, runId]],
      [FORGET, [tenantId]],
      [RESERVE, [tenantId, runId, tokens, forMs, max]],
    ]);
    return (rows ?? []).length > 0;
  }

  /** Store the usage of a call. Replaces its reservation. */
  async record(tenantId: string, runId: string, spent: ModelCallTokens): Promise<void> {
    const { model, inputTokens, outputTokens, cachedInputTokens } = spent;
    await this.database.tenantQueries(tenantId, [
      [RECORD, [tenantId, inputTokens, outputTokens]],
      [
        RECORD_CALL,
        RECORD_CALL.values({
          call: { tenantId, runId, model, inputTokens, outputTokens, cachedInputTokens },
        }),
      ],
      [RELEASE, [tenantId, runId]],
    ]);
  }
}
