import { z } from 'zod';
import type { Database, Statement } from '../connection/database.js';
import { entriesOf, stepId } from './journal-rows.js';
import { READABLE_ENTRIES } from './readable-entries.js';

/** Maximum number of tools that are shown of one answer. */
const MAX_TOOLS = 20;

/**
 * The newest model calls that a journal has, without messages. Those of an agent in code have the step that makes them: $1 tenant $2 task $3 how many.
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

/** A model call that Baton has made for a task. */
export interface ModelCallRecord {
  /** Position of its entry in the journal. */
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
  /** Why the answer ended, in the provider's own word. Null: it gave none, or an earlier release made the call. */
  providerFinish: string | null;
  inputTokens: number;
  outputTokens: number;
  /** Input tokens that came from the provider's cache. */
  cachedTokens: number;
  /** Input tokens that the provider has written into its cache. */
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

/** The newest `limit` model calls for a task, the oldest of them first; empty if there are none. */
export async function readModelCalls(
  database: Database,
  tenantId: string,
  taskId: string,
  limit: number,
): Promise<ModelCallRecord[]> {
  const values = [tenantId, taskId, limit];
  const rows = await database.tenantQuery(tenantId, READ_MODEL_CALLS, values);
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
