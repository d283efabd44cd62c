import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { keyOfTenant } from '../connection/row-security.js';
import { Database, type Statement } from '../connection/database.js';
import { RUN_KEY, type RunKey } from '../dispatch/run-key.js';
import { type Inputs, list, one, statement } from '../sql/statement.js';

/** The stored record of one model call. */
export interface StoredCallRecord {
  /** Position of the entry of the call in the journal of its task. */
  position: number;
  /** JSON without secrets. */
  json: string;
}

const RECORD = {
  position: ['int', ({ position }) => position],
  bytes: ['int', ({ json }) => Buffer.byteLength(json)],
  value: ['json', ({ json }) => json],
} satisfies Inputs<StoredCallRecord>;

/** Fenced like an entry of the journal. Bytes count as those of the turn that is running. */
const APPEND_RECORDS = statement(
  'call-records-append',
  { run: one(RUN_KEY), records: list(RECORD) },
  ({ run, records }) => `
WITH task AS (
  SELECT id FROM tasks
  WHERE tenant_id = ${keyOfTenant(run.tenant_id)} AND id = ${run.task_id} AND active_run_id = ${run.id} AND attempt = ${run.attempt}
  FOR UPDATE
), written AS (
  INSERT INTO call_records (tenant_id, task_id, position, run_id, attempt, value, bytes)
  SELECT ${run.tenant_id}, task.id, r.position, ${run.id}, ${run.attempt}, r.value, r.bytes
  FROM task, ${records.rows('r')}
  ON CONFLICT (tenant_id, task_id, position) DO NOTHING
  RETURNING bytes
), counted AS (
  UPDATE tasks SET open_bytes = open_bytes + (SELECT sum(bytes) FROM written)
  WHERE tenant_id = ${keyOfTenant(run.tenant_id)} AND id = ${run.task_id} AND EXISTS (SELECT FROM written)
)
SELECT count(*)::int AS written FROM written`,
);

/** $1 tenant $2 task $3 position */
const READ_RECORD: Statement = {
  name: 'call-records-read',
  text: 'SELECT value FROM call_records WHERE tenant_id = $1 AND task_id = $2 AND position = $3',
};

/** Requests to the models of llm agents and their answers, call by call. */
@Injectable()
export class CallRecordStore {
  constructor(private readonly database: Database) {}

  /**
   * Stores the records of calls that an attempt has made. Idempotent. Nothing is written if the attempt is not current, or if its run
   * has ended.
   */
  async append(run: RunKey, records: readonly StoredCallRecord[]): Promise<void> {
    const values = APPEND_RECORDS.values({ run, records });
    await this.database.tenantQuery(run.tenantId, APPEND_RECORDS, values);
  }

  /** The record of a call. Undefined: there is none, or the task is another tenant's. */
  async read(tenantId: string, taskId: string, position: number): Promise<unknown> {
    if (!isUuid(taskId)) return undefined;
    const values = [tenantId, taskId, position];
    const [row] = await this.database.tenantQuery<{ value: unknown }>(tenantId, READ_RECORD, values);
    return row?.value;
  }
}
