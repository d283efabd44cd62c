import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement, type Values } from '../connection/database.js';
import type { DeletedRows, Retention, Tombstone } from '../tasks/records.js';
import * as sql from './retention-sql.js';
import { isUuid } from '../connection/uuid.js';

/** Deletes the tasks that have ended long enough ago, and remembers that they were. */
@Injectable()
export class RetentionStore {
  constructor(private readonly database: Database) {}

  /**
   * Do `work` unless a process is at it already, on any machine. The lock is a transaction's, which has no
   * snapshot and keeps no vacuum from its work; it goes with its connection, however this process ends.
   * @param work calls `stillAlone` between its steps, which rejects when the lock is lost
   * @returns whether `work` was done
   */
  async alone(work: (stillAlone: () => Promise<void>) => Promise<void>): Promise<boolean> {
    return this.database.inSystem(async (transaction) => {
      const [lock] = await transaction.query<{ held: boolean }>(sql.TRY_LOCK, []);
      if (!lock?.held) return false;
      await work(async () => {
        await transaction.query(sql.KEEP_LOCK, []);
      });
      return true;
    });
  }

  /**
   * Make tombstones of at most `limit` tasks that are past their retention, oldest first. From then on nobody
   * sees them; their logs go with `purge`. A task that has not ended is never touched.
   */
  async expire(retentions: readonly Retention[], limit: number): Promise<DeletedRows> {
    const tenants = retentions.map(({ tenantId }) => tenantId);
    const days = retentions.map((retention) => retention.days);
    return this.deleted(sql.EXPIRE, [tenants, days, limit]);
  }

  /** Delete at most `limit` events of the logs whose tasks are gone, with their messages and runs. */
  async purge(limit: number): Promise<DeletedRows> {
    return this.deleted(sql.PURGE, [limit]);
  }

  /** Delete at most `limit` tombstones that are older than that many days, with the ids callers gave the tasks. */
  async forget(days: number, limit: number): Promise<DeletedRows> {
    return this.deleted(sql.FORGET, [days, limit]);
  }

  /** Delete at most `limit` keys of messages that have expired. */
  async dropKeys(limit: number): Promise<DeletedRows> {
    return this.deleted(sql.DROP_KEYS, [limit]);
  }

  /** What is left of a task that was deleted. Undefined: there was none, or it is another tenant's. */
  async findTombstone(tenantId: string, taskId: string): Promise<Tombstone | undefined> {
    if (!isUuid(taskId)) return undefined;
    const [row] = await this.database.tenantQuery<sql.TombstoneRow>(tenantId, sql.FIND_TOMBSTONE, [
      tenantId,
      taskId,
    ]);
    return (
      row && {
        agentId: row.agent_id,
        endedAt: row.ended_at,
        deletedAt: row.deleted_at,
        retentionDays: row.retention_days,
      }
    );
  }

  private async deleted(statement: Statement, values: Values): Promise<DeletedRows> {
    const [row] = await this.database.systemQuery<DeletedRows & QueryResultRow>(statement, values);
    return row ?? {};
  }
}
