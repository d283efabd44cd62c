import { createHash } from 'node:crypto';
import ipaddr from 'ipaddr.js';
import { v7 as uuid } from 'uuid';
import type { Actor, AuditOutcome, AuditRecord, NewAuditRecord } from './audit-records.js';

/** Longest name of a target. Callers choose some of them. */
const MAX_NAME = 256;
const MAX_DETAIL_BYTES = 4_096;
/** Bits of an address that are stored: enough to tell networks apart, too few for one person. */
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

/** Writes a record with the name that the token has now, unless there is one with its id. The values are those of `auditValues`. */
export const RECORD = {
  name: 'audit-record',
  text: `
INSERT INTO audit_records (tenant_id, id, actor_kind, actor, actor_name, source, request_id, action, target_kind, target, outcome, detail)
VALUES ($1::uuid, $2::uuid, $3::text, $4::text, (
    SELECT left(name, 200) || ' (' || prefix || ')' FROM api_tokens
    WHERE tenant_id = $1::uuid AND id = substring($4::text FROM '^token:([0-9a-f-]{36})$')::uuid
  ), $5::text, $6::text, $7::text, $8::text, $9::text, $10::text, $11::json)
ON CONFLICT (tenant_id, id) DO NOTHING
RETURNING ${AUDIT_COLUMNS}`,
};

/** The values of `RECORD`. Ids grow with time: they order the records of one millisecond. */
export function auditValues(
  tenantId: string,
  { id = uuid(), action, target, by, outcome = 'ok', detail = {} }: NewAuditRecord,
): readonly unknown[] {
  const source = by.source ?? (by.address === undefined ? null : sourceOf(by.address));
  return [
    tenantId,
    id,
    by.kind,
    by.key,
    source,
    by.requestId ?? null,
    action,
    target.kind,
    storable(target.name).slice(0, MAX_NAME),
    outcome,
    detailJson(detail),
  ];
}

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
