import { Injectable } from '@nestjs/common';
import { Database, type Statement, type Values } from '../connection/database.js';
import { tenantLock } from '../connection/tenant-lock.js';
import type { FullCap } from '../spending/cap-records.js';
import { capCtes, countCtes, FULL_CAPS, fullCapCtes } from '../spending/cap-sql.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { RECORD_CALL } from './usage-hours.store.js';

/** How many days of a tenant are kept. */
const KEPT_DAYS = 400;
const TODAY = `(clock_timestamp() AT TIME ZONE 'UTC')::date`;

/** Tokens to reserve for a model call of a run. */
export interface TokenReservation {
  tenantId: string;
  runId: string;
  /** Id of the reservation: unique among the calls that the run makes at a time. */
  id: string;
  /** Reservations that are released, such as those of an attempt that has died. */
  replaces: readonly string[];
  tokens: number;
  /** After this time the reservation expires. */
  forMs: number;
  /** Tokens that the tenant may use in a day. Null: any number. */
  max: number | null;
  /** What the call may cost, in millionths, for a tenant with spending caps. */
  micros?: number | undefined;
}

/** Why nothing was reserved. */
export interface RefusedReservation {
  /** The limit of tokens has no room. */
  isOverTokens: boolean;
  /** The caps that have none. */
  caps: FullCap[];
}

// One reservation of a tenant at a time, so that each sees those before it.
const LOCK = tenantLock('tokens');

/** $1 tenant $2 reservation $3 tokens $4 milliseconds $5 maximum */
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

const RESERVED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  // A column of its name keeps it: processes of the last release have one for each run.
  id: ['uuid', ({ id }) => id],
  tokens: ['bigint', ({ tokens }) => tokens],
  for_ms: ['int', ({ forMs }) => forMs],
  max: ['bigint', ({ max }) => max],
  micros: ['bigint', ({ micros = 0 }) => micros],
} satisfies Inputs<TokenReservation>;

/** As RESERVE, within the caps of the call as well. A call that costs nothing fits into each. One row. */
const RESERVE_SPENDING = statement(
  'spending-reserve-4',
  { call: one(RESERVED) },
  ({ call }) => `
WITH RECURSIVE ${capCtes(call.tenant_id, call.run_id)}, ${fullCapCtes(call.tenant_id, call.id, call.micros)}, tokens AS (
  SELECT coalesce(${call.tokens} + (
    SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM token_usage WHERE tenant_id = ${call.tenant_id} AND day = ${TODAY}
  ) + (SELECT coalesce(sum(tokens), 0) FROM others) > ${call.max}, false) AS is_over
), reserved AS (
  INSERT INTO token_reservations (tenant_id, run_id, tokens, expires_at, micros, agent_id, owner, schedule_id, root_task_id)
  SELECT ${call.tenant_id}, ${call.id}, ${call.tokens}, clock_timestamp() + ${call.for_ms} * interval '1 millisecond', ${call.micros},
    agent_id, owner, schedule_id, root_task_id
  FROM subjects, tokens WHERE NOT is_over AND NOT EXISTS (SELECT FROM full_caps)
  ON CONFLICT (tenant_id, run_id) DO UPDATE SET tokens = excluded.tokens, expires_at = excluded.expires_at, micros = excluded.micros,
    agent_id = excluded.agent_id, owner = excluded.owner, schedule_id = excluded.schedule_id, root_task_id = excluded.root_task_id
)
SELECT is_over AS "isOverTokens", ${FULL_CAPS} AS caps
FROM tokens`,
);

const SPENT = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  micros: ['bigint', ({ micros }) => micros],
} satisfies Inputs<{ tenantId: string; runId: string; micros: number }>;

/** Counts what a call has cost. */
const ADD_SPENDING = statement(
  'spending-add-4',
  { call: one(SPENT) },
  ({ call }) => `
WITH RECURSIVE ${capCtes(call.tenant_id, call.run_id, 'FOR KEY SHARE OF c')}, ${countCtes(call.micros, 'true')}
SELECT 1`,
);

/** What a task tree may spend beyond a cap. */
export interface SpendingAllowance {
  tenantId: string;
  runId: string;
  capId: string;
  /** Whose spending the cap bounds: an id or a key. */
  subject: string;
  micros: number;
  /** The key of the answer that allows the amount. A repeated answer counts once. */
  answer: string;
}

const ALLOWED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  cap_id: ['uuid', ({ capId }) => capId],
  subject: ['text', ({ subject }) => subject],
  micros: ['bigint', ({ micros }) => micros],
  answer: ['text', ({ answer }) => answer],
} satisfies Inputs<SpendingAllowance>;

/** A cap that is gone needs no allowance. */
const ALLOW = statement(
  'spending-allow',
  { grant: one(ALLOWED) },
  ({ grant }) => `
WITH RECURSIVE ${capCtes(grant.tenant_id, grant.run_id, 'FOR KEY SHARE OF c')}
INSERT INTO spending_allowances AS a (tenant_id, cap_id, subject, period_start, root_task_id, micros, answers)
SELECT caps.tenant_id, caps.id, caps.of, caps.period_start, subjects.root_task_id, ${grant.micros}, ARRAY[${grant.answer}]
FROM caps, subjects WHERE caps.id = ${grant.cap_id} AND caps.of = ${grant.subject} AND subjects.root_task_id IS NOT NULL
ON CONFLICT (tenant_id, cap_id, subject, period_start, root_task_id) DO UPDATE SET
  micros = a.micros + excluded.micros, answers = a.answers || excluded.answers, updated_at = now()
WHERE NOT a.answers && excluded.answers`,
);

/** Reservations of runs that are gone, and old days: $1 tenant */
const FORGET: Statement = {
  name: 'tokens-forget',
  text: `
WITH gone AS (
  DELETE FROM token_reservations WHERE tenant_id = $1 AND expires_at < clock_timestamp() - interval '1 minute'
)
DELETE FROM token_usage WHERE tenant_id = $1 AND day < ${TODAY} - ${KEPT_DAYS}`,
};

/** $1 tenant $2 reservations */
const RELEASE: Statement = {
  name: 'tokens-release-2',
  text: 'DELETE FROM token_reservations WHERE tenant_id = $1 AND run_id = ANY($2::uuid[])',
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
  /** Input tokens that came from the provider's cache. */
  cachedInputTokens: number;
  /** Input tokens that the provider has written into its cache. */
  cacheWriteTokens?: number;
}

/** The model tokens of tenants: by day for their limit, and by hour, agent, owner and model for reports. */
@Injectable()
export class TokenUsageStore {
  constructor(private readonly database: Database) {}

  /**
   * Reserves tokens for a call, and money if `micros` is set.
   * @returns undefined: it is reserved; else why nothing is reserved for the run
   */
  async reserve(call: TokenReservation): Promise<RefusedReservation | undefined> {
    const { tenantId, id, replaces, tokens, forMs, max, micros } = call;
    const [, , , rows = []] = await this.database.tenantQueries(tenantId, [
      [LOCK, [tenantId]],
      [RELEASE, [tenantId, [id, ...replaces]]],
      [FORGET, [tenantId]],
      micros === undefined
        ? [RESERVE, [tenantId, id, tokens, forMs, max]]
        : [RESERVE_SPENDING, RESERVE_SPENDING.values({ call })],
    ]);
    if (micros === undefined) return rows.length > 0 ? undefined : { isOverTokens: true, caps: [] };
    const [answer] = rows as RefusedReservation[];
    return answer && (answer.isOverTokens || answer.caps.length > 0) ? answer : undefined;
  }

  /** Let a task tree spend more than a cap has room for. */
  async allow(grant: SpendingAllowance): Promise<void> {
    await this.database.tenantQuery(grant.tenantId, ALLOW, ALLOW.values({ grant }));
  }

  /**
   * Store the usage of a call.
   * @param reservation it is replaced
   * @param micros what it has cost, in millionths, for a tenant with spending caps
   */
  async record(
    tenantId: string,
    runId: string,
    spent: ModelCallTokens,
    reservation?: string,
    micros = 0,
  ): Promise<void> {
    const { model, inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens = 0 } = spent;
    const call = { tenantId, runId, micros };
    const released: [Statement, Values][] =
      reservation === undefined ? [] : [[RELEASE, [tenantId, [reservation]]]];
    const spending: [Statement, Values][] = micros > 0 ? [[ADD_SPENDING, ADD_SPENDING.values({ call })]] : [];
    await this.database.tenantQueries(tenantId, [
      [RECORD, [tenantId, inputTokens, outputTokens]],
      [
        RECORD_CALL,
        RECORD_CALL.values({
          call: { tenantId, runId, model, inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens },
        }),
      ],
      ...spending,
      ...released,
    ]);
  }
}
