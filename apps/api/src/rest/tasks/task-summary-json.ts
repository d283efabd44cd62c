import {
  Part,
  stateName,
  shortened,
  type Task,
  type TaskState,
  textOf,
  tokenUsage,
  type JsonObject,
} from '@baton/a2a';
import { approvalsOf } from '@baton/agents';
import { type AnswerableTask, type ParkedRun, SEARCH_PLACES, type StoredTask } from '@baton/tasks';
import { z } from 'zod';
import { a2aSchema, stateSchema, timeSchema } from '../../openapi/schemas.js';
import { nextCursor } from '../paging.js';

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
      .describe('The call was sent, and its outcome is not known. Approve it to make it again'),
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
