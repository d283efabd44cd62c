import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import type { SealedSecret } from '../catalog/catalog-records.js';
import { isRunOf } from '../dispatch/run-conditions.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { hostOf, NOW } from './push-lease.js';
import { readPushTries, type TriedReceiver, withTry } from './push-tries.js';

/** Deliveries when several events wait: one for each, one with the newest state, or one with all of them. */
export const PUSH_MODES = ['each', 'newest', 'batch'] as const;
export type PushMode = (typeof PUSH_MODES)[number];

/** Format of the deliveries of a config. `webhook`: a native webhook of the tenant created it. */
export type PushProtocol = '1.0' | '0.3' | 'webhook';

/** Names a push config. */
export interface PushKey {
  tenantId: string;
  taskId: string;
  configId: string;
}

/** A config that this worker alone delivers to, until its lease ends. */
export interface ClaimedPush extends PushKey {
  webhookId: string | null;
  url: string;
  protocol: PushProtocol;
  authScheme: string | null;
  /** The token and the credentials. */
  sealed: SealedSecret | null;
  /** Only events of these states; null = all events. */
  states: number[] | null;
  mode: PushMode;
  /** The last event that the receiver has. */
  delivered: number;
  /** The last event of the log. */
  head: number;
  /** Failed tries since the last successful one. */
  failures: number;
  /** Fencing token: every claim increments it. */
  lease: number;
  /** How long it was due before it was claimed. */
  waitedSeconds: number;
  /** The trace of each turn by the sequence at which it begins, the latest first. */
  traces: readonly (readonly [startSequence: number, traceparent: string | null])[];
}

/** How many configs a claim may take. */
export interface ClaimLimits {
  limit: number;
  /** Deliveries at one time to one host, over all workers. */
  perHost: number;
  /** Deliveries at one time for one tenant, over all workers. */
  perTenant: number;
}

/** A delivery that has failed. */
export interface PushFailure {
  /** The HTTP status of the answer; null = there was none. */
  status: number | null;
  error: string;
  /** How long the try took. */
  ms: number;
  /** JSON of the PushExchange. Unset: nothing was sent. */
  exchange?: string | undefined;
  /** The next try. */
  retryMs: number;
  /** How long a config may fail before it is given up. */
  giveUpHours: number;
  /** The receiver has answered that it refuses all further deliveries. */
  isGone: boolean;
}

interface ClaimedRow {
  tenant_id: string;
  task_id: string;
  id: string;
  webhook_id: string | null;
  url: string;
  protocol: PushProtocol;
  auth_scheme: string | null;
  key_id: string | null;
  nonce: Buffer | null;
  ciphertext: Buffer | null;
  states: number[] | null;
  mode: PushMode;
  delivered_sequence: number;
  head_sequence: number;
  failures: number;
  lease_count: number;
  waited_seconds: number;
  traces: [number, string | null][] | null;
}

/** Claims run one after the other, so that the limits per host and per tenant are exact over all workers. */
const LOCK_CLAIMS: Statement = {
  name: 'push-lock-claims',
  text: `SELECT pg_advisory_xact_lock(hashtextextended('baton push claims', 0))`,
};

const inMs = (milliseconds: string): string => `${NOW} + ${milliseconds} * interval '1 millisecond'`;
/** Maximum number of turns whose trace a claim returns. */
const MAX_TRACES = 20;
/** The oldest due configs of a tenant that a claim reads before it goes from host to host. */
const OLDEST = 32;

/** A lease is also a time before which its config is not due. Read once, the clock can be compared in an index. */
const CLOCK = `clock AS MATERIALIZED (SELECT ${NOW} AS now)`;
const IS_FREE = `(p.lease_until IS NULL OR p.lease_until <= (SELECT now FROM clock))`;
const IS_DUE = `p.due_at IS NOT NULL AND p.due_at <= (SELECT now FROM clock)
      AND ${IS_FREE}`;

/**
 * Configs that no worker has leased, from a key (column, value) on, in the order of the key and of their time. The bound has one side: Postgres
 * expects many rows, and reads the first ones from the index of key and time. With both sides it expects few while it has no statistics of a
 * flood, and reads and sorts all of it. So the caller drops those of other keys, and those that are not due.
 */
const configsFrom = (key: readonly (readonly [column: string, value: string])[], limit: string): string => {
  const columns = [...key.map(([column]) => column), 'p.due_at'].join(', ');
  return `
    SELECT p.tenant_id, p.task_id, p.id, p.due_at, p.host FROM push_configs p
    WHERE p.due_at IS NOT NULL AND ${IS_FREE}
      AND (${columns}) > (${key.map(([, value]) => value).join(', ')}, '-infinity'::timestamptz)
    ORDER BY ${columns} ${limit}`;
};

/** Tenants with configs that are due or will be, from one to the next through the index. Those of suspended tenants wait. */
const TENANTS = `tenant AS (
  (SELECT p.tenant_id FROM push_configs p WHERE p.due_at IS NOT NULL ORDER BY p.tenant_id LIMIT 1)
  UNION ALL
  SELECT (SELECT p.tenant_id FROM push_configs p WHERE p.due_at IS NOT NULL AND p.tenant_id > t.tenant_id ORDER BY p.tenant_id LIMIT 1)
  FROM tenant t WHERE t.tenant_id IS NOT NULL
), served AS MATERIALIZED (
  SELECT tenant_id FROM tenant t WHERE tenant_id IS NOT NULL
    AND NOT EXISTS (SELECT FROM tenants s WHERE s.id = t.tenant_id AND s.suspended_at IS NOT NULL)
)`;

/** How many more requests a host may get. */
const roomOf = (host: string): string =>
  `($4::int - coalesce((SELECT b.requests FROM busy b WHERE b.host = ${host}), 0))`;

/**
 * Leases for due configs: of the tenant with the fewest leases first, of one tenant the oldest first. The number of
 * rows that it reads does not grow with the configs that are due or wait for another try. If the oldest of a tenant are
 * for hosts without room, it goes from host to host of the tenant: a host without room costs one step, however much is
 * due there. Without a name: it is planned for the table as it is.
 * $1 worker $2 lease in ms $3 limit $4 per host $5 per tenant
 */
export const CLAIM: Statement = {
  text: `
WITH RECURSIVE ${CLOCK}, leased AS MATERIALIZED (
  SELECT tenant_id, host FROM push_configs WHERE lease_until IS NOT NULL AND lease_until > (SELECT now FROM clock)
), busy AS MATERIALIZED (SELECT host, count(*)::int AS requests FROM leased GROUP BY host
), ${TENANTS}, room AS MATERIALIZED (
  SELECT t.*, least($3::int, $5::int - t.leases) AS wanted FROM (
    SELECT s.tenant_id, (SELECT count(*)::int FROM leased l WHERE l.tenant_id = s.tenant_id) AS leases FROM served s
  ) t WHERE t.leases < $5::int
), oldest AS MATERIALIZED (
  SELECT r.tenant_id, r.leases, c.task_id, c.id, c.due_at, c.host FROM room r, LATERAL (
    SELECT o.*, row_number() OVER (PARTITION BY o.host ORDER BY o.due_at) AS nth FROM (
      ${configsFrom([['p.tenant_id', 'r.tenant_id']], `LIMIT ${OLDEST}`)}
    ) o WHERE o.tenant_id = r.tenant_id AND o.due_at <= (SELECT now FROM clock)
  ) c WHERE c.nth <= ${roomOf('c.host')}
), host AS (
  SELECT r.*, (
    SELECT p.host FROM push_configs p WHERE p.tenant_id = r.tenant_id AND p.due_at IS NOT NULL ORDER BY p.host LIMIT 1
  ) AS host
  FROM room r WHERE (SELECT count(*) FROM oldest o WHERE o.tenant_id = r.tenant_id) < r.wanted
    AND EXISTS (
      SELECT FROM (${configsFrom([['p.tenant_id', 'r.tenant_id']], `OFFSET ${OLDEST} LIMIT 1`)}) o
      WHERE o.tenant_id = r.tenant_id AND o.due_at <= (SELECT now FROM clock)
    )
  UNION ALL
  SELECT h.tenant_id, h.leases, h.wanted, (
    SELECT p.host FROM push_configs p
    WHERE p.tenant_id = h.tenant_id AND p.due_at IS NOT NULL AND p.host > h.host ORDER BY p.host LIMIT 1
  )
  FROM host h WHERE h.host IS NOT NULL
), candidate AS (
  SELECT * FROM oldest
  UNION
  SELECT h.tenant_id, h.leases, c.task_id, c.id, c.due_at, c.host FROM host h, LATERAL (${configsFrom(
    [
      ['p.tenant_id', 'h.tenant_id'],
      ['p.host', 'h.host'],
    ],
    `LIMIT greatest(least(h.wanted, ${roomOf('h.host')}), 0)`,
  )}) c WHERE c.tenant_id = h.tenant_id AND c.host = h.host AND c.due_at <= (SELECT now FROM clock)
), by_tenant AS (
  SELECT c.*, c.leases + row_number() OVER (PARTITION BY c.tenant_id ORDER BY c.due_at, c.id) AS tenant_rank FROM candidate c
), ranked AS (
  SELECT c.*, row_number() OVER (PARTITION BY c.host ORDER BY c.tenant_rank, c.due_at) AS host_rank
  FROM by_tenant c WHERE c.tenant_rank <= $5::int
), chosen AS MATERIALIZED (
  SELECT p.tenant_id, p.task_id, p.id, extract(epoch FROM (SELECT now FROM clock) - p.due_at)::float8 AS waited_seconds
  FROM (SELECT * FROM ranked g WHERE g.host_rank <= ${roomOf('g.host')} ORDER BY tenant_rank, due_at, id) r, LATERAL (
    SELECT * FROM push_configs p
    WHERE p.tenant_id = r.tenant_id AND p.task_id = r.task_id AND p.id = r.id AND p.state = 'active' AND ${IS_DUE}
    FOR NO KEY UPDATE SKIP LOCKED
  ) p
  LIMIT $3::int
)
UPDATE push_configs p SET lease_owner = $1, lease_count = p.lease_count + 1,
  lease_until = ${inMs('$2::int')}, due_at = ${inMs('$2::int')},
  host = CASE WHEN p.host = '' THEN ${hostOf('p.url')} ELSE p.host END
FROM chosen c WHERE p.tenant_id = c.tenant_id AND p.task_id = c.task_id AND p.id = c.id
RETURNING p.tenant_id, p.task_id, p.id, p.webhook_id, p.url, p.protocol, p.auth_scheme, p.key_id, p.nonce, p.ciphertext,
  p.states, p.mode, p.delivered_sequence, p.head_sequence, p.failures, p.lease_count, c.waited_seconds,
  (SELECT json_agg(json_build_array(start_sequence, traceparent) ORDER BY start_sequence DESC) FROM (
    SELECT start_sequence, traceparent FROM runs r WHERE ${isRunOf('r', 'p.tenant_id', 'p.task_id')}
    ORDER BY start_sequence DESC LIMIT ${MAX_TRACES}
  ) r) AS traces`,
};

const NO_LEASE = 'lease_owner = NULL, lease_until = NULL';

/** A config that a worker has leased. */
const LEASED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  id: ['text', ({ configId }) => configId],
  lease: ['int', ({ lease }) => lease],
} satisfies Inputs<ClaimedPush>;
type LeasedSql = Record<keyof typeof LEASED, string>;

const isConfig = (config: LeasedSql, p = ''): string =>
  `${p}tenant_id = ${config.tenant_id} AND ${p}task_id = ${config.task_id} AND ${p}id = ${config.id}`;
const isLeased = (config: LeasedSql, p = ''): string =>
  `${isConfig(config, p)} AND ${p}lease_count = ${config.lease}`;

/** Position of the receiver in the log. */
interface Advance {
  sequence: number;
  /** HTTP status of its answer; unset = it was not asked. */
  status?: number | undefined;
  /** How long it took to answer. */
  ms?: number | undefined;
  /** Unset = as it is. */
  mode?: PushMode | undefined;
  /** JSON of the PushExchange. */
  exchange?: string | undefined;
  leaseMs: number;
}

const ADVANCED = {
  sequence: ['int', ({ sequence }) => sequence],
  status: ['int', ({ status }) => status],
  ms: ['int', ({ ms }) => ms],
  mode: ['text', ({ mode }) => mode],
  exchange: ['text', ({ exchange }) => exchange],
  lease_ms: ['int', ({ leaseMs }) => leaseMs],
} satisfies Inputs<Advance>;

/**
 * Moves the cursor. A transaction that appends to the log updates this row as well, so one of the two waits for the other: the config
 * stays leased if there is more, and else has no due time.
 */
const ADVANCE = statement(
  'push-advance-3',
  { config: one(LEASED), to: one(ADVANCED) },
  ({ config, to }) => `
UPDATE push_configs p SET delivered_sequence = ${to.sequence}, failures = 0, failing_since = NULL, last_status = coalesce(${to.status}, last_status),
  last_error = NULL, mode = coalesce(${to.mode}, mode),
  tries = CASE WHEN ${to.status} IS NULL THEN tries ELSE ${withTry({ ...to, error: 'NULL' })} END,
  lease_owner = CASE WHEN head_sequence > ${to.sequence} THEN lease_owner END,
  lease_until = CASE WHEN head_sequence > ${to.sequence} THEN ${inMs(to.lease_ms)} END,
  due_at = CASE WHEN head_sequence > ${to.sequence} THEN ${inMs(to.lease_ms)} END
WHERE ${isLeased(config)} AND state = 'active'
RETURNING head_sequence AS head, EXISTS (SELECT FROM tenants WHERE id = ${config.tenant_id} AND suspended_at IS NOT NULL) AS suspended`,
);

const FAILURE = {
  status: ['int', ({ status }) => status],
  error: ['text', ({ error }) => error],
  ms: ['int', ({ ms }) => ms],
  exchange: ['text', ({ exchange }) => exchange],
  retry_ms: ['int', ({ retryMs }) => retryMs],
  give_up_hours: ['float8', ({ giveUpHours }) => giveUpHours],
  is_gone: ['boolean', ({ isGone }) => isGone],
} satisfies Inputs<PushFailure>;

const FAIL = statement(
  'push-fail-3',
  { config: one(LEASED), failure: one(FAILURE) },
  ({ config, failure }) => `
UPDATE push_configs p SET state = next.state, failures = p.failures + 1, failing_since = coalesce(p.failing_since, ${NOW}),
  last_status = ${failure.status}, last_error = ${failure.error}, ${NO_LEASE}, tries = ${withTry(failure)},
  due_at = CASE next.state WHEN 'active' THEN ${inMs(failure.retry_ms)} END
FROM (
  SELECT CASE WHEN ${failure.is_gone} THEN 'ended'
    WHEN failing_since < ${NOW} - ${failure.give_up_hours} * interval '1 hour' THEN 'dead' ELSE 'active' END AS state
  FROM push_configs WHERE ${isLeased(config)} FOR NO KEY UPDATE
) next
WHERE ${isLeased(config, 'p.')} AND p.state = 'active'
RETURNING next.state`,
);

/** Why a config is not tried now. */
interface Postponement {
  error: string;
  waitMs: number;
  /** How long a config may fail before it is given up. */
  giveUpHours: number;
}

const POSTPONED = {
  error: ['text', ({ error }) => error],
  wait_ms: ['int', ({ waitMs }) => waitMs],
  give_up_hours: ['float8', ({ giveUpHours }) => giveUpHours],
} satisfies Inputs<Postponement>;

/** As `FAIL`, without a try. */
const POSTPONE = statement(
  'push-postpone',
  { config: one(LEASED), postponed: one(POSTPONED) },
  ({ config, postponed }) => `
UPDATE push_configs p SET state = next.state, failing_since = coalesce(p.failing_since, ${NOW}), last_error = ${postponed.error}, ${NO_LEASE},
  due_at = CASE next.state WHEN 'active' THEN ${inMs(postponed.wait_ms)} END
FROM (
  SELECT CASE WHEN failing_since < ${NOW} - ${postponed.give_up_hours} * interval '1 hour' THEN 'dead' ELSE 'active' END AS state
  FROM push_configs WHERE ${isLeased(config)} FOR NO KEY UPDATE
) next
WHERE ${isLeased(config, 'p.')} AND p.state = 'active'
RETURNING next.state`,
);

/** Also ends the lease if it was revoked meanwhile. */
const RELEASE = statement(
  'push-release',
  { config: one(LEASED) },
  ({ config }) => `
UPDATE push_configs SET ${NO_LEASE}, due_at = CASE WHEN state = 'active' AND head_sequence > delivered_sequence THEN ${NOW} END
WHERE ${isConfig(config)} AND (lease_count = ${config.lease} AND lease_owner IS NOT NULL
  OR lease_count = ${config.lease} + 1 AND lease_owner IS NULL AND lease_until IS NOT NULL)`,
);

/** The oldest of all tenants: $1 limit. A job for one of these tasks only wakes a worker, which claims with a share for each tenant. */
const LIST_DUE: Statement = {
  text: `
WITH RECURSIVE ${CLOCK}, ${TENANTS}
SELECT DISTINCT d.tenant_id, d.task_id FROM (
  SELECT p.tenant_id, p.task_id FROM served s, LATERAL (${configsFrom([['p.tenant_id', 's.tenant_id']], 'LIMIT $1::int')}) p
  WHERE p.tenant_id = s.tenant_id AND p.due_at <= (SELECT now FROM clock) ORDER BY p.due_at LIMIT $1::int
) d`,
};

const COUNT: Statement = {
  text: `
WITH RECURSIVE ${CLOCK}, ${TENANTS}
SELECT (SELECT count(*)::int FROM push_configs WHERE state = 'dead') AS dead,
  greatest(0, coalesce((SELECT extract(epoch FROM (SELECT now FROM clock) - min(
    (SELECT min(p.due_at) FROM push_configs p WHERE p.tenant_id = s.tenant_id AND p.due_at IS NOT NULL)
  ))::float8 FROM served s), 0)) AS oldest`,
};

/** Due push configs, with the last delivered event of each. The log of the task is the outbox: no event is stored here. */
@Injectable()
export class PushDeliveryStore {
  constructor(private readonly database: Database) {}

  /** Leases for due configs of all tenants. Each must be completed, failed or released before its lease ends. */
  async claim(workerId: string, leaseMs: number, limits: ClaimLimits): Promise<ClaimedPush[]> {
    const values = [workerId, leaseMs, limits.limit, limits.perHost, limits.perTenant];
    const answers = await this.database.systemQueries([
      [LOCK_CLAIMS, []],
      [CLAIM, values],
    ]);
    return (answers[1] as ClaimedRow[]).map(claimedOf);
  }

  /**
   * The receiver has everything up to `sequence`. If there is more, the lease is renewed, else it ends.
   * @param answer the answer of the receiver; unset = there was nothing to deliver
   * @returns the last event of the log; undefined: nothing more is to be delivered now, because the config was deleted or set again,
   * another worker has it, or its tenant was suspended
   */
  async advance(
    claimed: ClaimedPush,
    sequence: number,
    leaseMs: number,
    answer?: { status: number; ms: number; mode?: PushMode | undefined; exchange?: string | undefined },
  ): Promise<number | undefined> {
    const values = ADVANCE.values({ config: claimed, to: { ...answer, sequence, leaseMs } });
    type HeadRow = { head: number; suspended: boolean };
    const [row] = await this.database.tenantQuery<HeadRow>(claimed.tenantId, ADVANCE, values);
    return row && !row.suspended ? row.head : undefined;
  }

  /** Ends the lease. @returns the new state of the config; undefined: it was deleted, or another worker has it */
  async fail(claimed: ClaimedPush, failure: PushFailure): Promise<'active' | 'ended' | 'dead' | undefined> {
    const values = FAIL.values({ config: claimed, failure });
    type StateRow = { state: 'active' | 'ended' | 'dead' };
    const [row] = await this.database.tenantQuery<StateRow>(claimed.tenantId, FAIL, values);
    return row?.state;
  }

  /** Ends the lease without a try. @returns the new state of the config; undefined: it was deleted, or another worker has it */
  async postpone(claimed: ClaimedPush, postponed: Postponement): Promise<'active' | 'dead' | undefined> {
    const values = POSTPONE.values({ config: claimed, postponed });
    type StateRow = { state: 'active' | 'dead' };
    const [row] = await this.database.tenantQuery<StateRow>(claimed.tenantId, POSTPONE, values);
    return row?.state;
  }

  /** Gives the lease back. The next worker that claims the config continues. */
  async release(claimed: ClaimedPush): Promise<void> {
    await this.database.tenantQuery(claimed.tenantId, RELEASE, RELEASE.values({ config: claimed }));
  }

  /** Tasks with due configs that no worker has claimed, of all tenants that are not suspended. */
  async dueTasks(limit: number): Promise<{ tenantId: string; taskId: string }[]> {
    type TaskKeyRow = { tenant_id: string; task_id: string };
    const rows = await this.database.systemQuery<TaskKeyRow>(LIST_DUE, [limit]);
    return rows.map((row) => ({ tenantId: row.tenant_id, taskId: row.task_id }));
  }

  /** The receivers of a task with their newest tries, the oldest receiver first. */
  async ofTask(tenantId: string, taskId: string): Promise<TriedReceiver[]> {
    return readPushTries(this.database, tenantId, taskId);
  }

  /** Configs that were given up, and for how many seconds the oldest due one has waited. */
  async count(): Promise<{ dead: number; oldest: number }> {
    const [row] = await this.database.systemQuery<{ dead: number; oldest: number }>(COUNT, []);
    return row ?? { dead: 0, oldest: 0 };
  }
}

const claimedOf = (row: ClaimedRow): ClaimedPush => ({
  tenantId: row.tenant_id,
  taskId: row.task_id,
  configId: row.id,
  webhookId: row.webhook_id,
  url: row.url,
  protocol: row.protocol,
  authScheme: row.auth_scheme,
  states: row.states,
  mode: row.mode,
  sealed:
    row.key_id !== null && row.nonce && row.ciphertext
      ? { keyId: row.key_id, nonce: row.nonce, ciphertext: row.ciphertext }
      : null,
  delivered: row.delivered_sequence,
  head: row.head_sequence,
  failures: row.failures,
  lease: row.lease_count,
  waitedSeconds: row.waited_seconds,
  traces: row.traces ?? [],
});
