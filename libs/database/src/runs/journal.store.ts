import { keyOfTenant } from '../connection/row-security.js';
import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import { Database, type Statement } from '../connection/database.js';
import type { RunKey } from '../dispatch/run-key.js';
import { RunStore } from './run.store.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { READABLE_ENTRIES } from './readable-entries.js';
import { hasLiveRun, readEffects, tasksWithJournal } from './effect-entries.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';
import { sizeOf } from '../tenants/usage.store.js';

interface JournalRow {
  run_id: string;
  position: number;
  value: unknown;
}

/** $1 tenant $2 task */
const READ_JOURNAL: Statement = {
  name: 'journal-read',
  text: 'SELECT run_id, position, value FROM turn_journal WHERE tenant_id = $1 AND task_id = $2 ORDER BY position',
};

/** The steps in the journal of an executor's task, without their results: $1 tenant $2 task */
const READ_STEPS: Statement = {
  name: 'journal-steps-2',
  text: `
SELECT position, value->'execution' AS execution, value->'id' AS id, value->'event' AS event, value->'name' AS name, value->'kind' AS kind,
  value->'at' AS at, value->'error' AS error, value->'decision' AS decision
FROM ${READABLE_ENTRIES}
WHERE value->'execution' IS NOT NULL ORDER BY position`,
};

/** Maximum number of tools that are shown of one answer. */
const MAX_TOOLS = 20;

/**
 * The newest calls of models that a journal has, without messages. Those of an agent in code have the step that makes them: $1 tenant $2 task $3 how many.
 * The name of a tool is what a model has written.
 */
const READ_MODEL_CALLS: Statement = {
  name: 'journal-model-calls-3',
  text: `
SELECT position, run_id, attempt, value->'at' AS at, value->'ms' AS ms, value->'model' AS model, value->'finish' AS finish,
  value->'rawFinish' AS raw_finish, value->'notMade' IS NOT NULL AS not_made, value->>'kind' = 'summary' AS is_summary, value->'usage' AS usage, value->'error' AS error,
  value->'execution' AS execution, value->'id' AS step,
  CASE WHEN json_typeof(value->'notMade') = 'array' THEN value->'notMade'
  WHEN json_typeof(value->'message'->'content') = 'array' THEN (
    SELECT json_agg(CASE WHEN length(part->>'toolName') <= 128 THEN part->'toolName' ELSE '"…"'::json END) FROM (
      SELECT part FROM json_array_elements(value->'message'->'content') part
      WHERE part->>'type' = 'tool-call' LIMIT ${MAX_TOOLS}
    ) called
  ) END AS tools
FROM ${READABLE_ENTRIES}
WHERE value->>'kind' IN ('step', 'failed-call', 'summary') AND value->'usage' IS NOT NULL
ORDER BY position DESC LIMIT $3`,
};

/** The newest calls of tools that an llm agent's journal has, without what they said: $1 tenant $2 task $3 how many. */
const READ_TOOL_CALLS: Statement = {
  name: 'journal-tool-calls',
  text: `
SELECT position, run_id, attempt, value->'at' AS at, value->'ms' AS ms,
  CASE WHEN length(value->>'tool') <= 128 THEN value->'tool' ELSE '"…"'::json END AS tool, value->'result'->'ok' AS ok,
  value->'call' AS call
FROM ${READABLE_ENTRIES}
WHERE value->>'kind' = 'result' AND value->'tool' IS NOT NULL AND value->'at' IS NOT NULL
ORDER BY position DESC LIMIT $3`,
};

/** Tools of one answer that are read. */
const MAX_OPEN = 100;

/**
 * The newest answer of a model that an llm agent's journal has: the tools that it asks for, the calls with a result, and the calls that
 * wait for approval: $1 tenant $2 task. An answer of which no call is made asks for none. The code of an agent makes its calls itself.
 */
const READ_OPEN_CALLS: Statement = {
  name: 'journal-open-calls-2',
  text: `
WITH e AS MATERIALIZED (
  SELECT e.*, CASE WHEN value->'execution' IS NULL THEN value->>'kind' END AS kind FROM ${READABLE_ENTRIES}
), step AS (
  SELECT *, (SELECT count(*)::int FROM e WHERE kind = 'step') AS number FROM e WHERE kind = 'step' ORDER BY position DESC LIMIT 1
)
SELECT s.position, s.run_id, s.attempt, s.value->'at' AS at, s.value->'ms' AS ms, s.number,
  (SELECT json_agg(CASE WHEN length(part->>'toolName') <= 128 THEN part->'toolName' ELSE '"…"'::json END) FROM (
    SELECT part FROM json_array_elements(s.value->'message'->'content') part WHERE part->>'type' = 'tool-call' LIMIT ${MAX_OPEN}
  ) called) AS tools,
  (SELECT json_agg(value->'call') FROM e WHERE e.position > s.position AND kind = 'result') AS done,
  (SELECT CASE WHEN kind = 'waiting' THEN value->'callIds' END FROM e
    WHERE e.position > s.position AND kind IN ('waiting', 'answered') ORDER BY e.position DESC LIMIT 1) AS waiting
FROM step s WHERE json_typeof(s.value->'message'->'content') = 'array' AND s.value->'notMade' IS NULL`,
};

/** $1 tenant $2 task $3 position */
const READ_ENTRY: Statement = {
  name: 'journal-read-entry',
  text: 'SELECT run_id, position, value FROM turn_journal WHERE tenant_id = $1 AND task_id = $2 AND position = $3',
};

/** The answer of a model with that number, from 1: $1 tenant $2 task $3 number */
const FIND_MODEL_STEP: Statement = {
  name: 'journal-find-model-step',
  text: `SELECT position FROM ${READABLE_ENTRIES} WHERE value->>'kind' = 'step' ORDER BY position OFFSET $3::int - 1 LIMIT 1`,
};

interface NewEntry extends RunKey {
  position: number;
  /** Any JSON value. */
  value: unknown;
  /** JSON of the record of the model call that the entry is about. */
  record?: string;
}

const ENTRY = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  run_id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
  position: ['int', ({ position }) => position],
  value: ['json', ({ value }) => JSON.stringify(value)],
} satisfies Inputs<NewEntry>;

const RECORDED_ENTRY = {
  ...ENTRY,
  record: ['json', ({ record }) => record],
  record_bytes: ['int', ({ record = '' }) => Buffer.byteLength(record)],
} satisfies Inputs<NewEntry>;

/** As `APPEND_ENTRIES`, of one entry, with the record of a model call. It is written with a new entry only. */
const APPEND_RECORDED = statement(
  'journal-append-recorded-3',
  { entry: one(RECORDED_ENTRY) },
  ({ entry }) => `
WITH task AS (
  ${lockedTask(entry)}
), entry AS (
  ${insertedEntry(entry)}
), kept AS (
  INSERT INTO call_records (tenant_id, task_id, position, run_id, attempt, value, bytes)
  SELECT ${entry.tenant_id}, ${entry.task_id}, position, ${entry.run_id}, ${entry.attempt}, ${entry.record}, ${entry.record_bytes}
  FROM entry WHERE is_new
  ON CONFLICT (tenant_id, task_id, position) DO NOTHING
), counted AS (
  UPDATE tasks SET open_bytes = open_bytes + ${sizeOf(entry.value)} + ${entry.record_bytes} FROM entry
  WHERE entry.is_new AND tenant_id = ${keyOfTenant(entry.tenant_id)} AND id = ${entry.task_id}
)
SELECT position FROM entry`,
);

type EntrySql = Record<keyof typeof ENTRY, string>;

/**
 * The same, and in place of all entries before it: the bytes of these are given back. What the log has then is not output of a dead attempt
 * later. The bytes that are open may be below zero: those of earlier turns are stored already.
 */
const RESTART_JOURNAL = statement(
  'journal-restart',
  {
    entry: one({ ...ENTRY, kept: ['int', ({ kept }) => kept] } satisfies Inputs<NewEntry & { kept: number }>),
  },
  ({ entry }) => `
WITH task AS (
  ${lockedTask(entry)}
), entry AS (
  ${insertedEntry(entry)}
), gone AS (
  DELETE FROM turn_journal j USING entry
  WHERE entry.is_new AND j.tenant_id = ${keyOfTenant(entry.tenant_id)} AND j.task_id = ${entry.task_id} AND j.position < entry.position AND j.position > ${entry.kept}
  RETURNING octet_length(j.value::text) AS bytes
), run AS (
  UPDATE runs r SET base_sequence = task.last_sequence FROM task, entry
  WHERE entry.is_new AND r.tenant_id = ${keyOfTenant(entry.tenant_id)} AND r.id = ${entry.run_id}
), counted AS (
  UPDATE tasks SET open_bytes = open_bytes + ${sizeOf(entry.value)} - freed.bytes
  FROM entry, (SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM gone) freed
  WHERE entry.is_new AND tenant_id = ${keyOfTenant(entry.tenant_id)} AND id = ${entry.task_id}
)
SELECT position FROM entry`,
);

/** SQL: the task of a writer that may write, locked. */
function lockedTask(entry: EntrySql): string {
  return `SELECT id, last_sequence FROM tasks
  WHERE tenant_id = ${keyOfTenant(entry.tenant_id)} AND id = ${entry.task_id} AND active_run_id = ${entry.run_id} AND attempt = ${entry.attempt} AND state NOT IN (${TERMINAL_STATES})
  FOR UPDATE`;
}

/** SQL: writes the entry, if there is a row of `task`. */
function insertedEntry(entry: EntrySql): string {
  return `INSERT INTO turn_journal AS j (tenant_id, task_id, run_id, attempt, position, value)
  SELECT ${entry.tenant_id}, task.id, ${entry.run_id}, ${entry.attempt}, ${entry.position}, ${entry.value} FROM task
  ON CONFLICT (tenant_id, task_id, position) DO UPDATE SET value = j.value
    WHERE j.run_id = EXCLUDED.run_id AND j.attempt = EXCLUDED.attempt
  RETURNING position, xmax = 0 AS is_new`;
}

/** One value of a task's journal. */
export interface JournalRecord {
  /** The run that wrote it. */
  runId: string;
  /** From 1, over all turns of the task. Without holes between those that are left. */
  position: number;
  /** Any JSON value. */
  value: unknown;
}

/** Entries of a journal that was imported with its tenant may be anything. What is none of ours is not shown. */
const entriesOf = <T>(schema: z.ZodType<T>, rows: readonly unknown[]): T[] =>
  rows.flatMap((row) => schema.safeParse(row).data ?? []);

/** One entry about a durable step of an executor. */
const stepRow = z.object({
  position: z.number(),
  execution: z.number(),
  id: z.number(),
  event: z.enum(['begun', 'failed', 'ended', 'asked', 'answered']),
  name: z.string().nullable(),
  kind: z.string().nullable(),
  at: z.string(),
  error: z.object({ name: z.string(), message: z.string() }).nullable(),
  decision: z.enum(['repeated', 'verified', 'asked', 'failed']).nullable().catch(null),
});
type StepRow = z.output<typeof stepRow>;

/** A durable step of an executor's task. */
export interface StepRecord {
  name: string;
  /** run, sleep, input, agent, patch, model, state or tool */
  kind: string;
  /** `waiting`: for a time, an answer or another agent. `running`: or it was, when its process died. */
  state: 'running' | 'waiting' | 'succeeded' | 'failed';
  /** How often it was begun. */
  attempts: number;
  /** ISO 8601 */
  startedAt: string;
  endedAt: string | null;
  /** The last error. */
  error: string | null;
  /** Of the last entry about it in the journal, which has its result once it has ended. */
  position: number;
  /** The id of the call that it makes, if it calls another agent or a model. */
  callId: string;
  /** A process died while it ran, and this was done about the unknown outcome. */
  unknownOutcome?: 'repeated' | 'verified' | 'asked' | 'failed';
}

const modelCallRow = z.object({
  position: z.number(),
  run_id: z.string(),
  attempt: z.number(),
  at: z.string().nullable(),
  ms: z.number().nullable(),
  model: z.string(),
  finish: z.string().nullable(),
  raw_finish: z.string().nullable(),
  not_made: z.boolean(),
  is_summary: z.boolean(),
  usage: z.object({
    inputTokens: z.number(),
    outputTokens: z.number(),
    cachedInputTokens: z.number().optional(),
    cacheWriteTokens: z.number().optional(),
  }),
  execution: z.number().nullable(),
  step: z.number().nullable(),
  error: z.string().nullable(),
  tools: z.array(z.string()).nullable(),
});

/** A call of a model that Baton has made for a task. */
export interface ModelCallRecord {
  /** Of its entry in the journal. */
  position: number;
  runId: string;
  /** The attempt of the run that made it. */
  attempt: number;
  /** When it began, ISO 8601. Null: an earlier release made it. */
  at: string | null;
  ms: number | null;
  /** provider/model */
  model: string;
  /** Why the answer ended: stop, tool-calls, length, content-filter, error, other. Null: the call failed. */
  finish: string | null;
  /** The same in the provider's own word. Null: it gave none, or an earlier release made the call. */
  providerFinish: string | null;
  inputTokens: number;
  outputTokens: number;
  /** Those of the input tokens that came from the provider's cache. */
  cachedTokens: number;
  /** Those that the provider has written into its cache. */
  cacheWriteTokens: number;
  /** Names of the tools that the answer asks for, at most 20. */
  tools: string[];
  /** Whether Baton has made no call of the answer, because it was not whole. */
  isNotMade: boolean;
  /** Whether its answer is a summary of the conversation so far. */
  isSummary: boolean;
  /** `callId` of the durable step that has made the call. Unset: an llm agent has made it. */
  callId?: string;
  /** Why it failed. Null: it did not. */
  error: string | null;
}

const toolCallRow = z.object({
  position: z.number(),
  run_id: z.string(),
  attempt: z.number(),
  at: z.string(),
  ms: z.number(),
  tool: z.string(),
  ok: z.boolean(),
  call: z.string().nullable(),
});

/** A call of a tool that an llm agent has made. */
export interface ToolCallRecord {
  /** Of the entry in the journal that has its result. */
  position: number;
  runId: string;
  attempt: number;
  /** When it began, ISO 8601. */
  at: string;
  ms: number;
  /** As the model wrote it. */
  tool: string;
  ok: boolean;
  /** Its id, which is unique in the task (`callIdOf` of libs/agents). Null: an earlier release made the call. */
  call: string | null;
}

/** A call that took longer is none: an import may have any number. A week. */
const MAX_MS = 604_800_000;

const openCallsRow = z.object({
  position: z.number(),
  run_id: z.string(),
  attempt: z.number(),
  at: z.iso.datetime(),
  ms: z.number().min(0).max(MAX_MS),
  number: z.number(),
  tools: z.array(z.string()).nullable(),
  done: z.array(z.string().nullable()).nullable(),
  waiting: z.array(z.string()).nullable(),
});

/** A call of a tool that the newest answer of the model asks for, and that has no result yet. */
export interface OpenCallRecord {
  /** Its id: see `callIdOf` of libs/agents. */
  call: string;
  /** As the model wrote it. */
  tool: string;
  /** The run whose model has asked for it. */
  runId: string;
  /** When the model had asked for it, ISO 8601. */
  at: string;
  /** A person was asked to approve it, and has not answered yet. */
  waitsForApproval: boolean;
}

/** The journals of runtimes: see `TurnJournal` of libs/agents. */
@Injectable()
export class JournalStore {
  constructor(
    private readonly database: Database,
    private readonly runs: RunStore,
  ) {}

  /** The whole journal of a task, oldest first; empty if there is none, or if the task is another tenant's. */
  async read(tenantId: string, taskId: string): Promise<JournalRecord[]> {
    if (!isUuid(taskId)) return [];
    const rows = await this.database.tenantQuery<JournalRow>(tenantId, READ_JOURNAL, [tenantId, taskId]);
    return rows.map(({ run_id: runId, position, value }) => ({ runId, position, value }));
  }

  /** One entry of a task's journal. Undefined: there is none. */
  async entry(tenantId: string, taskId: string, position: number): Promise<JournalRecord | undefined> {
    if (!isUuid(taskId)) return undefined;
    const values = [tenantId, taskId, position];
    const [row] = await this.database.tenantQuery<JournalRow>(tenantId, READ_ENTRY, values);
    return row && { runId: row.run_id, position: row.position, value: row.value };
  }

  /** The entry of an llm agent's journal with the answer of its model that has that number, from 1. Undefined: there is none. */
  async modelStep(tenantId: string, taskId: string, number: number): Promise<JournalRecord | undefined> {
    if (!isUuid(taskId)) return undefined;
    const values = [tenantId, taskId, number];
    const [row] = await this.database.tenantQuery<{ position: number }>(tenantId, FIND_MODEL_STEP, values);
    return row && this.entry(tenantId, taskId, row.position);
  }

  /** The durable steps of a task in the order in which they began; empty if it has none. */
  async steps(tenantId: string, taskId: string): Promise<StepRecord[]> {
    if (!isUuid(taskId)) return [];
    const rows = await this.database.tenantQuery(tenantId, READ_STEPS, [tenantId, taskId]);
    const steps = new Map<string, StepRecord>();
    for (const row of entriesOf(stepRow, rows)) {
      const key = `${row.execution} ${row.id}`;
      steps.set(key, stepAfter(steps.get(key), row));
    }
    return [...steps.values()];
  }

  /** The effects of a task: see `readEffects`. */
  async effects(tenantId: string, taskId: string): ReturnType<typeof readEffects> {
    if (!isUuid(taskId)) return { effects: [], begun: new Map() };
    return readEffects(this.database, tenantId, taskId);
  }

  /** Whether a worker executes the task now. */
  async hasLiveRun(tenantId: string, taskId: string): Promise<boolean> {
    return hasLiveRun(this.database, tenantId, taskId);
  }

  /** Which of the tasks have a journal. */
  async tasksWithJournal(tenantId: string, taskIds: readonly string[]): Promise<ReadonlySet<string>> {
    return tasksWithJournal(this.database, tenantId, taskIds);
  }

  /** The newest `limit` calls of models for a task, the oldest of them first; empty if there are none. */
  async modelCalls(tenantId: string, taskId: string, limit: number): Promise<ModelCallRecord[]> {
    if (!isUuid(taskId)) return [];
    const values = [tenantId, taskId, limit];
    const rows = await this.database.tenantQuery(tenantId, READ_MODEL_CALLS, values);
    return entriesOf(modelCallRow, rows.toReversed()).map(({ run_id: runId, usage, tools, ...call }) => ({
      position: call.position,
      runId,
      attempt: call.attempt,
      at: call.at,
      ms: call.ms,
      model: call.model,
      finish: call.finish,
      providerFinish: call.raw_finish,
      inputTokens: usage.inputTokens,
      outputTokens: usage.outputTokens,
      cachedTokens: usage.cachedInputTokens ?? 0,
      cacheWriteTokens: usage.cacheWriteTokens ?? 0,
      tools: (tools ?? []).slice(0, MAX_TOOLS),
      isNotMade: call.not_made && (tools ?? []).length > 0,
      isSummary: call.is_summary,
      ...(call.execution !== null && { callId: stepId(call.execution, call.step) }),
      error: call.error,
    }));
  }

  /**
   * The newest `limit` calls of tools for a task, the oldest of them first. Those of releases up to 0.2 have no time and are not among
   * them.
   */
  async toolCalls(tenantId: string, taskId: string, limit: number): Promise<ToolCallRecord[]> {
    if (!isUuid(taskId)) return [];
    const rows = await this.database.tenantQuery(tenantId, READ_TOOL_CALLS, [tenantId, taskId, limit]);
    return entriesOf(toolCallRow, rows.toReversed()).map(({ run_id: runId, ...call }) => ({
      runId,
      ...call,
    }));
  }

  /**
   * The calls of tools that the newest answer of a model asks for and that have no result: they are made now, wait, or were never made
   * because the task has ended. At most 100, in their order.
   */
  async openCalls(tenantId: string, taskId: string): Promise<OpenCallRecord[]> {
    if (!isUuid(taskId)) return [];
    const rows = await this.database.tenantQuery(tenantId, READ_OPEN_CALLS, [tenantId, taskId]);
    return entriesOf(openCallsRow, rows).flatMap(({ run_id: runId, at, ms, number, tools, done, waiting }) =>
      (tools ?? [])
        .map((tool, i) => ({ tool, call: `call-${number}-${i + 1}` }))
        .filter(({ call }) => !done?.includes(call))
        .map(({ tool, call }) => ({
          call,
          tool,
          runId,
          at: new Date(Date.parse(at) + ms).toISOString(),
          waitsForApproval: waiting?.includes(call) ?? false,
        })),
    );
  }

  /**
   * Write the entry at `position`, and the record of its model call, if there is one. Idempotent.
   * @returns false if the attempt is not current or the task has ended: nothing was written then
   */
  async append(run: RunKey, position: number, value: unknown, record?: string): Promise<boolean> {
    if (record === undefined) return this.runs.appendEntry(run, position, value);
    const values = APPEND_RECORDED.values({ entry: { ...run, position, value, record } });
    return (await this.database.tenantQuery(run.tenantId, APPEND_RECORDED, values)).length > 0;
  }

  /** The same in place of all entries before it, but the first `kept` ones: those are deleted. */
  async restart(run: RunKey, position: number, value: unknown, kept = 0): Promise<boolean> {
    const values = RESTART_JOURNAL.values({ entry: { ...run, position, value, kept } });
    return (await this.database.tenantQuery(run.tenantId, RESTART_JOURNAL, values)).length > 0;
  }
}

/** Kinds of steps that wait for nobody. */
const WORKING_KINDS = new Set(['run', 'model', 'state', 'tool']);

/** As `TurnSteps` of libs/agents names the calls of a step. */
const stepId = (execution: number, id: number | null): string => `step-${execution}-${id}`;

/** A step after one more entry about it. */
function stepAfter(before: StepRecord | undefined, row: StepRow): StepRecord {
  const { position, execution, id, event, name, kind, at, error, decision } = row;
  const step = before && decision ? { ...before, unknownOutcome: decision } : before;
  const said = error && `${error.name}: ${error.message}`;
  if (event === 'begun' || !step) {
    const callId = stepId(execution, id);
    const known = step ?? {
      name: name ?? '',
      kind: kind ?? '',
      attempts: 0,
      startedAt: at,
      error: null,
      callId,
    };
    const state = WORKING_KINDS.has(kind ?? '') ? 'running' : 'waiting';
    return { ...known, position, state, attempts: known.attempts + 1, endedAt: null };
  }
  if (event === 'asked' || event === 'answered') return { ...step, position, state: 'waiting' };
  if (event === 'failed') return { ...step, position, state: 'waiting', error: said };
  return { ...step, position, state: error ? 'failed' : 'succeeded', endedAt: at, error: said };
}
