import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
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

const QUERY = {
  action: ['text', ({ action }) => action],
  from: ['timestamptz', ({ from }) => from],
  until: ['timestamptz', ({ until }) => until],
  after_at: ['timestamptz', ({ after }) => after?.at],
  after_id: ['uuid', ({ after }) => after?.id],
  rows: ['int', ({ limit }) => limit],
} satisfies Inputs<AuditQuery>;

const matches = (query: Record<keyof typeof QUERY, string>): string =>
  `(${query.action} IS NULL OR action = ${query.action} OR starts_with(action, ${query.action} || '.'))
  AND at >= coalesce(${query.from}, '-infinity') AND at < coalesce(${query.until}, 'infinity')
  AND (at, id) < (coalesce(${query.after_at}, 'infinity'), coalesce(${query.after_id}, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
ORDER BY at DESC, id DESC LIMIT ${query.rows}`;

const LIST = statement(
  'audit-list',
  { tenant: one({ id: ['uuid', (id: string) => id] }), query: one(QUERY) },
  ({ tenant, query }) =>
    `SELECT ${AUDIT_COLUMNS} FROM audit_records WHERE tenant_id = ${tenant.id} AND ${matches(query)}`,
);
/** As `LIST`, of all tenants. */
const LIST_ALL = statement(
  'audit-list-all',
  { query: one(QUERY) },
  ({ query }) => `SELECT ${AUDIT_COLUMNS} FROM audit_records WHERE ${matches(query)}`,
);

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
  async list(query: AuditQuery): Promise<AuditRecord[]> {
    const { tenantId, after } = query;
    if (after && !isUuid(after.id)) return [];
    const rows =
      tenantId === undefined
        ? await this.database.systemQuery<AuditRow>(LIST_ALL, LIST_ALL.values({ query }))
        : await this.database.lists.tenantQuery<AuditRow>(
            tenantId,
            LIST,
            LIST.values({ tenant: tenantId, query }),
          );
    return rows.map(auditRecordOf);
  }
}
