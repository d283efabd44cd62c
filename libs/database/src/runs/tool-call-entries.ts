import { z } from 'zod';
import type { Database, Statement } from '../connection/database.js';
import { entriesOf } from './journal-rows.js';
import { READABLE_ENTRIES } from './readable-entries.js';

/** The newest tool calls that an llm agent's journal has, without their results: $1 tenant $2 task $3 how many. */
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

/** A tool call that an llm agent has made. */
export interface ToolCallRecord {
  /** Position of the entry in the journal with its result. */
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

/** Maximum duration of a call: a week. An imported journal may have any number. */
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

/** A tool call that the newest answer of the model asks for, and that has no result yet. */
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

/**
 * The newest `limit` tool calls for a task, the oldest of them first. Those of releases up to 0.2 have no time and are not among
 * them.
 */
export async function readToolCalls(
  database: Database,
  tenantId: string,
  taskId: string,
  limit: number,
): Promise<ToolCallRecord[]> {
  const rows = await database.tenantQuery(tenantId, READ_TOOL_CALLS, [tenantId, taskId, limit]);
  return entriesOf(toolCallRow, rows.toReversed()).map(({ run_id: runId, ...call }) => ({
    runId,
    ...call,
  }));
}

/**
 * The tool calls in the newest answer of a model that have no result: they are under way or wait, or the task ended before them. At
 * most 100, in their order.
 */
export async function readOpenCalls(
  database: Database,
  tenantId: string,
  taskId: string,
): Promise<OpenCallRecord[]> {
  const rows = await database.tenantQuery(tenantId, READ_OPEN_CALLS, [tenantId, taskId]);
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
