import { Injectable } from '@nestjs/common';
import { Database } from './database.js';
import * as sql from './storage-sql.js';

/** What tenants have stored, for those with a limit of it. */
@Injectable()
export class UsageStore {
  constructor(private readonly database: Database) {}

  /**
   * The tenants of these that nobody has counted for so many seconds, longest first.
   * @param limited all that have a limit; what is known of others is forgotten
   */
  async due(limited: readonly string[], seconds: number): Promise<string[]> {
    await this.database.systemQuery(sql.DROP_USAGE, [limited]);
    const rows = await this.database.systemQuery<{ tenant_id: string }>(sql.DUE, [limited, seconds]);
    return rows.map(({ tenant_id }) => tenant_id);
  }

  /** Sum up what the tenant's tasks have stored, and put right what was added up. */
  async count(tenantId: string): Promise<void> {
    await this.database.tenantQuery(tenantId, sql.BEGIN_USAGE, [tenantId]);
    await this.database.tenantQuery(tenantId, sql.RECOUNT, [tenantId]);
  }
}
