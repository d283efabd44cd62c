import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import * as sql from './storage-sql.js';

/** Tasks that are summed up at a time. Meanwhile the turns of their tenant wait: some milliseconds. */
const SLICE_TASKS = 2_000;
/** Longer than any count is old: one that has ended is not begun again. */
const NEVER = 1_000_000_000;

/** What tenants have stored, for those with a limit of it. */
@Injectable()
export class UsageStore {
  constructor(private readonly database: Database) {}

  /**
   * The tenants of these whose count is under way, or that nobody has counted for so many seconds. Those that were
   * never counted come first, then those that were counted longest ago.
   * @param limited all that have a limit; what is known of others is forgotten
   */
  async due(limited: readonly string[], seconds: number): Promise<string[]> {
    await this.database.systemQuery(sql.DROP_USAGE, [limited]);
    const rows = await this.database.systemQuery<{ tenant_id: string }>(sql.DUE, [limited, seconds]);
    return rows.map(({ tenant_id }) => tenant_id);
  }

  /**
   * Sum up the next tasks of the tenant, if a count is under way or due. Whoever dies between two slices leaves the
   * count to anybody else.
   * @param seconds the age after which a count is due again
   * @returns whether the count has ended
   */
  async count(tenantId: string, seconds: number, sliceTasks = SLICE_TASKS): Promise<boolean> {
    await this.database.tenantQuery(tenantId, sql.BEGIN_USAGE, [tenantId]);
    return countSlice(this.database, tenantId, seconds, sliceTasks);
  }
}

/** As `UsageStore.count`, for a tenant that has a row of usage. */
export async function countSlice(
  database: Database,
  tenantId: string,
  seconds = NEVER,
  sliceTasks = SLICE_TASKS,
): Promise<boolean> {
  return database.inTenant(tenantId, async (transaction) => {
    const [usage] = await transaction.query<sql.CountRow>(sql.LOCK_USAGE, [tenantId, seconds]);
    if (!usage?.due) return true;
    const values = [tenantId, usage.counting_after, sliceTasks];
    const [counted] = await transaction.query<{ is_last: boolean }>(sql.COUNT_SLICE, values);
    return counted?.is_last ?? true;
  });
}
