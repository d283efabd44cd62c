import { Message } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import * as sql from './dead-letter-sql.js';
import type { DeadLetter, DeadMessage } from '../tasks/records.js';
import { isUuid } from '../connection/uuid.js';

/** Runs that used up their attempts. They are written where such a run is failed. */
@Injectable()
export class DeadLetterStore {
  constructor(private readonly database: Database) {}

  /**
   * One page, the latest death first.
   * @param page.after the last of the page before
   */
  async list(
    tenantId: string,
    page: { limit: number; after?: Pick<DeadLetter, 'diedAt' | 'runId'> | undefined },
  ): Promise<DeadLetter[]> {
    const values = [tenantId, page.after?.diedAt, page.after?.runId, page.limit];
    return (await this.database.tenantQuery<sql.DeadLetterRow>(tenantId, sql.LIST, values)).map(letterOf);
  }

  /** Of all tenants, the latest death first. */
  async listAll(limit: number): Promise<DeadLetter[]> {
    const rows = await this.database.systemQuery<sql.DeadLetterRow>(sql.LIST, [null, null, null, limit]);
    return rows.map(letterOf);
  }

  async find(tenantId: string, runId: string): Promise<DeadLetter | undefined> {
    if (!isUuid(runId)) return undefined;
    const [row] = await this.database.tenantQuery<sql.DeadLetterRow>(tenantId, sql.FIND, [runId, tenantId]);
    return row && letterOf(row);
  }

  /** Whosever it is: for operators, who name a run alone. */
  async findAnywhere(runId: string): Promise<DeadLetter | undefined> {
    if (!isUuid(runId)) return undefined;
    const [row] = await this.database.systemQuery<sql.DeadLetterRow>(sql.FIND, [runId, null]);
    return row && letterOf(row);
  }

  /** The message with which the turn that died had begun. Undefined: its task is no longer kept. */
  async readMessage(tenantId: string, runId: string): Promise<DeadMessage | undefined> {
    const [row] = await this.database.tenantQuery<sql.SaidRow>(tenantId, sql.READ_SAID, [tenantId, runId]);
    if (!row?.message) return undefined;
    const { context_id: contextId, extensions } = row;
    return { message: Message.fromJSON(row.message), contextId, extensions: extensions ?? [] };
  }

  /**
   * Say which task a redelivery makes. It stays the same until it is confirmed, whoever asks.
   * @param again also if it was redelivered before
   * @returns undefined if there is no such dead letter; with `redeliveredAt` it was redelivered before
   */
  async reserve(
    tenantId: string,
    runId: string,
    taskId: string,
    again: boolean,
  ): Promise<DeadLetter | undefined> {
    if (!isUuid(runId)) return undefined;
    const values = [tenantId, runId, taskId, again];
    const [row] = await this.database.tenantQuery<sql.DeadLetterRow>(tenantId, sql.RESERVE, values);
    return row && letterOf(row);
  }

  /** The task of the redelivery is there. */
  async confirm(tenantId: string, runId: string, taskId: string): Promise<void> {
    await this.database.tenantQuery(tenantId, sql.CONFIRM, [tenantId, runId, taskId]);
  }
}

const letterOf = (row: sql.DeadLetterRow): DeadLetter => ({
  tenantId: row.tenant_id,
  runId: row.run_id,
  taskId: row.task_id,
  agentId: row.agent_id,
  reason: row.reason,
  attempts: row.attempts,
  diedAt: row.died_at,
  redeliveredAt: row.redelivered_at,
  redeliveredTaskId: row.redelivered_task_id,
});
