import { detailsFromJson, isUuid, Message, type OwnTasks } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { type Actor } from '../audit/audit-records.js';
import { Database, type Statement } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import type { DeadLetter, DeadMessage } from '../tasks/task-records.js';

interface DeadLetterRow {
  tenant_id: string;
  run_id: string;
  task_id: string;
  agent_id: string;
  owner: string | null;
  reason: string;
  attempts: number;
  died_at: Date;
  redelivered_at: Date | null;
  redelivered_task_id: string | null;
}
/** The message to send again; null = the task was deleted. */
interface SaidRow {
  message: object | null;
  request: object | null;
  context_id: string;
  extensions: string[] | null;
}

const COLUMNS = `d.tenant_id, d.run_id, d.task_id, d.agent_id, d.reason, d.attempts, d.died_at,
  d.redelivered_at, d.redelivered_task_id,
  (SELECT owner FROM tasks WHERE tenant_id = d.tenant_id AND id = d.task_id) AS owner`;

/** Letters to list. */
interface WantedLetters extends LetterPage {
  /** Null = of all tenants. */
  tenantId: string | null;
  /** Only of these tasks; unset = those of every owner. */
  own?: OwnTasks | undefined;
  /** Only of these agents. */
  agentIds?: readonly string[] | undefined;
}

const PAGE = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  after_died_at: ['timestamptz', ({ after }) => after?.diedAt],
  after_run_id: ['uuid', ({ after }) => after?.runId],
  rows: ['int', ({ limit }) => limit],
  owner: ['text', ({ own }) => own?.owner],
  /** Also those of earlier releases, which have no owner. */
  unowned: ['boolean', ({ own }) => own?.unowned],
  agent_ids: ['text[]', ({ agentIds }) => agentIds],
} satisfies Inputs<WantedLetters>;

const LIST = statement(
  'dead-letter-list',
  { page: one(PAGE) },
  ({ page }) => `
SELECT ${COLUMNS} FROM dead_letters d
WHERE (${page.tenant_id} IS NULL OR d.tenant_id = ${page.tenant_id})
  AND (${page.after_died_at} IS NULL OR (d.died_at, d.run_id) < (${page.after_died_at}, ${page.after_run_id}))
  AND (${page.agent_ids} IS NULL OR d.agent_id = ANY(${page.agent_ids}))
  AND (${page.owner} IS NULL OR EXISTS (SELECT FROM tasks t
    WHERE t.tenant_id = d.tenant_id AND t.id = d.task_id AND (t.owner = ${page.owner} OR t.owner IS NULL AND ${page.unowned})))
ORDER BY d.died_at DESC, d.run_id DESC LIMIT ${page.rows}`,
);

/** $1 run, $2 tenant, NULL = any */
const FIND: Statement = {
  name: 'dead-letter-find',
  text: `SELECT ${COLUMNS} FROM dead_letters d WHERE d.run_id = $1 AND ($2::uuid IS NULL OR d.tenant_id = $2)`,
};

/** The message with which the turn began: $1 tenant $2 run */
const READ_SAID: Statement = {
  name: 'dead-letter-read-said',
  text: `
SELECT t.context_id, r.extensions, m.message, m.request
FROM (SELECT * FROM runs WHERE tenant_id = $1 AND id = $2) r, LATERAL (
  SELECT context_id FROM tasks WHERE tenant_id = $1 AND id = r.task_id
) t LEFT JOIN LATERAL (
  SELECT message, request FROM task_messages
  WHERE tenant_id = $1 AND task_id = r.task_id AND sequence = r.start_sequence
) m ON true`,
};

/**
 * Stores which task the redelivery makes: $1 tenant $2 run $3 its id, if it is the first $4 whether once more. The id
 * is stored before the task is made. So a repeated call, also after a crash, makes the same task.
 */
const RESERVE: Statement = {
  name: 'dead-letter-reserve',
  text: `
UPDATE dead_letters d SET
  redelivered_task_id = CASE
    WHEN redelivered_at IS NULL THEN COALESCE(redelivered_task_id, $3) WHEN $4 THEN $3 ELSE redelivered_task_id END,
  redelivered_at = CASE WHEN $4 THEN NULL ELSE redelivered_at END
WHERE tenant_id = $1 AND run_id = $2
RETURNING ${COLUMNS}`,
};

/** $1 tenant $2 run $3 the task that is there now */
const CONFIRM: Statement = {
  name: 'dead-letter-confirm',
  text: `
UPDATE dead_letters SET redelivered_at = now()
WHERE tenant_id = $1 AND run_id = $2 AND redelivered_task_id = $3 AND redelivered_at IS NULL
RETURNING run_id`,
};

/** A page of dead letters. */
export interface LetterPage {
  limit: number;
  /** The last one of the page before; unset = from the latest on. */
  after?: Pick<DeadLetter, 'diedAt' | 'runId'> | undefined;
}

/** Runs that used up their attempts. They are written where such a run is failed. */
@Injectable()
export class DeadLetterStore {
  constructor(private readonly database: Database) {}

  /**
   * One page, the latest first.
   * @param page.own only of these tasks; unset = those of every owner
   * @param page.agentIds only of these agents
   */
  async list(tenantId: string, page: Omit<WantedLetters, 'tenantId'>): Promise<DeadLetter[]> {
    const values = LIST.values({ page: { ...page, tenantId } });
    return (await this.database.tenantQuery<DeadLetterRow>(tenantId, LIST, values)).map(letterOf);
  }

  /** One page of all tenants, the latest first. */
  async listAll({ limit, after }: LetterPage): Promise<DeadLetter[]> {
    const values = LIST.values({ page: { limit, after, tenantId: null } });
    return (await this.database.systemQuery<DeadLetterRow>(LIST, values)).map(letterOf);
  }

  async find(tenantId: string, runId: string): Promise<DeadLetter | undefined> {
    if (!isUuid(runId)) return undefined;
    const [row] = await this.database.tenantQuery<DeadLetterRow>(tenantId, FIND, [runId, tenantId]);
    return row && letterOf(row);
  }

  /** A dead letter of any tenant: operators name only the run. */
  async findAnywhere(runId: string): Promise<DeadLetter | undefined> {
    if (!isUuid(runId)) return undefined;
    const [row] = await this.database.systemQuery<DeadLetterRow>(FIND, [runId, null]);
    return row && letterOf(row);
  }

  /** The message with which the turn that died had begun. Undefined: its task is no longer kept. */
  async readMessage(tenantId: string, runId: string): Promise<DeadMessage | undefined> {
    const [row] = await this.database.tenantQuery<SaidRow>(tenantId, READ_SAID, [tenantId, runId]);
    if (!row?.message) return undefined;
    const { context_id: contextId, extensions } = row;
    return {
      message: Message.fromJSON(row.message),
      details: detailsFromJson(row.request),
      contextId,
      extensions: extensions ?? [],
    };
  }

  /**
   * Store which task a redelivery makes. It stays the same until it is confirmed.
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
    const [row] = await this.database.tenantQuery<DeadLetterRow>(tenantId, RESERVE, values);
    return row && letterOf(row);
  }

  /** The task of the redelivery is there. */
  async confirm(tenantId: string, runId: string, taskId: string, by: Actor): Promise<void> {
    await this.database.inTenant(tenantId, async (transaction) => {
      const rows = await transaction.query(CONFIRM, [tenantId, runId, taskId]);
      if (rows.length === 0) return;
      const target = { kind: 'run', name: runId } as const;
      await transaction.record({ action: 'dead-letter.redeliver', target, by, detail: { taskId } });
    });
  }
}

const letterOf = (row: DeadLetterRow): DeadLetter => ({
  tenantId: row.tenant_id,
  runId: row.run_id,
  taskId: row.task_id,
  agentId: row.agent_id,
  owner: row.owner,
  reason: row.reason,
  attempts: row.attempts,
  diedAt: row.died_at,
  redeliveredAt: row.redelivered_at,
  redeliveredTaskId: row.redelivered_task_id,
});
