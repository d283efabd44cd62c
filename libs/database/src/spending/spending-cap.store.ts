import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { v7 as uuid } from 'uuid';
import type { Actor, AuditAction } from '../audit/audit-records.js';
import { CatalogClient, transactionOf } from '../connection/catalog-client.js';
import { Database, type Statement } from '../connection/database.js';
import type { CapSetter, NewSpendingCap, SpendingCap, SpendingCapUse } from './cap-records.js';
import { startOf } from './cap-sql.js';

/** Caps of a tenant. Each is checked before each model call. */
export const MAX_CAPS = 100;

const COLUMNS = `c.id::text, c.kind, c.subject, c.name, c.period, c.micros::float8 AS micros, c.on_limit AS "onLimit", c.set_by AS "setBy",
  c.changed_by AS "changedBy", c.updated_at AS "updatedAt"`;

/** $1 tenant */
const LIST: Statement = {
  name: 'spending-caps-2',
  text: `
SELECT ${COLUMNS}, CASE WHEN c.period <> 'life' THEN s.start::text END AS "periodStart",
  coalesce(n.micros, 0)::float8 AS "usedMicros", n.subject AS "usedBy", coalesce((
    SELECT sum(a.micros) FROM spending_allowances a
    WHERE a.tenant_id = c.tenant_id AND a.cap_id = c.id AND a.period_start = s.start
  ), 0)::float8 AS "allowedMicros"
FROM spending_caps c CROSS JOIN LATERAL (SELECT ${startOf('c.period')} AS start) s LEFT JOIN LATERAL (
  SELECT micros, subject FROM spending_counts n
  WHERE n.tenant_id = c.tenant_id AND n.cap_id = c.id AND n.period_start = s.start
  ORDER BY micros DESC, subject LIMIT 1
) n ON true
WHERE c.tenant_id = $1
ORDER BY c.set_by, c.kind, c.name, c.period`,
};

/** A cap of the same setter, subject and period is replaced: what was spent counts on. */
const SET: Statement = {
  text: `
INSERT INTO spending_caps AS c (tenant_id, id, kind, subject, name, period, micros, on_limit, set_by, changed_by)
SELECT $1::uuid, v.id::uuid, v.kind, v.subject, v.name, v.period, v.micros, v."onLimit", v."setBy", v."changedBy"
FROM json_to_record($2::json) AS v(id text, kind text, subject text, name text, period text, micros bigint, "onLimit" text,
  "setBy" text, "changedBy" text)
ON CONFLICT (tenant_id, set_by, kind, subject, period) DO UPDATE SET name = excluded.name, micros = excluded.micros,
  on_limit = excluded.on_limit, changed_by = excluded.changed_by, updated_at = now()
RETURNING ${COLUMNS}`,
};

/** The spending caps of tenants. `TokenUsageStore` checks them. */
@Injectable()
export class SpendingCapStore {
  constructor(
    private readonly catalog: CatalogClient,
    private readonly database: Database,
  ) {}

  /** With what was spent in the present periods. */
  async list(tenantId: string): Promise<SpendingCapUse[]> {
    return this.database.tenantQuery<SpendingCapUse & QueryResultRow>(tenantId, LIST, [tenantId]);
  }

  /**
   * Set a cap. It replaces one of the same setter, subject and period.
   * @returns undefined if there are `MAX_CAPS` others
   */
  async set({ tenantId, by, ...cap }: NewSpendingCap): Promise<SpendingCap | undefined> {
    return this.catalog.change(
      tenantId,
      async (prisma, record) => {
        const { kind, subject, period, setBy } = cap;
        const others = await prisma.spendingCap.count({
          where: { tenantId, NOT: { kind, subject, period, setBy } },
        });
        if (others >= MAX_CAPS) return undefined;
        const value = JSON.stringify({ id: uuid(), ...cap, changedBy: by.key });
        const [stored] = await transactionOf(prisma).query<SpendingCap & QueryResultRow>(SET, [
          tenantId,
          value,
        ]);
        if (stored) await record(recordOf('cap.set', stored, by));
        return stored;
      },
      // One after the other, so that the number is exact.
      'caps are set',
    );
  }

  /** @param setBy only a cap that this one has set @returns whether there was such a cap */
  async remove(tenantId: string, id: string, setBy: CapSetter, by: Actor): Promise<boolean> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const where = { tenantId_id: { tenantId, id }, setBy };
      const cap = await prisma.spendingCap.findUnique({ where });
      if (!cap) return false;
      await prisma.spendingCap.delete({ where });
      const { kind, name, period, micros } = cap;
      await record(recordOf('cap.delete', { id, kind, name, period, micros: Number(micros) }, by));
      return true;
    });
  }
}

const recordOf = (
  action: AuditAction,
  {
    id,
    kind,
    name,
    period,
    micros,
  }: { id: string; kind: string; name: string; period: string; micros: number },
  by: Actor,
) =>
  ({
    action,
    target: { kind: 'cap', name: id },
    by,
    detail: { of: kind, subject: name, period, micros },
  }) as const;
