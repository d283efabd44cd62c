import type { CallRecordDetail, ModelCallDetail, StepDetail, ToolCallDetail } from '@baton/agents';
import type { TraceSpan } from '@baton/tasks';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';
import { modelCall } from './model-call-json.js';
import { unknownOutcome } from './step-json.js';
import { links } from './task-links.js';

const span = z
  .object({
    id: z.string(),
    parent_id: z.string().nullable(),
    kind: z.enum([
      'turn',
      'queue',
      'parked',
      'attempt',
      'model',
      'tool',
      'step',
      'sleep',
      'question',
      'child',
      'push',
      'delivery',
    ]),
    name: z
      .string()
      .describe(
        'The number of a turn or attempt, the name of a model, tool, step, state or agent, the host of a push receiver, or its answer',
      ),
    started_at: timeSchema,
    ended_at: timeSchema.nullable().describe('Null: it has not ended'),
    state: z.enum(['running', 'waiting', 'succeeded', 'failed', 'canceled']),
    attempt: z.int().optional(),
    error: z.string().optional().describe('Why it failed, or why it is parked'),
    worker_id: z.string().optional().describe('Of an attempt'),
    task_id: z.string().optional().describe('Of a child'),
    model_call: z.int().optional().describe('Its index in `model_calls`'),
    entry: z.int().optional().describe('Of a call or step: names it in `GET /v1/tasks/{id}/trace/{entry}`'),
    answered_by: z.string().optional().describe('Of a question: key of the principal that has answered it'),
    unknown_outcome: unknownOutcome,
  })
  .meta({ id: 'Span' });
export const traceAnswer = z.object({
  task_id: z.string(),
  now: timeSchema.describe('When it was read'),
  spans: z
    .array(span)
    .describe('In the order in which they began. Children are the tasks that the caller sees'),
  model_calls: z.array(modelCall).describe('The newest calls of models, at most 2,500'),
  currency: z.string().nullable().describe('Of the costs. Null: the operator has set no prices'),
  ...links,
});
const toolCall = z.object({ tool: z.string(), input: z.unknown() });
export const callDetailAnswer = z.object({
  task_id: z.string(),
  entry: z.int(),
  model: z
    .object({ text: z.string(), reasoning: z.string(), calls: z.array(toolCall) })
    .optional()
    .describe('Of a call of a model: its answer'),
  tool: toolCall
    .extend({ ok: z.boolean(), output: z.unknown() })
    .optional()
    .describe('Of a call of a tool: what it was given, and what the model read of its answer'),
  step: z
    .object({ result: z.unknown(), error: z.string().nullable() })
    .optional()
    .describe('Of a durable step: what it has returned. `error` is null unless it failed'),
});

const callRecord = z
  .object({
    sent: z
      .object({
        instructions: z.string().describe('The system prompt'),
        messages: z.array(z.unknown()).describe('The newest messages. Files are named by their size'),
        tools: z.array(z.unknown()).describe('The tools that the model was offered'),
        parameters: z.unknown().describe('Every other setting of the call'),
        left_out: z
          .object({ messages: z.int(), tools: z.int() })
          .describe('How many were too large to record'),
      })
      .nullable()
      .describe('Null: the call failed before it was sent'),
    said: z.object({
      text: z.string(),
      reasoning: z.string(),
      calls: z
        .array(z.object({ id: z.string(), tool: z.string(), input: z.string() }))
        .describe('As the model wrote them: an input need not be JSON'),
      finish: z.string().nullable().describe('Null: the call failed'),
      provider_finish: z.string().nullable(),
      input_tokens: z.int(),
      output_tokens: z.int(),
      reasoning_tokens: z.int(),
      cached_tokens: z.int().describe("Those of the input tokens that came from the provider's cache"),
      estimated: z.boolean().describe('The provider has not reported all tokens'),
      response_id: z.string().nullable().describe("The provider's id of the answer"),
      response_model: z.string().nullable().describe('The model that has answered, as the provider names it'),
      error: z.string().nullable().describe('Why the call failed'),
      complaint: z.record(z.string(), z.unknown()).nullable().describe("The provider's own words on it"),
      left_out: z.object({ characters: z.int(), calls: z.int() }),
    }),
  })
  .meta({ id: 'CallRecord' });
export const callRecordAnswer = z.object({
  task_id: z.string(),
  entry: z.int(),
  record: callRecord.nullable().describe('Null: nothing is recorded of it'),
});

export const replayAnswer = z.object({
  task_id: z.string(),
  turn: z
    .record(z.string(), z.unknown())
    .nullable()
    .describe(
      'As Baton sends it to the process; `baton agents check` reads it. Null: no step is recorded, the task has ended, is of another ' +
        'runtime, or is too large',
    ),
});

export const encodeSpan = (each: TraceSpan): z.infer<typeof span> => ({
  id: each.id,
  parent_id: each.parentId,
  kind: each.kind,
  name: each.name,
  started_at: each.startedAt.toISOString(),
  ended_at: each.endedAt?.toISOString() ?? null,
  state: each.state,
  ...(each.attempt !== undefined && { attempt: each.attempt }),
  ...(each.error !== undefined && { error: each.error }),
  ...(each.workerId !== undefined && { worker_id: each.workerId }),
  ...(each.taskId !== undefined && { task_id: each.taskId }),
  ...(each.modelCall !== undefined && { model_call: each.modelCall }),
  ...(each.entry !== undefined && { entry: each.entry }),
  ...(each.answeredBy !== undefined && { answered_by: each.answeredBy }),
  ...(each.unknownOutcome && { unknown_outcome: each.unknownOutcome }),
});

/** The output of a model or tool call. Neither `model` nor `tool`: the task has no call with that entry. */
export function encodeCallDetail(
  id: string,
  entry: number,
  detail: ModelCallDetail | ToolCallDetail | StepDetail | undefined,
): z.infer<typeof callDetailAnswer> {
  if (!detail) return { task_id: id, entry };
  const { kind, ...content } = detail;
  return { task_id: id, entry, [kind]: content };
}

/** The request to a model, and its answer. */
export function encodeCallRecord(
  id: string,
  entry: number,
  record: CallRecordDetail | undefined,
): z.infer<typeof callRecordAnswer> {
  if (!record) return { task_id: id, entry, record: null };
  const { sent, said } = record;
  const { usage, response, providerFinish, left, ...rest } = said;
  return {
    task_id: id,
    entry,
    record: {
      sent: sent && {
        instructions: sent.instructions,
        messages: sent.messages,
        tools: sent.tools,
        parameters: sent.parameters,
        left_out: sent.left,
      },
      said: {
        ...rest,
        provider_finish: providerFinish,
        input_tokens: usage.inputTokens,
        output_tokens: usage.outputTokens,
        reasoning_tokens: usage.reasoningTokens,
        cached_tokens: usage.cachedInputTokens,
        estimated: usage.estimated ?? false,
        response_id: response?.id ?? null,
        response_model: response?.model ?? null,
        left_out: left,
      },
    },
  };
}
