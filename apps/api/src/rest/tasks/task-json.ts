import {
  Artifact,
  Part,
  ProtocolError,
  type StreamItem,
  Task,
  type TaskState,
  serializePayload,
  shortened,
  stateName,
  textOf,
  tokenUsage,
  type JsonObject,
} from '@baton/a2a';
import {
  approvalsOf,
  type CallRecordDetail,
  type ModelCallDetail,
  type StepDetail,
  type ToolCallDetail,
} from '@baton/agents';
import {
  type AnswerableTask,
  type ArtifactPosition,
  type ConsoleLineRecord,
  type Descendant,
  type TaskRelations,
  type PageOfArtifacts,
  type RunErrorRecord,
  type ModelCallRecord,
  type StepRecord,
  type ParkedRun,
  type RunRecord,
  type StoredTask,
  type TraceSpan,
  SEARCH_PLACES,
} from '@baton/tasks';
import { costOf, type ModelPrices, priceOf, roundedCost } from '@baton/config';
import { z } from 'zod';
import { a2aSchema, stateSchema, timeSchema } from '../../openapi/schemas.js';
import { nextCursor, readPage } from '../paging.js';

const approval = z
  .object({
    call_id: z.string(),
    tool: z.string(),
    server: z.string().optional(),
    description: z.string(),
    input: z.unknown(),
    agents: z.array(z.string()).optional().describe('Of a call further down: the agents on the way to it'),
    expires_at: timeSchema.optional(),
    unknown_outcome: z
      .literal(true)
      .optional()
      .describe('The call was sent, and what became of it is not known. To approve it is to make it again'),
    question: z
      .union([
        z.object({ requested_schema: z.record(z.string(), z.unknown()) }),
        z.object({ url: z.string().describe('Of http or https') }),
      ])
      .optional()
      .describe(
        'The tool itself asks, and `description` is its message. To approve it is to answer with an `input` that fits the schema, or to have ' +
          'opened the address',
      ),
  })
  .meta({ id: 'Approval' });
const parkedSchema = z
  .object({
    reason: z
      .enum(['code-changed'])
      .describe('`code-changed`: the steps of the task do not fit the code of its agent'),
    problem: z.string().describe('How they differ'),
    code: z.string().nullable().describe('Hash of that code. Null: unknown'),
    since: timeSchema,
  })
  .meta({ id: 'Parked' });
export const taskSummary = z
  .object({
    task_id: z.string(),
    agent_id: z.string(),
    context_id: z.string(),
    state: stateSchema.optional(),
    status_message: z
      .string()
      .optional()
      .describe('Text of its status, such as why it has failed: its first 300 characters'),
    updated_at: timeSchema.optional(),
    created_at: timeSchema.optional().describe('In lists, and of one task'),
    owner: z
      .string()
      .nullable()
      .optional()
      .describe('Key of the principal that made it. Null: an earlier release made it'),
    first_message: z
      .string()
      .optional()
      .describe(
        'How its first message begins, with `q` the text around the hit: at most 200 characters on one line. In lists, unless the ' +
          'message is larger than 64 KiB',
      ),
    error_message: z
      .string()
      .optional()
      .describe(
        "The first sentence of the last error in the agent's code, at most 200 characters. In lists, if it has failed with one",
      ),
    hit: z
      .object({
        in: z.enum(SEARCH_PLACES),
        text: z
          .string()
          .optional()
          .describe(
            'In a status, an error or an answer: the text around it, at most 202 characters on one line. Left out where Postgres has no text for it',
          ),
      })
      .meta({ id: 'SearchHit' })
      .optional()
      .describe('With `q`: the first place where the text is'),
    usage: z
      .object({ input_tokens: z.number(), output_tokens: z.number() })
      .optional()
      .describe('Tokens of models, as the agent has said. In lists'),
    parked: parkedSchema
      .optional()
      .describe(
        'It waits for other code of its agent, or for `POST /v1/tasks/{id}/resume`. In lists, and of one task',
      ),
    approvals: z.array(approval).optional().describe('The calls that wait for a person to approve them'),
    ancestors: z
      .array(z.object({ task_id: z.string(), agent_id: z.string() }).meta({ id: 'Ancestor' }))
      .optional()
      .describe('With `answerable`, if another agent has begun it: the tasks above it, the nearest first'),
    question: z
      .array(a2aSchema('A part'))
      .optional()
      .describe(
        'With `answerable`: the parts of the message with which it asks, if it asks for no approval. Left out where they are too large',
      ),
  })
  .meta({ id: 'TaskSummary' });
export const taskList = z.object({
  tasks: z.array(taskSummary),
  searched: z.int().optional().describe('With `q`: how many tasks this call has looked at'),
  counts: z
    .array(z.object({ state: stateSchema, tasks: z.int() }).meta({ id: 'StateCount' }))
    .optional()
    .describe('With `counts`: the number of tasks in each state. 1,000 stands for 1,000 or more'),
  next_cursor: nextCursor,
});

export const runError = z
  .object({
    run_id: z.string(),
    attempt: z.int(),
    at: timeSchema,
    message: z.string(),
    stack: z.string().nullable().optional().describe('For tokens that may change agents'),
    output: z.array(z.string()).optional().describe('The last lines of the console, for the same tokens'),
  })
  .meta({ id: 'RunError' });
const unknownOutcome = z
  .enum(['repeated', 'verified', 'asked', 'failed'])
  .optional()
  .describe(
    'Of a step whose process died while it ran: what was done about the unknown outcome. `verified`: the code has looked. `asked`: a ' +
      'person has answered',
  );
const step = z
  .object({
    name: z.string(),
    kind: z.enum(['run', 'sleep', 'input', 'agent', 'patch', 'model', 'state', 'tool']),
    state: z
      .enum(['running', 'waiting', 'succeeded', 'failed', 'stopped'])
      .describe('`stopped`: the task ended before the step did'),
    attempts: z.int(),
    started_at: timeSchema,
    ended_at: timeSchema.nullable(),
    error: z.string().nullable(),
    unknown_outcome: unknownOutcome,
  })
  .meta({ id: 'Step' });
const modelCall = z
  .object({
    run_id: z.string(),
    attempt: z.int(),
    at: timeSchema.nullable().describe('When it began. Null: an earlier release made it'),
    ms: z.number().nullable().describe('How long it took'),
    model: z.string().describe('provider/model'),
    finish: z
      .string()
      .nullable()
      .describe(
        'Why the answer ended: `stop`, `tool-calls`, `length`, `content-filter`, `error` or `other`. Null: the call failed',
      ),
    provider_finish: z
      .string()
      .nullable()
      .describe(
        "The same in the provider's own word. Null: it gave none, or an earlier release made the call",
      ),
    input_tokens: z.number(),
    output_tokens: z.number(),
    cached_tokens: z.number().describe('Those of the input tokens that came from the cache of the provider'),
    cache_write_tokens: z
      .number()
      .describe('Those of the input tokens that the provider has written into its cache'),
    cost: z.number().nullable().describe('In `currency`. Null: the operator has set no price of the model'),
    tools: z.array(z.string()).describe('Names of the tools that the answer asks for, at most 20'),
    tools_not_made: z.boolean().describe('No call of the answer was made, because it was not whole'),
    is_summary: z
      .boolean()
      .describe('The call has summarised the conversation, so that it stays within the context of the model'),
    error: z.string().nullable().describe('Why it failed. Null: it did not'),
  })
  .meta({ id: 'ModelCall' });
export const runAnswer = z
  .object({
    run_id: z.string(),
    state: z.enum(['queued', 'running', 'suspended', 'succeeded', 'failed', 'canceled']),
    attempt: z.int().describe('How often a worker has claimed it'),
    crashes: z.int().describe('Attempts that ended with their worker'),
    worker_id: z.string().nullable().describe('The worker that has it, or had it last'),
    start_event: z.int().describe('The event with which its turn was accepted'),
    created_at: timeSchema,
    not_before: timeSchema.nullable().describe('It waits until then'),
    finished_at: timeSchema.nullable(),
  })
  .meta({ id: 'Run' });

const descendant = z
  .object({
    task_id: z.string(),
    parent_id: z.string(),
    agent_id: z.string(),
    state: stateSchema.optional(),
  })
  .meta({ id: 'Descendant' });

/** The tasks whose journals a task goes on with, and those that go on with its own. */
const links = {
  continues: z.string().nullable().describe('The failed task with which it goes on'),
  fork_of: z.string().nullable().describe('The task of which it is a fork'),
  continued_as: z.string().nullable().describe('The task that goes on with it, after it has failed'),
  undoes: z.string().nullable().describe('The canceled task whose finished steps it undoes'),
  undone_as: z.string().nullable().describe('The task that undoes its finished steps, after it was canceled'),
};

export type TaskLinks = Record<keyof typeof links, string | null>;

const reminderStatus = z
  .object({
    kind: z.enum(['reminder', 'escalation']),
    due_at: timeSchema
      .nullable()
      .describe('When webhooks are notified, or tried again after a failure. Null: it is over'),
    sent_at: timeSchema
      .nullable()
      .describe(
        'When the last webhook has taken it, or when there was none to tell. Null: that did not happen',
      ),
    webhooks: z.int().describe('How many webhooks have taken it'),
  })
  .meta({ id: 'ReminderStatus' });

export const wholeTask = taskSummary
  .extend({
    owner: z
      .string()
      .nullable()
      .describe('Key of the principal that made it. Null: an earlier release made it'),
    runs: z.array(runAnswer).describe('Its newest runs, at most 100, the newest first'),
    agent_version: z.int().nullable(),
    parent_id: z.string().nullable(),
    child_ids: z.array(z.string()),
    descendants: z
      .array(descendant)
      .describe(
        'Its children, their children and so on, as far as you see them: the nearest first, at most 500',
      ),
    events: z.int().describe('Number of events in its log'),
    ...links,
    wakes_at: timeSchema
      .nullable()
      .describe('When it goes on without an answer. Null: it does not ask, or waits for the answer alone'),
    reminders: z
      .array(reminderStatus)
      .optional()
      .describe('Reminders and escalations of what it asks now, in their order. Left out: there are none'),
    task: a2aSchema('The task'),
    error: runError.nullable().describe("The last error in the agent's code"),
    model_calls: z
      .array(modelCall)
      .describe(
        'The newest calls of models for the task, failed ones too: at most 100, the oldest of them first',
      ),
    currency: z
      .string()
      .nullable()
      .describe('Of the costs in `model_calls`. Null: the operator has set no prices'),
    steps: z.array(step).optional().describe('Its durable steps, for tokens that may change agents'),
  })
  .meta({ id: 'Task' });

export const sentAgain = taskSummary
  .extend({ again_of: z.string().describe('The task whose message was sent') })
  .meta({ id: 'SentAgain' });

export const continuation = taskSummary
  .extend({ continues: z.string().describe('The failed task with which it goes on') })
  .meta({ id: 'Continuation' });

export const forkBody = z
  .strictObject({
    at: z
      .int()
      .min(1)
      .optional()
      .describe('The entry after which the fork goes on: `entry` of a span. Unset: the last one'),
    text: z.string().optional().describe('Another message for the turn'),
    message: z.record(z.string(), z.unknown()).optional().describe('The same as a message of A2A 1.0'),
    agent: z.string().min(1).max(200).optional().describe('Another agent: its slug or id'),
    dry_run: z.boolean().default(false).describe('Makes no task: the answer says what would be done again'),
  })
  .meta({ id: 'NewFork' });

/** What the fork may do again. */
const doneAgain = z.object({
  entry: z.int(),
  kind: z.enum(['step', 'agent', 'tool']),
  name: z.string(),
});
export const forkAnswer = z
  .object({
    task_id: z.string().nullable().describe('The fork. Null: a dry run'),
    fork_of: z.string(),
    at: z.int().describe('The last entry that the fork takes over. 0: none'),
    done_again: z
      .array(doneAgain)
      .describe(
        'Steps and calls of tools with effects after that entry, which the fork may make once more: at most 1,000',
      ),
  })
  .meta({ id: 'Fork' });

export const artifactPage = z.object({
  task_id: z.string(),
  as_of_event: z.int(),
  artifacts: z.array(
    z.object({
      append: z.boolean().describe('It goes on with the artifact before'),
      artifact: a2aSchema('An artifact, or a piece of it'),
    }),
  ),
  next_cursor: nextCursor,
});

export const eventTimes = z.object({
  task_id: z.string(),
  times: z.array(z.object({ seq: z.int(), at: timeSchema }).meta({ id: 'EventTime' })),
  more: z.boolean(),
});
export const consolePage = z.object({
  task_id: z.string(),
  lines: z.array(
    z
      .object({
        position: z.int().describe('From 1, without holes'),
        at: timeSchema,
        level: z.enum(['debug', 'info', 'warn', 'error']),
        run_id: z.string(),
        attempt: z.int(),
        text: z.string(),
      })
      .meta({ id: 'ConsoleLine' }),
  ),
  next_cursor: nextCursor,
});

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

export const cancelAnswer = z.object({ task_id: z.string(), cancelled: z.literal(true) });
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
export const resumeAnswer = z.object({ task_id: z.string(), resumed: z.literal(true) });
export const cancelRefusal = z.object({
  task_id: z.string(),
  cancelled: z.literal(false),
  reason: z.string(),
});

/** A task in short. */
export const encodeTaskSummary = (task: Task, agentId: string): z.infer<typeof taskSummary> => ({
  ...encodeApprovals(task),
  task_id: task.id,
  agent_id: agentId,
  context_id: task.contextId,
  state: task.status && stateName(task.status.state),
  ...statusText(task),
  updated_at: task.status?.timestamp,
});

/** Characters of the text of a status that lists show. */
const MAX_STATUS_TEXT = 300;

function statusText({ status }: Task): Pick<z.infer<typeof taskSummary>, 'status_message'> {
  const text = textOf(status?.message?.parts ?? []).trim();
  return text === '' ? {} : { status_message: shortened(text, MAX_STATUS_TEXT) };
}

function encodeApprovals({ status }: Task): Pick<z.infer<typeof taskSummary>, 'approvals'> {
  const asked = approvalsOf(status) ?? [];
  if (asked.length === 0) return {};
  return {
    approvals: asked.map(
      ({
        callId,
        tool,
        server,
        description,
        input,
        agents,
        expiresAt,
        unknownOutcome: isUnknown,
        question,
      }) => ({
        call_id: callId,
        tool,
        description,
        input,
        ...(server !== undefined && { server }),
        ...(agents && { agents }),
        ...(expiresAt !== undefined && { expires_at: expiresAt }),
        ...(isUnknown && { unknown_outcome: true as const }),
        ...(question && {
          question: 'url' in question ? question : { requested_schema: question.requestedSchema },
        }),
      }),
    ),
  };
}

/** The same with its parent and children, and the whole task in the JSON of A2A 1.0. */
export const encodeWholeTask = (
  task: Task,
  agentId: string,
  { owner, parentTaskId, childTaskIds, agentVersion, events, createdAt, wakesAt, reminders }: TaskRelations,
): Omit<
  z.infer<typeof wholeTask>,
  'error' | 'runs' | 'steps' | 'descendants' | 'model_calls' | 'currency' | keyof TaskLinks
> => ({
  ...encodeTaskSummary(task, agentId),
  ...(createdAt && { created_at: createdAt.toISOString() }),
  owner,
  agent_version: agentVersion,
  parent_id: parentTaskId,
  child_ids: childTaskIds,
  events,
  wakes_at: wakesAt?.toISOString() ?? null,
  ...(reminders.length > 0 && {
    reminders: reminders.map(({ kind, dueAt, sentAt, webhooks }) => ({
      kind,
      due_at: dueAt?.toISOString() ?? null,
      sent_at: sentAt?.toISOString() ?? null,
      webhooks,
    })),
  }),
  task: Task.toJSON(task) as JsonObject,
});

/** Characters of an error that lists show. */
const MAX_ERROR = 200;

/** The first sentence, or the first line, of an error. */
const firstSentence = (text: string): string =>
  shortened(/^.*?(?:[.!?](?=\s)|$)/mu.exec(text.trim())?.[0] ?? '', MAX_ERROR);

export const encodeCounts = (counts: ReadonlyMap<TaskState, number>): z.infer<typeof taskList>['counts'] =>
  [...counts].map(([state, tasks]) => ({ state: stateName(state), tasks }));

/** A task that waits for an answer, as an entry of a list. */
export function encodeWaiting({ above, ...stored }: AnswerableTask): z.infer<typeof taskSummary> {
  const ancestors = above.map(({ taskId, agentId }) => ({ task_id: taskId, agent_id: agentId }));
  const listed = { ...encodeListed(stored), ...(ancestors.length > 0 && { ancestors }) };
  const { message } = stored.task.status ?? {};
  if (listed.approvals || !message) return listed;
  return { ...listed, question: message.parts.map((part) => Part.toJSON(part) as JsonObject) };
}

/** Why and since when a task is parked. Nothing if it is not. */
export const encodeParked = (
  parked: ParkedRun | null | undefined,
): Pick<z.infer<typeof taskSummary>, 'parked'> =>
  parked ? { parked: { ...parked, since: parked.since.toISOString() } } : {};

/** A task as an entry of a list. */
export const encodeListed = ({
  task,
  agentId,
  owner,
  createdAt,
  firstMessage,
  lastError,
  parked,
  hit,
}: StoredTask): z.infer<typeof taskSummary> => {
  const { input, output } = tokenUsage(task.metadata);
  return {
    ...encodeTaskSummary(task, agentId),
    owner,
    ...(createdAt && { created_at: createdAt.toISOString() }),
    ...(firstMessage !== undefined && { first_message: firstMessage }),
    ...(lastError !== undefined && { error_message: firstSentence(lastError) }),
    ...encodeParked(parked),
    ...(hit && { hit: { in: hit.place, ...(hit.text !== undefined && { text: hit.text }) } }),
    ...(input + output > 0 && { usage: { input_tokens: input, output_tokens: output } }),
  };
};

export const encodeDescendant = ({
  taskId,
  parentTaskId,
  agentId,
  state,
}: Descendant): z.infer<typeof descendant> => ({
  task_id: taskId,
  parent_id: parentTaskId,
  agent_id: agentId,
  state: stateName(state),
});

export const encodeRun = (run: RunRecord): z.infer<typeof runAnswer> => ({
  run_id: run.runId,
  state: run.state,
  attempt: run.attempt,
  crashes: run.crashes,
  worker_id: run.workerId,
  start_event: run.startSequence,
  created_at: run.createdAt.toISOString(),
  not_before: run.notBefore?.toISOString() ?? null,
  finished_at: run.finishedAt?.toISOString() ?? null,
});

/**
 * An error in an agent's code. Stack and console are only for callers who may change agents, because they show the
 * code.
 */
export const encodeRunError = (
  { runId, attempt, at, message, stack, output = [] }: RunErrorRecord,
  isAuthor: boolean,
): z.infer<typeof runError> => ({
  run_id: runId,
  attempt,
  at,
  message,
  ...(isAuthor && { stack: stack ?? null, output }),
});

/**
 * The durable steps of a task. They show the code, so they are for the same callers as a stack.
 * @param hasEnded whether the task has ended: nothing of it goes on or waits then
 */
export const encodeSteps = (steps: readonly StepRecord[], hasEnded: boolean): z.infer<typeof step>[] =>
  steps.map(({ name, kind, state, attempts, startedAt, endedAt, error, unknownOutcome: outcome }) => ({
    name,
    kind: kind as z.infer<typeof step>['kind'],
    state: hasEnded && (state === 'running' || state === 'waiting') ? 'stopped' : state,
    attempts,
    started_at: startedAt,
    ended_at: endedAt,
    error,
    ...(outcome && { unknown_outcome: outcome }),
  }));

/** A call of a model, without prompt and answer. */
export function encodeModelCall(
  call: ModelCallRecord,
  prices: ModelPrices | undefined,
): z.infer<typeof modelCall> {
  const price = priceOf(call.model, prices);
  return {
    run_id: call.runId,
    attempt: call.attempt,
    at: call.at,
    ms: call.ms,
    model: call.model,
    finish: call.finish,
    provider_finish: call.providerFinish,
    input_tokens: call.inputTokens,
    output_tokens: call.outputTokens,
    cached_tokens: call.cachedTokens,
    cache_write_tokens: call.cacheWriteTokens,
    cost: price ? roundedCost(costOf(call, price)) : null,
    tools: call.tools,
    tools_not_made: call.isNotMade,
    is_summary: call.isSummary,
    error: call.error,
  };
}

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

/** The output of a call of a model or tool. Neither `model` nor `tool`: the task has no call with that entry. */
export function encodeCallDetail(
  id: string,
  entry: number,
  detail: ModelCallDetail | ToolCallDetail | StepDetail | undefined,
): z.infer<typeof callDetailAnswer> {
  if (!detail) return { task_id: id, entry };
  const { kind, ...said } = detail;
  return { task_id: id, entry, [kind]: said };
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

/** A line that an agent's code has written to its console. */
export const encodeConsoleLine = ({ position, at, level, runId, attempt, text }: ConsoleLineRecord) => ({
  position,
  at: at.toISOString(),
  level,
  run_id: runId,
  attempt,
  text,
});

/** The position after which a page of the console begins. Throws `invalid-params` for an invalid cursor. */
export function readConsoleCursor(cursor: string | undefined): number {
  if (cursor === undefined || cursor === '') return 0;
  const { after } = readPage(1, cursor);
  if (after !== undefined && /^\d{1,9}$/.test(after)) return Number(after);
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}

/** One page of a task's artifacts, each in the JSON of A2A 1.0. */
export const encodeArtifactPage = (
  id: string,
  { head, pieces, next }: PageOfArtifacts,
): z.infer<typeof artifactPage> => ({
  task_id: id,
  as_of_event: head,
  artifacts: pieces.map(({ append, artifact }) => ({
    append,
    artifact: Artifact.toJSON(artifact) as JsonObject,
  })),
  next_cursor: next ? encodeCursor(next) : null,
});

const encodeCursor = ({ head, after }: ArtifactPosition): string =>
  Buffer.from(`${head}.${after}`).toString('base64url');

/** Decodes a page's `next_cursor`. Throws `invalid-params` for anything else. */
export function readArtifactCursor(cursor: string): ArtifactPosition {
  const [, head, after] = /^(\d{1,10})\.(\d{1,10})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const position = { head: Number(head), after: Number(after) };
  if (position.after < position.head && encodeCursor(position) === cursor) return position;
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}

/** One event of the log: the StreamResponse of A2A 1.0 as JSON, with its sequence as `seq`. */
export const encodeEvent = (item: StreamItem): string =>
  // Its text is stored in this form. To ask for the payload would parse it.
  `{"seq":${item.sequence},${(item.json ?? serializePayload(item.payload)).slice(1)}`;
