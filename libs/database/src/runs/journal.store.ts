import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import { APPEND_JOURNAL, type JournalRow, READ_JOURNAL } from './journal-sql.js';
import type { RunKey } from '../tasks/records.js';
import { isUuid } from '../connection/uuid.js';

/** One value of a task's journal. */
export interface JournalRecord {
  /** The run that wrote it. */
  runId: string;
  /** From 1, without holes, over all turns of the task. */
  position: number;
  /** Any JSON value. */
  value: unknown;
}

/** What runtimes remember of their tasks: see `TurnJournal` of libs/agents. */
@Injectable()
export class JournalStore {
  constructor(private readonly database: Database) {}

  /** The whole journal of a task, oldest first; empty if there is none, or if the task is another tenant's. */
  async read(tenantId: string, taskId: string): Promise<JournalRecord[]> {
    if (!isUuid(taskId)) return [];
    const rows = await this.database.tenantQuery<JournalRow>(tenantId, READ_JOURNAL, [tenantId, taskId]);
    return rows.map(({ run_id: runId, position, value }) => ({ runId, position, value }));
  }

  /**
   * Write the entry at `position`. To do it again after a lost connection is harmless.
   * @returns false if the attempt is not current or the task has ended: nothing was written then
   */
  async append(
    { tenantId, taskId, runId, attempt }: RunKey,
    position: number,
    value: unknown,
  ): Promise<boolean> {
    const values = [tenantId, taskId, runId, attempt, position, JSON.stringify(value)];
    return (await this.database.tenantQuery(tenantId, APPEND_JOURNAL, values)).length > 0;
  }
}
