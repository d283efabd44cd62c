import { detailsFromJson, isUuid, Message, type RequestDetails } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import type { Actor } from '../audit/audit-records.js';
import { Database, type Statement } from '../connection/database.js';
import { isRunOf } from '../dispatch/run-conditions.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { sizeOf } from '../tenants/usage-sql.js';
import { READABLE_ENTRIES } from './readable-entries.js';

// A fork is a new task that continues the journal of an earlier one (ADR 0067). Its journal begins with one more entry, which
// names the origin of the others. It is copied before the task is made, so no attempt can run without it.

/** SQL of a run, and of the message that it answers. $1 tenant @param run SQL of the run to read */
const turnSql = (run: string): string => `
SELECT r.id, r.extensions, m.message, m.request FROM (${run}) r, LATERAL (
  SELECT message, request FROM task_messages
  WHERE tenant_id = $1 AND task_id = r.task_id AND sequence = r.start_sequence
) m`;

/** The newest run of a task: $1 tenant $2 task */
const LAST_TURN: Statement = {
  name: 'task-fork-last-turn',
  text: turnSql(
    `SELECT * FROM runs l WHERE ${isRunOf('l', '$1', '$2')} ORDER BY created_at DESC, id DESC LIMIT 1`,
  ),
};

/** One run of a task: $1 tenant $2 task $3 run */
const TURN: Statement = {
  name: 'task-fork-turn',
  text: turnSql('SELECT * FROM runs WHERE tenant_id = $1 AND id = $3 AND task_id = $2'),
};

/** What kind each entry of a journal is of, without contents: $1 tenant $2 task */
const OUTLINE: Statement = {
  name: 'task-fork-outline-2',
  text: `
SELECT position, run_id, value->'kind' AS kind, value->'event' AS event, value->'execution' AS execution, value->'id' AS id,
  value->'error' IS NOT NULL AS "hasError", value->'compensates' IS NOT NULL AS compensates,
  value->'canceled' IS NOT NULL AS "isCanceled",
  value->'notMade' IS NULL AND value->'wrongCalls' IS NULL AND json_typeof(value->'message'->'content') = 'array'
    AND EXISTS (SELECT FROM json_array_elements(CASE WHEN json_typeof(value->'message'->'content') = 'array'
      THEN value->'message'->'content' END) part WHERE part->>'type' = 'tool-call') AS "hasCalls"
FROM ${READABLE_ENTRIES} ORDER BY position`,
};

interface ForkedTurnRow {
  id: string;
  extensions: string[] | null;
  message: object;
  request: object | null;
}

const forkedTurn = ({ id, extensions, message, request }: ForkedTurnRow): ForkedTurn => ({
  runId: id,
  message: Message.fromJSON(message),
  details: request === null ? undefined : detailsFromJson(request),
  extensions: extensions ?? [],
});

const outlineRow = z.object({
  position: z.number(),
  run_id: z.string(),
  kind: z.string().nullable().catch(null),
  event: z.string().nullable().catch(null),
  execution: z.number().nullable().catch(null),
  id: z.number().nullable().catch(null),
  hasError: z.boolean(),
  compensates: z.boolean(),
  isCanceled: z.boolean(),
  hasCalls: z
    .boolean()
    .nullable()
    .transform((has) => has === true),
});

/** An entry of a journal, without its contents. */
export interface OutlinedEntry {
  position: number;
  runId: string;
  /** Kind of an entry of an llm agent. */
  kind: string | null;
  /** For an entry about a durable step: begun, failed or ended. */
  event: string | null;
  execution: number | null;
  /** Id of the step in its execution. */
  id: number | null;
  hasError: boolean;
  /** It is the begin of a step that can be undone. */
  compensates: boolean;
  /** With it a task begins to undo the steps of a canceled one. */
  isCanceled: boolean;
  /** It is an answer of a model with calls that may be made. */
  hasCalls: boolean;
}

/** The turn with which a fork continues. */
export interface ForkedTurn {
  runId: string;
  message: Message;
  /** Metadata and configuration of its request. */
  details: RequestDetails | undefined;
  extensions: string[];
}

/** A journal to copy. */
export interface JournalCopy {
  tenantId: string;
  /** The task whose journal it is, and the run whose entries the first run of the fork takes over. */
  source: { taskId: string; runId: string };
  /** The fork. Its first run has the same id. */
  taskId: string;
  /** The entry with which the journal of the fork begins. */
  origin: unknown;
  /** Entries that are left out. */
  dropped: readonly number[];
  /** Entries that have another value in the fork. */
  changed: readonly { position: number; value: unknown }[];
  /** The entry after them, of the first run of the fork. */
  added?: unknown;
}

const COPY = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  source_task_id: ['uuid', ({ source }) => source.taskId],
  source_run_id: ['uuid', ({ source }) => source.runId],
  task_id: ['uuid', ({ taskId }) => taskId],
  origin: ['json', ({ origin }) => JSON.stringify(origin)],
  dropped: ['int[]', ({ dropped }) => dropped],
  changed: ['int[]', ({ changed }) => changed.map(({ position }) => position)],
  values: ['text[]', ({ changed }) => changed.map(({ value }) => JSON.stringify(value))],
  added: ['json', ({ added }) => added && JSON.stringify(added)],
} satisfies Inputs<JournalCopy>;

/** Positions are counted from the start again, because a journal has no gaps. An entry that is there stays: a call was repeated. */
const COPY_JOURNAL = statement(
  'task-fork-copy-2',
  { copy: one(COPY) },
  ({ copy }) => `
WITH copied AS (
  INSERT INTO turn_journal (tenant_id, task_id, position, run_id, attempt, value)
  SELECT ${copy.tenant_id}, ${copy.task_id}, 1, ${copy.task_id}, 0, ${copy.origin}
  UNION ALL
  SELECT j.tenant_id, ${copy.task_id}, (1 + row_number() OVER (ORDER BY j.position))::int,
    CASE WHEN j.run_id = ${copy.source_run_id} THEN ${copy.task_id} ELSE j.run_id END, 0,
    coalesce((${copy.values})[array_position(${copy.changed}, j.position)]::json, j.value)
  FROM turn_journal j
  WHERE j.tenant_id = ${copy.tenant_id} AND j.task_id = ${copy.source_task_id} AND j.position <> ALL (${copy.dropped})
  UNION ALL
  SELECT ${copy.tenant_id}, ${copy.task_id}, (2 + count(*))::int, ${copy.task_id}, 0, ${copy.added}
  FROM turn_journal j
  WHERE j.tenant_id = ${copy.tenant_id} AND j.task_id = ${copy.source_task_id} AND j.position <> ALL (${copy.dropped})
  HAVING ${copy.added} IS NOT NULL
  ON CONFLICT (tenant_id, task_id, position) DO NOTHING
)
SELECT coalesce(sum(${sizeOf('value')}), 0)::float8 AS bytes FROM turn_journal j
WHERE j.tenant_id = ${copy.tenant_id} AND j.task_id = ${copy.source_task_id} AND j.position <> ALL (${copy.dropped})`,
);

/** The first entry of a journal: $1 tenant $2 task */
const FIRST_ENTRY: Statement = {
  name: 'task-fork-first-entry',
  text: 'SELECT value FROM turn_journal WHERE tenant_id = $1 AND task_id = $2 AND position = 1',
};

/** The journal of a task that was not made: $1 tenant $2 task */
const DISCARD: Statement = {
  name: 'task-fork-discard',
  text: `
DELETE FROM turn_journal WHERE tenant_id = $1 AND task_id = $2
  AND NOT EXISTS (SELECT FROM tasks WHERE tenant_id = $1 AND id = $2)`,
};

/** What a new task that continues another's journal is made of. */
@Injectable()
export class TaskForkStore {
  constructor(private readonly database: Database) {}

  /** The newest turn of a task. Undefined: the tenant has no such task. */
  async lastTurn(tenantId: string, taskId: string): Promise<ForkedTurn | undefined> {
    if (!isUuid(taskId)) return undefined;
    const [row] = await this.database.tenantQuery<ForkedTurnRow>(tenantId, LAST_TURN, [tenantId, taskId]);
    return row && forkedTurn(row);
  }

  /** A turn of a task. Undefined: the task has no such run. */
  async turn(tenantId: string, taskId: string, runId: string): Promise<ForkedTurn | undefined> {
    const [row] = await this.database.tenantQuery<ForkedTurnRow>(tenantId, TURN, [tenantId, taskId, runId]);
    return row && forkedTurn(row);
  }

  /** The kinds of all entries in the journal of a task, oldest first. */
  async outline(tenantId: string, taskId: string): Promise<OutlinedEntry[]> {
    const rows = await this.database.tenantQuery(tenantId, OUTLINE, [tenantId, taskId]);
    // What an import has brought may be anything.
    return rows.flatMap((row) => {
      const { run_id: runId, ...entry } = outlineRow.parse(row);
      return { runId, ...entry };
    });
  }

  /** The first entry of the journal of a task. Undefined: it has none. */
  async firstEntry(tenantId: string, taskId: string): Promise<unknown> {
    const [row] = await this.database.tenantQuery<{ value: unknown }>(tenantId, FIRST_ENTRY, [
      tenantId,
      taskId,
    ]);
    return row?.value;
  }

  /**
   * Copies the journal of a task for a task that is made next. A repeated call changes nothing.
   * @returns the bytes that were copied, as the new task counts them
   */
  async copyJournal(copy: JournalCopy): Promise<number> {
    const values = COPY_JOURNAL.values({ copy });
    const [row] = await this.database.tenantQuery<{ bytes: number }>(copy.tenantId, COPY_JOURNAL, values);
    return row?.bytes ?? 0;
  }

  /** Write into the audit log who has continued a task, and as which. */
  async noteContinued(tenantId: string, taskId: string, as: string, by: Actor): Promise<void> {
    const target = { kind: 'task', name: taskId } as const;
    await this.database.inTenant(tenantId, (transaction) =>
      transaction.record({ action: 'task.continue', target, by, detail: { taskId: as } }),
    );
  }

  /** Deletes the copied journal of a task that was not made. */
  async discard(tenantId: string, taskId: string): Promise<void> {
    await this.database.tenantQuery(tenantId, DISCARD, [tenantId, taskId]);
  }
}
