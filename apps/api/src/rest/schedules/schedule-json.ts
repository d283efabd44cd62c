import { Message, ProtocolError, isUuid, parseFields, stateName } from '@baton/a2a';
import { CONTEXTS, MISSED, OVERLAPS, type Schedule, type ScheduleSpec } from '@baton/tasks';
import { z } from 'zod';
import { a2aSchema, encodeTime, stateSchema, timeSchema } from '../../openapi/schemas.js';
import { decodeMessageBody } from '../message-body.js';
import { nextCursor } from '../paging.js';
import { namesOfTask, taskNames } from '../task-names.js';

const NAME = 'give it 1 to 64 lower-case letters, digits and hyphens between them';
const TIME = 'give a time with its offset, such as 2026-12-31T08:00:00Z';

const name = z
  .string()
  .max(64, { error: NAME })
  .regex(/^[a-z\d]+(-[a-z\d]+)*$/, { error: NAME })
  .refine((text) => !isUuid(text), { error: 'must not look like an id: choose another name' });
const time = z.iso
  .datetime({ offset: true, error: TIME })
  .transform((text) => new Date(text))
  .nullable();
const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, { error: `choose one of ${values.join(', ')}` });

const members = {
  name,
  agent: z.string().min(1, { error: 'name the agent' }).max(200),
  text: z.string().optional(),
  message: z.record(z.string(), z.unknown()).optional(),
  cron: z.string().nullable(),
  at: time,
  time_zone: z.string(),
  overlap: oneOf(OVERLAPS),
  missed: oneOf(MISSED),
  context: oneOf(CONTEXTS),
  starts_at: time,
  ends_at: time,
  max_count: z.int().min(1).max(1_000_000_000).nullable(),
  paused: z.boolean(),
};
export const newSchedule = z.strictObject({
  ...members,
  cron: members.cron.default(null),
  at: members.at.default(null),
  time_zone: members.time_zone.default('UTC'),
  overlap: members.overlap.default('skip'),
  missed: members.missed.default('fire-once'),
  context: members.context.default('new'),
  starts_at: members.starts_at.default(null),
  ends_at: members.ends_at.default(null),
  max_count: members.max_count.default(null),
  paused: members.paused.default(false),
});
export const schedulePatch = z.strictObject(members).partial();

/** Reads a new schedule. Throws `invalid-params` naming every wrong field. */
export function decodeNewSchedule(body: unknown): ScheduleSpec {
  const { text, message, ...spec } = parseFields(newSchedule, body, '', 'the body');
  const content = decodeMessageBody(text, message);
  if (!content) throw ProtocolError.invalidParams('text', 'is missing: give a text, or a message with parts');
  const { time_zone: timeZone, starts_at: startsAt, ends_at: endsAt, max_count: maxCount, ...rest } = spec;
  return { ...rest, message: content, timeZone, startsAt, endsAt, maxCount };
}

/** Reads a change of a schedule. Throws `invalid-params` naming every wrong field. */
export function decodeSchedulePatch(body: unknown): Partial<ScheduleSpec> {
  const { text, message, ...spec } = parseFields(schedulePatch, body, '', 'the body');
  const content = decodeMessageBody(text, message);
  const { time_zone: timeZone, starts_at: startsAt, ends_at: endsAt, max_count: maxCount, ...rest } = spec;
  const changed = { ...rest, message: content, timeZone, startsAt, endsAt, maxCount };
  return Object.fromEntries(Object.entries(changed).filter(([, value]) => value !== undefined));
}

/** A schedule in a list: without its message. */
const scheduleSummary = z
  .object({
    id: z.string(),
    name: z.string(),
    agent: z.string().describe('Slug or id of the agent'),
    cron: z.string().nullable(),
    at: timeSchema.nullable(),
    time_zone: z.string().describe('What `cron` is read in'),
    overlap: z.enum(OVERLAPS).describe('What to do while the task before has not ended'),
    missed: z.enum(MISSED).describe('What to do with missed times'),
    context: z.enum(CONTEXTS).describe('Whether each task begins a conversation, or all share one'),
    starts_at: timeSchema.nullable(),
    ends_at: timeSchema.nullable(),
    max_count: z.int().nullable().describe('It ends after this many tasks'),
    paused: z.boolean(),
    paused_reason: z
      .string()
      .nullable()
      .describe('Why Baton has paused it; null: you have, or it is not paused'),
    fired: z.int().describe('The number of tasks that its times have made'),
    passed: z
      .object({ skipped: z.int(), missed: z.int(), refused: z.int() })
      .describe('How many of its times have made no task, by outcome'),
    next_at: timeSchema.nullable(),
    waiting: z.boolean().describe('`next_at` has passed and waits for the end of the task before'),
    last_outcome: z
      .object({
        outcome: z.enum(['started', 'skipped', 'missed', 'refused']),
        reason: z.string().nullable(),
        due_at: timeSchema,
        at: timeSchema,
      })
      .nullable(),
    last_task: z
      .object({ ...taskNames, state: stateSchema.nullable().describe('Null: it was deleted') })
      .nullable(),
    recent_tasks: z
      .array(z.object({ ...taskNames, state: stateSchema, created_at: timeSchema }))
      .describe('The last tasks that it has made, the newest first, at most ten. Deleted ones are left out'),
    created_at: timeSchema,
    updated_at: timeSchema,
  })
  .meta({ id: 'ScheduleSummary' });
export const scheduleList = z.object({ schedules: z.array(scheduleSummary), next_cursor: nextCursor });
export const scheduleAnswer = scheduleSummary
  .extend({ message: a2aSchema('What is sent to the agent: a message without ids') })
  .meta({ id: 'Schedule' });
export const scheduleRun = z.object({
  schedule_id: z.string(),
  ...taskNames,
});

/** A schedule without its message. */
export function encodeSchedule(schedule: Omit<Schedule, 'message'>): z.infer<typeof scheduleSummary> {
  const { id, name, agent, cron, at, timeZone, overlap, missed, context, last, lastTaskId } = schedule;
  const {
    startsAt,
    endsAt,
    maxCount,
    paused,
    pausedReason,
    fired,
    passed,
    nextAt,
    isWaiting,
    lastTaskState: state,
  } = schedule;
  return {
    id,
    name,
    agent,
    cron,
    at: encodeTime(at),
    time_zone: timeZone,
    overlap,
    missed,
    context,
    starts_at: encodeTime(startsAt),
    ends_at: encodeTime(endsAt),
    max_count: maxCount,
    paused,
    paused_reason: pausedReason,
    fired,
    passed,
    next_at: encodeTime(nextAt),
    waiting: isWaiting,
    last_outcome: last && {
      outcome: last.outcome,
      reason: last.reason,
      due_at: last.dueAt.toISOString(),
      at: last.at.toISOString(),
    },
    last_task:
      lastTaskId === null
        ? null
        : { ...namesOfTask(lastTaskId), state: state === null ? null : stateName(state) },
    recent_tasks: schedule.recentTasks.map((task) => ({
      ...namesOfTask(task.taskId),
      state: stateName(task.state),
      created_at: task.createdAt.toISOString(),
    })),
    created_at: schedule.createdAt.toISOString(),
    updated_at: schedule.updatedAt.toISOString(),
  };
}

/** A schedule with its message, in the JSON of A2A 1.0. */
export function encodeScheduleWithMessage(schedule: Schedule): z.infer<typeof scheduleAnswer> {
  const written = Message.toJSON(schedule.message) as Record<string, unknown>;
  const { messageId: _id, role: _role, ...message } = written;
  return { ...encodeSchedule(schedule), message };
}
