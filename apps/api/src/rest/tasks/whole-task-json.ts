import { type JsonObject, stateName, Task } from '@baton/a2a';
import type { Descendant, TaskRelations } from '@baton/tasks';
import { z } from 'zod';
import { a2aSchema, stateSchema, timeSchema } from '../../openapi/schemas.js';
import { modelCall } from './model-call-json.js';
import { runAnswer, runError } from './run-json.js';
import { step } from './step-json.js';
import { links } from './task-links.js';
import { encodeTaskSummary, taskSummary } from './task-summary-json.js';

const descendant = z
  .object({
    task_id: z.string(),
    parent_id: z.string(),
    agent_id: z.string(),
    state: stateSchema.optional(),
  })
  .meta({ id: 'Descendant' });

const reminderStatus = z
  .object({
    kind: z.enum(['reminder', 'escalation']),
    due_at: timeSchema
      .nullable()
      .describe('When webhooks are notified, or tried again after a failure. Null: it is over'),
    sent_at: timeSchema
      .nullable()
      .describe(
        'When the last webhook accepted it, or when it was due and there was no webhook. Null: neither has happened',
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
      .describe('When it continues without an answer. Null: it does not ask, or waits for the answer alone'),
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

/** A task with its parent and children, and the whole of it in the JSON of A2A 1.0. */
export const encodeWholeTask = (
  task: Task,
  agentId: string,
  { owner, parentTaskId, childTaskIds, agentVersion, events, createdAt, wakesAt, reminders }: TaskRelations,
): Omit<
  z.infer<typeof wholeTask>,
  'error' | 'runs' | 'steps' | 'descendants' | 'model_calls' | 'currency' | keyof typeof links
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
