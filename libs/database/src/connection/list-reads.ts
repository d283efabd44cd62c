import type { QueryResultRow } from 'pg';
import type { ConnectionShares } from './connection-shares.js';
import type { Statement, Values } from '../sql/statement.js';
import type { Reads } from './reads.js';
import { rethrowPlain } from './transient.js';

/**
 * Lists, searches and sums of tenants. Such a statement may read many thousands of rows, and a few of them keep all cores of a small
 * server busy. So they have a share of the connections, of which a tenant has half: its further statements wait for those at work.
 */
export class ListReads implements Reads {
  /**
   * @param reads what executes the statements
   * @param shares those of the lists of the process
   */
  constructor(
    private readonly reads: Pick<Reads, 'tenantQueries'>,
    private readonly shares: ConnectionShares,
  ) {}

  async tenantQuery<Row extends QueryResultRow>(
    tenantId: string,
    statement: Statement,
    values: Values,
  ): Promise<Row[]> {
    const [rows] = await this.tenantQueries(tenantId, [[statement, values]]);
    return rows as Row[];
  }

  async tenantQueries(tenantId: string, calls: readonly [Statement, Values][]): Promise<QueryResultRow[][]> {
    await this.shares.take(tenantId).catch(rethrowPlain);
    try {
      return await this.reads.tenantQueries(tenantId, calls);
    } finally {
      this.shares.give(tenantId);
    }
  }
}
