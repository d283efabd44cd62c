import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import type { RunKey } from '../dispatch/run-key.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';

/** A value that an agent keeps for a conversation. */
export interface ContextValue {
  /** JSON */
  value: string;
  /** Counts the writes of the key from 1. */
  version: number;
}

/** A write of a value. */
export interface ContextWrite {
  key: string;
  /** JSON */
  value: string;
  /** Write only if the key has this version; 0: it has no value. Unset: write in any case. */
  expected?: number;
  /** A UUID of the write. A write that is repeated has the same. */
  writer: string;
}

/** Maximum number of keys of a conversation. */
const MAX_KEYS = 64;

interface WantedValue extends RunKey {
  key: string;
}

const WANTED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  key: ['text', ({ key }) => key],
} satisfies Inputs<WantedValue>;

/** SQL: whether the row `s` is of the conversation of the task `t`. Tasks of releases without owners have a conversation of their own. */
const OF_TASK = `s.tenant_id = t.tenant_id AND s.context_key = t.context_key AND s.agent_id = t.agent_id AND s.owner = coalesce(t.owner, '')`;

const READ = statement(
  'context-state-read',
  { wanted: one(WANTED) },
  ({ wanted }) => `
SELECT s.value::text AS value, s.version, s.writer FROM tasks t JOIN context_state s ON ${OF_TASK} AND s.key = ${wanted.key}
WHERE t.tenant_id = ${keyOfTenant(wanted.tenant_id)} AND t.id = ${wanted.task_id}`,
);

type NewValue = RunKey & ContextWrite;

const WRITE_INPUTS = {
  ...WANTED,
  run_id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
  value: ['json', ({ value }) => value],
  expected: ['int', ({ expected }) => expected],
  writer: ['uuid', ({ writer }) => writer],
} satisfies Inputs<NewValue>;

/**
 * Fenced like an entry of the journal. `has_run`: the attempt is the current one. A write that is repeated, because its answer was lost or
 * its worker has died, finds its own writer and changes nothing.
 */
const WRITE = statement(
  'context-state-write',
  { write: one(WRITE_INPUTS) },
  ({ write }) => `
WITH t AS (
  SELECT tenant_id, context_key, agent_id, owner FROM tasks
  WHERE tenant_id = ${keyOfTenant(write.tenant_id)} AND id = ${write.task_id} AND active_run_id = ${write.run_id}
    AND attempt = ${write.attempt} AND state NOT IN (${TERMINAL_STATES})
  FOR UPDATE
), room AS (
  SELECT count(s.key) AS keys, coalesce(bool_or(s.key = ${write.key}), false) AS is_known
  FROM t LEFT JOIN context_state s ON ${OF_TASK}
), written AS (
  INSERT INTO context_state AS s (tenant_id, context_key, agent_id, owner, key, value, version, writer)
  SELECT t.tenant_id, t.context_key, t.agent_id, coalesce(t.owner, ''), ${write.key}, ${write.value}, 1, ${write.writer}
  FROM t, room
  WHERE room.is_known OR (room.keys < ${MAX_KEYS} AND coalesce(${write.expected}, 0) = 0)
  ON CONFLICT (tenant_id, context_key, agent_id, owner, key) DO UPDATE
    SET value = excluded.value, version = s.version + 1, writer = excluded.writer, updated_at = clock_timestamp()
    WHERE s.writer <> excluded.writer AND (${write.expected} IS NULL OR s.version = ${write.expected})
  RETURNING version
)
SELECT EXISTS (SELECT FROM t) AS has_run, (SELECT version FROM written) AS version`,
);

/**
 * The outcome of a write. `conflict`: the key has another version than expected. `full`: the conversation has the maximum number of keys.
 * `refused`: the attempt is not current, or the task has ended.
 */
export type ContextWriteResult =
  | { outcome: 'written'; version: number }
  | { outcome: 'conflict'; current: ContextValue | undefined }
  | { outcome: 'full' }
  | { outcome: 'refused' };

type ReadRow = ContextValue & { writer: string };

/** The values that agents in code keep for a conversation: the tasks of an agent, an owner and a context. */
@Injectable()
export class ContextStateStore {
  constructor(private readonly database: Database) {}

  /** A value of the conversation of a task. Undefined: the key has none. */
  async read(run: RunKey, key: string): Promise<ContextValue | undefined> {
    const row = await this.row(run, key);
    return row && { value: row.value, version: row.version };
  }

  /** Writes a value. A write that is repeated returns the version of the first one. */
  async write(run: RunKey, write: ContextWrite): Promise<ContextWriteResult> {
    const values = WRITE.values({ write: { ...run, ...write } });
    const [row] = await this.database.tenantQuery<{ has_run: boolean; version: number | null }>(
      run.tenantId,
      WRITE,
      values,
    );
    if (!row?.has_run) return { outcome: 'refused' };
    if (row.version !== null) return { outcome: 'written', version: row.version };
    const current = await this.row(run, write.key);
    if (current?.writer === write.writer) return { outcome: 'written', version: current.version };
    if (!current && (write.expected ?? 0) === 0) return { outcome: 'full' };
    const { value, version } = current ?? {};
    const known = value === undefined || version === undefined ? undefined : { value, version };
    return { outcome: 'conflict', current: known };
  }

  private async row(run: RunKey, key: string): Promise<ReadRow | undefined> {
    const values = READ.values({ wanted: { ...run, key } });
    const [row] = await this.database.tenantQuery<ReadRow>(run.tenantId, READ, values);
    return row;
  }
}
