import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import { plainText } from '../connection/transient.js';
import { RUN_KEY, type RunKey } from '../dispatch/run-key.js';
import { type Inputs, list, one, statement } from '../sql/statement.js';
import { LOCK_TASK } from '../log/lock-task.js';

/** A line that an agent has written to its console. */
export interface ConsoleLine {
  at: Date;
  level: 'debug' | 'info' | 'warn' | 'error';
  text: string;
}

/** A stored line. */
export interface ConsoleLineRecord extends ConsoleLine {
  /** From 1, without holes, over all turns of the task. */
  position: number;
  runId: string;
  attempt: number;
}

/** Maximum number of lines of a task: a console is for a person to read. */
const MAX_LINES = 1_000;
/** Maximum bytes of their texts. They count as stored bytes of the tenant. */
const MAX_BYTES = 256 * 1024;
const NOTE = `Further lines were dropped: a task keeps ${MAX_LINES} lines and ${MAX_BYTES / 1024} KiB of its console`;
/** `total_bytes` of the note: nothing is stored after it. The maximum of an integer. */
const FULL = 2 ** 31 - 1;

const LINE = {
  at: ['timestamptz', ({ at }) => at.toISOString()],
  level: ['text', ({ level }) => level],
  text: ['text', ({ text }) => plainText(text)],
} satisfies Inputs<ConsoleLine>;

/**
 * Appends lines as far as there is room, then the note. Bytes count as those of the turn that is running; after its end they
 * do not count, because the turn's bytes are added up already.
 */
const APPEND_LINES = statement(
  'console-append',
  { run: one(RUN_KEY), lines: list(LINE) },
  ({ run, lines }) => `
WITH task AS (
  SELECT id FROM tasks WHERE tenant_id = ${run.tenant_id} AND id = ${run.task_id}
), head AS (
  SELECT coalesce(l.position, 0) AS position, coalesce(l.total_bytes, 0) AS bytes FROM (SELECT 1) AS one
  LEFT JOIN LATERAL (
    SELECT position, total_bytes FROM console_lines WHERE tenant_id = ${run.tenant_id} AND task_id = ${run.task_id} ORDER BY position DESC LIMIT 1
  ) l ON true
), numbered AS (
  SELECT head.position + n::int AS position, at, level, text,
    least(head.bytes + sum(octet_length(text)) OVER (ORDER BY n), ${FULL})::int AS total
  FROM head, ${lines.rows('l', 'n')}
), sorted AS (
  SELECT *, position <= ${MAX_LINES} AND total <= ${MAX_BYTES} AS fits FROM numbered
), written AS (
  INSERT INTO console_lines (tenant_id, task_id, position, run_id, attempt, at, level, text, total_bytes)
  SELECT ${run.tenant_id}, task.id, position, ${run.id}, ${run.attempt}, at, level, text, total FROM task, sorted WHERE fits
  UNION ALL
  SELECT ${run.tenant_id}, task.id, first.position, ${run.id}, ${run.attempt}, at, 'warn', '${NOTE}', ${FULL}
  FROM task, head, (SELECT * FROM sorted WHERE NOT fits ORDER BY position LIMIT 1) first WHERE head.bytes < ${FULL}
  RETURNING octet_length(text) AS bytes
), counted AS (
  UPDATE tasks SET open_bytes = open_bytes + (SELECT coalesce(sum(bytes), 0) FROM written)
  WHERE tenant_id = ${run.tenant_id} AND id = ${run.task_id} AND active_run_id IS NOT NULL
)
SELECT NOT EXISTS (SELECT FROM task) OR EXISTS (SELECT FROM sorted WHERE NOT fits) AS "isFull"`,
);

/** $1 tenant $2 task $3 after this position $4 limit */
const READ_LINES: Statement = {
  name: 'console-read',
  text: `
SELECT position, run_id AS "runId", attempt, at, level, text FROM console_lines
WHERE tenant_id = $1 AND task_id = $2 AND position > $3 ORDER BY position LIMIT $4`,
};

/** Console output of agents in code, by task. */
@Injectable()
export class ConsoleLineStore {
  constructor(private readonly database: Database) {}

  /**
   * Appends lines to the console of a task, in their order. Lines of an ended attempt are stored, too: they show its
   * work. Nothing is written for a task that is gone.
   * @returns whether the task takes no more lines
   */
  async append(run: RunKey, lines: readonly ConsoleLine[]): Promise<boolean> {
    const { tenantId, taskId } = run;
    const [, [row] = []] = await this.database.tenantQueries(tenantId, [
      // One writer of its lines at a time.
      [LOCK_TASK, [tenantId, taskId]],
      [APPEND_LINES, APPEND_LINES.values({ run, lines })],
    ]);
    return (row as { isFull: boolean } | undefined)?.isFull ?? true;
  }

  /** Lines of a task, oldest first; none if it has none, or if the task is another tenant's. */
  async read(
    tenantId: string,
    taskId: string,
    page: { after: number; limit: number },
  ): Promise<ConsoleLineRecord[]> {
    if (!isUuid(taskId)) return [];
    const values = [tenantId, taskId, page.after, page.limit];
    return this.database.tenantQuery<ConsoleLineRecord & Record<string, unknown>>(
      tenantId,
      READ_LINES,
      values,
    );
  }
}
