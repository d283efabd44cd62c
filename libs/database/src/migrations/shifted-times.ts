import { connectionConfig, sessionConfig } from '@baton/postgres';
import type { Client, QueryResultRow } from 'pg';
import { PLATFORM } from '../audit/audit-records.js';
import { beginIn, isSystemKeyRefused, SYSTEM_SCOPE } from '../connection/row-security.js';
import { inSession } from './in-session.js';

// Releases up to 0.2.0 wrote times of the catalog in UTC, without saying so, into sessions that had the time zone of Postgres. In
// any other zone than UTC these times are off by its offset. The audit log is right: Postgres wrote the time of each record, in
// the transaction of the change, and the detail of a token has the end that was meant.

/** A column that such a release wrote, and the records of the audit log that say when. */
interface ShiftedColumn {
  table: string;
  column: string;
  /** SQL of the tenant and of the target of its records. */
  tenant: string;
  target: string;
  kind: string;
  actions: readonly string[];
  /** Another column that was written with it. */
  also?: string;
}

const inTenant = (table: string, kind: string, target: string) => ({
  table,
  tenant: 't.tenant_id',
  kind,
  target,
});
const TOKENS = inTenant('api_tokens', 'token', 't.id::text');
const OPERATOR_TOKENS = {
  ...inTenant('operator_tokens', 'token', 't.id::text'),
  tenant: `'${PLATFORM}'::uuid`,
};
const WEBHOOKS = inTenant('webhooks', 'webhook', 't.id::text');
const SECRETS = inTenant('secrets', 'secret', 't.name');

const COLUMNS: readonly ShiftedColumn[] = [
  { ...TOKENS, column: 'created_at', actions: ['token.create'] },
  { ...TOKENS, column: 'revoked_at', actions: ['token.revoke'] },
  { ...OPERATOR_TOKENS, column: 'created_at', actions: ['operator-token.create'], also: 'expires_at' },
  { ...OPERATOR_TOKENS, column: 'revoked_at', actions: ['operator-token.revoke'] },
  {
    ...inTenant('tenants', 'tenant', 't.slug'),
    tenant: 't.id',
    column: 'created_at',
    actions: ['tenant.create'],
  },
  { ...inTenant('issuers', 'issuer', 't.id::text'), column: 'created_at', actions: ['issuer.add'] },
  { ...WEBHOOKS, column: 'created_at', actions: ['webhook.create'] },
  { ...WEBHOOKS, column: 'updated_at', actions: ['webhook.create', 'webhook.update', 'webhook.rotate'] },
  { ...SECRETS, column: 'created_at', actions: ['secret.set'] },
  { ...SECRETS, column: 'updated_at', actions: ['secret.set', 'secret.origins'] },
];

/** Every offset of a zone is a number of quarters of an hour, from 14 h east to 12 h west. In seconds. */
const isOffset = (seconds: string): string => `${seconds} <> 0 AND ${seconds} BETWEEN -50400 AND 43200`;

/** `row` and `shift` of the rows whose time is off, in seconds. A row with a record of the same moment is right. */
const shifted = ({ table, column, tenant, target, kind, actions }: ShiftedColumn): string => `
SELECT t.ctid AS row, (array_agg(r.shift ORDER BY abs(r.shift)))[1] AS shift
FROM ${table} t
JOIN audit_records a ON a.tenant_id = ${tenant} AND a.target_kind = '${kind}' AND a.target = ${target}
  AND a.outcome = 'ok' AND a.action IN (${actions.map((action) => `'${action}'`).join(', ')})
CROSS JOIN LATERAL (SELECT extract(epoch FROM t.${column} - a.at)::float8 AS apart) p
CROSS JOIN LATERAL (SELECT round(p.apart / 900) * 900 AS shift) r
WHERE abs(p.apart - r.shift) < 30
GROUP BY t.ctid
HAVING bool_and(${isOffset('r.shift')})`;

/**
 * A time in the zone $1 that was written as if it were one in UTC. If the zone does not explain how far off the row is, its
 * shift does: the two differ when the clocks change between the two times of a row.
 */
const inUtc = (time: string): string => `(${time} AT TIME ZONE $1::text) AT TIME ZONE 'UTC'`;
const corrected = (column: string, by: string): string => `CASE
  WHEN abs(extract(epoch FROM ${inUtc(`t.${by}`)} - t.${by}) + d.shift) < 1 THEN ${inUtc(`t.${column}`)}
  ELSE t.${column} - d.shift * interval '1 s' END`;

const correctTimes = (each: ShiftedColumn): string => `
UPDATE ${each.table} t
SET ${[each.column, ...(each.also === undefined ? [] : [each.also])].map((name) => `${name} = ${corrected(name, each.column)}`).join(', ')}
FROM (${shifted(each)}) d WHERE t.ctid = d.row`;

/** The last expiry of each token that a person has set. */
const MEANT = `SELECT DISTINCT ON (tenant_id, target) tenant_id, target, (detail ->> 'expiresAt')::timestamptz AS expires_at
FROM audit_records
WHERE target_kind = 'token' AND outcome = 'ok' AND action IN ('token.create', 'token.update', 'token.rotate')
  AND detail ->> 'expiresAt' IS NOT NULL
ORDER BY tenant_id, target, at DESC, id DESC`;
const APART = `round(extract(epoch FROM t.expires_at - m.expires_at)::numeric, 3)`;
const SHIFTED_EXPIRY = `m.tenant_id = t.tenant_id AND m.target = t.id::text AND ${isOffset(APART)} AND ${APART} % 900 = 0`;
const EXPIRIES = `SELECT FROM api_tokens t, (${MEANT}) m WHERE ${SHIFTED_EXPIRY}`;
/** The secret before a rotation ends with its token. */
const MEND_EXPIRIES = `
UPDATE api_tokens t SET expires_at = m.expires_at, previous_until = least(t.previous_until, m.expires_at)
FROM (${MEANT}) m WHERE ${SHIFTED_EXPIRY}`;

/** Tokens that will end, and of whose beginning the audit log has no record. */
const UNKNOWN = `SELECT FROM api_tokens t WHERE expires_at > now() AND revoked_at IS NULL AND NOT EXISTS (
  SELECT FROM audit_records a WHERE a.tenant_id = t.tenant_id AND a.target = t.id::text AND a.action = 'token.create')`;

const ZONE = `SELECT current_setting('TimeZone') AS zone,
  extract(timezone FROM '2026-01-01 00:00Z'::timestamptz) <> 0
    OR extract(timezone FROM '2026-07-01 00:00Z'::timestamptz) <> 0 AS "isShifted"`;

/** Times that an earlier release stored in the time zone of Postgres instead of UTC. */
export interface ShiftedTimes {
  /** How many `npm run migrate` can correct. */
  count: number;
  /** The time zone of sessions that set none. */
  zone: string;
  /** Tokens whose end may be off by the offset of that zone: the audit log has no record of it. */
  unknownTokens: number;
}

/** @param client in the scope of all tenants */
export async function findShiftedTimes(client: Client, databaseUrl: string): Promise<ShiftedTimes> {
  const { zone, isShifted } = await zoneOf(databaseUrl);
  const counts = [EXPIRIES, ...COLUMNS.map(shifted)].map((text) => `(SELECT count(*) FROM (${text}) n)`);
  const [row] = await rowsOf<{ count: number; unknown: number }>(
    client,
    `SELECT (${counts.join(' + ')})::int AS count, (SELECT count(*) FROM (${UNKNOWN}) n)::int AS unknown`,
  );
  return { count: row?.count ?? 0, zone, unknownTokens: isShifted ? (row?.unknown ?? 0) : 0 };
}

/**
 * Corrects the times that differ from the audit log. It can be repeated.
 * @param systemKey DATABASE_SYSTEM_KEY. With another key than the database asks for, nothing is done.
 * @returns how many times it has corrected
 */
export async function correctShiftedTimes(
  databaseUrl: string,
  systemKey: string | undefined,
): Promise<number> {
  const { zone } = await zoneOf(databaseUrl);
  return inSession(sessionConfig(databaseUrl), async (client) => {
    if (await isSystemKeyRefused(client, systemKey)) return 0;
    for (const statement of beginIn(SYSTEM_SCOPE, systemKey)) await client.query(statement);
    let count = (await client.query(MEND_EXPIRIES)).rowCount ?? 0;
    for (const each of COLUMNS) count += (await client.query(correctTimes(each), [zone])).rowCount ?? 0;
    await client.query('COMMIT');
    return count;
  });
}

/** The time zone of a session that does not set it, as in earlier releases. */
const zoneOf = (databaseUrl: string): Promise<{ zone: string; isShifted: boolean }> =>
  inSession(connectionConfig(databaseUrl), async (client) => {
    await client.query('SET jit = off');
    const [row] = await rowsOf<{ zone: string; isShifted: boolean }>(client, ZONE);
    return row ?? { zone: 'UTC', isShifted: false };
  });

const rowsOf = async <Row extends QueryResultRow>(client: Client, text: string): Promise<Row[]> =>
  (await client.query<Row>(text)).rows;
