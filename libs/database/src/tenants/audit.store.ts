import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import type { AuditRecord, NewAuditRecord } from '../audit/audit-records.js';
import { AUDIT_COLUMNS, auditRecordOf, type AuditRow } from '../audit/audit-sql.js';

/** Which records to list. */
export interface AuditQuery {
  /** Unset = of all tenants and of the platform. */
  tenantId?: string;
  /** An action, or the first word of several, such as `token`. */
  action?: string | undefined;
  from?: Date | undefined;
  /** Only records before this time. */
  until?: Date | undefined;
  /** The last record of the page before. */
  after?: Pick<AuditRecord, 'at' | 'id'> | undefined;
  limit: number;
}

const MATCHES = `($2::text IS NULL OR action = $2 OR starts_with(action, $2 || '.'))
  AND at >= coalesce($3::timestamptz, '-infinity') AND at < coalesce($4::timestamptz, 'infinity')
  AND (at, id) < (coalesce($5::timestamptz, 'infinity'), coalesce($6::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY at DESC, id DESC LIMIT $7`;

/** $1 tenant $2 action $3 from $4 until $5, $6 the last one of the page before $7 limit */
const LIST: Statement = {
  name: 'audit-list',
  text: `SELECT ${AUDIT_COLUMNS} FROM audit_records WHERE tenant_id = $1 AND ${MATCHES}`,
};
/** As LIST, of all tenants: $1 is NULL. */
const LIST_ALL: Statement = {
  name: 'audit-list-all',
  text: `SELECT ${AUDIT_COLUMNS} FROM audit_records WHERE $1::uuid IS NULL AND ${MATCHES}`,
};

/**
 * The audit log: append-only, newest first. A change and its record are one transaction: `CatalogClient.change` and
 * `Transaction.record` write it. `write` is for what changes no row.
 */
@Injectable()
export class AuditStore {
  constructor(private readonly database: Database) {}

  /** Write a record that belongs to no other change. @param tenantId `PLATFORM` for the platform itself */
  async write(tenantId: string, record: NewAuditRecord): Promise<void> {
    await this.database.inTenant(tenantId, (transaction) => transaction.record(record));
  }

  /** At most `limit` records, the newest first. */
  async list({ tenantId, action, from, until, after, limit }: AuditQuery): Promise<AuditRecord[]> {
    const values = [tenantId ?? null, action, from, until, after?.at, after?.id, limit];
    if (after && !isUuid(after.id)) return [];
    const rows =
      tenantId === undefined
        ? await this.database.systemQuery<AuditRow>(LIST_ALL, values)
        : await this.database.lists.tenantQuery<AuditRow>(tenantId, LIST, values);
    return rows.map(auditRecordOf);
  }
}
