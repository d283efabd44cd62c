import { createHash } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { v7 as uuid } from 'uuid';
import { type Inputs, one, statement, type Values } from '../sql/statement.js';
import type { Actor, AuditOutcome, AuditRecord, NewAuditRecord } from './audit-records.js';

/** Longest name of a target. Callers choose some of them. */
const MAX_NAME = 256;
/** Longest detail, as JSON. A change may carry a whole agent, and the log is kept for long. */
const MAX_DETAIL_BYTES = 4_096;
/** Bits of an address that are stored: enough to distinguish networks, too few to identify a person. */
const IPV4_BITS = 24;
const IPV6_BITS = 48;

export interface AuditRow {
  tenant_id: string;
  id: string;
  at: Date;
  actor_kind: Actor['kind'];
  actor: string;
  actor_name: string | null;
  source: string | null;
  request_id: string | null;
  action: string;
  target_kind: string;
  target: string;
  outcome: AuditOutcome;
  detail: Record<string, unknown>;
}

/** The columns of an AuditRow. */
export const AUDIT_COLUMNS =
  'tenant_id::text, id::text, at, actor_kind, actor, actor_name, source, request_id, action, target_kind, target, outcome, detail';

/** A record as it is written. */
interface RecordOfTenant extends NewAuditRecord {
  tenantId: string;
}

const NEW_RECORD = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  // Ids grow with time: they order the records of one millisecond.
  id: ['uuid', ({ id = uuid() }) => id],
  actor_kind: ['text', ({ by }) => by.kind],
  actor: ['text', ({ by }) => by.key],
  actor_name: ['text', ({ by }) => (by.name === undefined ? null : storable(by.name).slice(0, MAX_NAME))],
  source: ['text', ({ by }) => by.source ?? (by.address === undefined ? null : sourceOf(by.address))],
  request_id: ['text', ({ by }) => by.requestId ?? null],
  action: ['text', ({ action }) => action],
  target_kind: ['text', ({ target }) => target.kind],
  target: ['text', ({ target }) => storable(target.name).slice(0, MAX_NAME)],
  outcome: ['text', ({ outcome = 'ok' }) => outcome],
  detail: ['json', ({ detail = {} }) => detailJson(detail)],
} satisfies Inputs<RecordOfTenant>;

/** Writes a record with the name of the actor, or else that of its token, unless there is one with its id. The values are those of `auditValues`. */
export const RECORD = statement(
  'audit-record',
  { record: one(NEW_RECORD) },
  ({ record }) => `
INSERT INTO audit_records (tenant_id, id, actor_kind, actor, actor_name, source, request_id, action, target_kind, target, outcome, detail)
VALUES (${record.tenant_id}, ${record.id}, ${record.actor_kind}, ${record.actor}, coalesce(${record.actor_name}, (
    SELECT left(name, 200) || ' (' || prefix || ')' FROM api_tokens
    WHERE tenant_id = ${record.tenant_id} AND id = substring(${record.actor} FROM '^token:([0-9a-f-]{36})$')::uuid
  )), ${record.source}, ${record.request_id}, ${record.action}, ${record.target_kind}, ${record.target}, ${record.outcome}, ${record.detail})
ON CONFLICT (tenant_id, id) DO NOTHING
RETURNING ${AUDIT_COLUMNS}`,
);

/** The values of `RECORD`. */
export const auditValues = (tenantId: string, record: NewAuditRecord): Values =>
  RECORD.values({ record: { ...record, tenantId } });

/**
 * The id of the platform's record that a tenant is deleted. The functions that delete records compute the same
 * (migration `audit_deletion`). A hash, because nothing of a tenant stays, and so not its id.
 */
export const deletionRecordId = (tenantId: string): string =>
  createHash('md5')
    .update(`tenant.delete ${tenantId}`)
    .digest('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');

export const auditRecordOf = (row: AuditRow): AuditRecord => ({
  tenantId: row.tenant_id,
  id: row.id,
  at: row.at,
  actor: { kind: row.actor_kind, key: row.actor, name: row.actor_name },
  source: row.source,
  requestId: row.request_id,
  action: row.action,
  target: { kind: row.target_kind, name: row.target },
  outcome: row.outcome,
  detail: row.detail,
});

/** `loopback`, or the network of an address, such as 192.0.2.0/24: enough for an audit, and no personal data. */
export function sourceOf(ip: string): string {
  if (!ipaddr.isValid(ip)) return 'unknown';
  const address = ipaddr.process(ip);
  if (address.range() === 'loopback') return 'loopback';
  return address instanceof ipaddr.IPv6
    ? `${ipaddr.IPv6.networkAddressFromCIDR(`${address.toString()}/${IPV6_BITS}`).toString()}/${IPV6_BITS}`
    : `${ipaddr.IPv4.networkAddressFromCIDR(`${address.toString()}/${IPV4_BITS}`).toString()}/${IPV4_BITS}`;
}

function detailJson(detail: object): string {
  const json = JSON.stringify(detail, (_key, value: unknown) =>
    typeof value === 'string' ? storable(value) : value,
  );
  return Buffer.byteLength(json) <= MAX_DETAIL_BYTES ? json : '{"truncated":true}';
}

/** Postgres has no text with U+0000. */
const storable = (text: string): string => text.replaceAll('\0', '');
