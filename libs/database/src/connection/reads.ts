import type { QueryResultRow } from 'pg';
import type { Statement, Values } from '../sql/statement.js';

/** Statements of one tenant, under its row-level security. */
export interface Reads {
  /** One statement in a transaction of its own. @returns its rows */
  tenantQuery<Row extends QueryResultRow>(
    tenantId: string,
    statement: Statement,
    values: Values,
  ): Promise<Row[]>;

  /** Several statements in one transaction and one round trip. @returns the rows of each */
  tenantQueries(tenantId: string, calls: readonly [Statement, Values][]): Promise<QueryResultRow[][]>;
}
