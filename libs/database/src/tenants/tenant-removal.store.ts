import { Injectable } from '@nestjs/common';
import { escapeIdentifier } from 'pg';
import { Database, type Statement } from '../connection/database.js';
import { IN_FLIGHT, WAITING } from '../dispatch/run-conditions.js';

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

/** The function is of the owner of the table: our role may not delete records. $1 tenant $2 limit */
const DELETE_AUDIT: Statement = { text: 'SELECT delete_audit_records_of($1::uuid, $2::int) AS count' };

/** Counters of request rates have the tenant in their key, and no column for it. $1 tenant */
const DELETE_RATES: Statement = { text: 'DELETE FROM rate_counters WHERE strpos(key, $1) > 0' };

/** $1 tenant */
const DELETE_TENANT: Statement = { text: 'DELETE FROM tenants WHERE id = $1' };

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
/** Tasks of one page. */
const PAGE = 100;

/** The rows of one tenant in all tables, for the end of the tenant. */
@Injectable()
export class TenantRemovalStore {
  constructor(private readonly database: Database) {}

  /** Ids of tasks whose run is queued, running or suspended, in order, at most 100. @param after the last one of the page before */
  async activeTasks(tenantId: string, after: string = FIRST_ID): Promise<string[]> {
    const values = [tenantId, after, PAGE];
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
    if (table === 'audit_records') {
      // Across tenants: the function reads the record of the deletion in the log of the platform.
      const [row] = await this.database.systemQuery<{ count: number }>(DELETE_AUDIT, values);
      return row?.count ?? 0;
    }
    return (await this.database.tenantQuery(tenantId, deleteSlice(table), values)).length;
  }

  /** Delete the tenant itself. Everything of it must be deleted before, because this is one transaction. */
  async deleteTenant(id: string): Promise<void> {
    await this.database.systemQueries([
      [DELETE_RATES, [id]],
      [DELETE_TENANT, [id]],
    ]);
  }
}
