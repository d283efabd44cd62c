import { Injectable } from '@nestjs/common';
import { escapeIdentifier } from 'pg';
import { type Actor, PLATFORM_ACTOR } from '../audit/audit-records.js';
import { MAY_DELETE_AUDIT } from '../audit/audit-sql.js';
import { Database, type Statement } from '../connection/database.js';
import { IN_FLIGHT, WAITING } from '../dispatch/dispatch.store.js';
import type { Tenant } from './tenant-records.js';

/**
 * The tables with rows of tenants, from the catalog of the database: a table of a later migration is deleted without a
 * word here. `tasks` comes first, because workers write nothing for a task that is gone. A table that others refer to
 * comes behind them.
 */
const TABLES: Statement = {
  text: `
SELECT c.relname::text AS name FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = current_schema()::regnamespace
ORDER BY c.relname <> 'tasks',
  (SELECT count(*) FROM pg_constraint f WHERE f.contype = 'f' AND f.confrelid = c.oid), c.relname`,
};

/** $1 tenant $2 limit */
const deleteSlice = (table: string): Statement => ({
  text: `
DELETE FROM ${escapeIdentifier(table)} WHERE tenant_id = $1 AND ctid = ANY(ARRAY(
  SELECT ctid FROM ${escapeIdentifier(table)} WHERE tenant_id = $1 LIMIT $2
))
RETURNING 1`,
});

/** Counters of request rates have the tenant in their key, and no column for it. $1 tenant */
const DELETE_RATES: Statement = { text: 'DELETE FROM rate_counters WHERE strpos(key, $1) > 0' };

/** $1 tenant */
const DELETE_TENANT: Statement = { text: 'DELETE FROM tenants WHERE id = $1 RETURNING id' };

/** Tasks with a run that is not over, those of each kind from its index: $1 tenant $2 after this task $3 limit */
const ACTIVE_TASKS: Statement = {
  name: 'tasks-active',
  text: `
SELECT task_id FROM (
  SELECT task_id FROM runs WHERE tenant_id = $1 AND task_id > $2 AND ${IN_FLIGHT}
  UNION ALL
  SELECT task_id FROM runs WHERE tenant_id = $1 AND task_id > $2 AND ${WAITING}
  UNION ALL
  SELECT task_id FROM runs WHERE tenant_id = $1 AND task_id > $2 AND state = 'suspended'
) active ORDER BY task_id LIMIT $3`,
};

const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** The rows of one tenant in all tables, for the end of the tenant. */
@Injectable()
export class TenantRemovalStore {
  constructor(private readonly database: Database) {}

  /** Ids of tasks whose run is queued, running or suspended, in order. @param after the last one of the page before */
  async activeTasks(tenantId: string, after: string = FIRST_ID, limit = 100): Promise<string[]> {
    const values = [tenantId, after, limit];
    const rows = await this.database.tenantQuery<{ task_id: string }>(tenantId, ACTIVE_TASKS, values);
    return rows.map(({ task_id }) => task_id);
  }

  /** Names of the tables with rows of tenants, in the order in which they are to be emptied. */
  async tables(tenantId: string): Promise<string[]> {
    const rows = await this.database.tenantQuery<{ name: string }>(tenantId, TABLES, []);
    return rows.map(({ name }) => name);
  }

  /** Delete at most `limit` rows of the tenant. @returns how many */
  async deleteSlice(tenantId: string, table: string, limit: number): Promise<number> {
    const values = [tenantId, limit];
    const [, rows = []] = await this.database.tenantQueries(tenantId, [
      [MAY_DELETE_AUDIT, []],
      [deleteSlice(table), values],
    ]);
    return rows.length;
  }

  /** Delete the tenant itself. Everything of it must be deleted before, because this is one transaction. */
  async deleteTenant({ id, slug }: Pick<Tenant, 'id' | 'slug'>, by: Actor = PLATFORM_ACTOR): Promise<void> {
    // Its own audit log is gone. The record is the platform's.
    await this.database.inSystem(async (transaction) => {
      await transaction.query(DELETE_RATES, [id]);
      const deleted = await transaction.query(DELETE_TENANT, [id]);
      if (deleted.length === 0) return;
      await transaction.record({ action: 'tenant.delete', target: { kind: 'tenant', name: slug }, by });
    });
  }
}
