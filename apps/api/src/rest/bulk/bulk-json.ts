import { parseFields, STATE_NAMES, stateName, stateNamed } from '@baton/a2a';
import {
  BULK_ACTIONS,
  type BulkAction,
  type BulkFilter,
  type BulkOperation,
  type BulkPreview,
} from '@baton/tasks';
import { z } from 'zod';
import { MAX_NAME } from '../../openapi/query-pipe.js';
import { timeSchema } from '../../openapi/schemas.js';
import { nextCursor } from '../paging.js';
import { encodeListed, taskSummary } from '../tasks/task-summary-json.js';

/** Each task is searched for it. As long as the text of a search for tasks. */
const MAX_TEXT = 200;

const name = z
  .string()
  .min(1)
  .max(MAX_NAME)
  .regex(/^[^\0]*$/, { error: 'must not contain U+0000' });
const filter = z
  .strictObject({
    agent: name.describe('Only tasks of this agent: its slug or id'),
    context_id: name.describe('Only tasks of this context. Needs `agent`'),
    state: z.enum(STATE_NAMES as [string, ...string[]]).describe('Only tasks in this state'),
    since: z.iso.datetime({ offset: true }).describe('Only tasks whose status is not older'),
    until: z.iso.datetime({ offset: true }).describe('Only tasks whose status is older'),
    owner: name.describe('Only tasks that this principal has made: its key'),
    parked: z.boolean().describe('True: only tasks that wait for other code of their agent'),
    error: z
      .string()
      .min(1)
      .max(MAX_TEXT)
      .describe('Only tasks with this text in their error, in upper or lower case'),
    version: z.int().min(1).describe('Only tasks whose last attempt has run this version of its agent'),
  })
  .partial();
export const newBulk = z.strictObject({
  action: z
    .enum(BULK_ACTIONS)
    .describe(
      '`cancel` tasks that are open, `resume` parked ones, `continue` failed ones where they have failed, `send-again` the first message of ' +
        'ended ones, `delete` ended ones (needs `admin`)',
    ),
  filter: filter.default({}),
  dry_run: z.boolean().default(false).describe('True: only say what would be done'),
});

const failure = z.object({ task_id: z.string(), reason: z.string() });
export const bulkAnswer = z
  .object({
    id: z.string(),
    action: z.enum(BULK_ACTIONS),
    filter: z.record(z.string(), z.unknown()).describe('As it was given, with the id of the agent'),
    state: z.enum(['running', 'done', 'canceled']),
    found: z.int().describe('Tasks that were found so far'),
    done: z.int(),
    skipped: z.int().describe('Tasks at which there was nothing to do any more'),
    failed: z.int(),
    failures: z.array(failure).describe('The first 100 of the tasks that failed, and why'),
    waits_for: z.string().nullable().describe('Why it waits. Null: it does not'),
    created_by: z.string().describe('The key of the principal that has begun it'),
    created_at: timeSchema,
    finished_at: timeSchema.nullable(),
  })
  .meta({ id: 'BulkOperation' });
export const bulkPreview = z
  .object({
    dry_run: z.literal(true),
    action: z.enum(BULK_ACTIONS),
    found: z.int().describe('Tasks to which it would be done'),
    complete: z.boolean().describe('False: the newest 10,000 tasks were looked at, and there are more'),
    tasks: z.array(taskSummary).describe('The newest of these tasks, at most 20'),
  })
  .meta({ id: 'BulkPreview' });
export const bulkList = z.object({ bulk_operations: z.array(bulkAnswer), next_cursor: nextCursor });

/** A new operation. `agent` is not looked up yet. */
interface GivenBulk {
  action: BulkAction;
  agent: string | undefined;
  filter: Omit<BulkFilter, 'agentId'>;
  isDryRun: boolean;
}

/** Reads a new operation. Throws `invalid-params` naming every wrong field. */
export function decodeNewBulk(body: unknown): GivenBulk {
  const { action, filter: given, dry_run: isDryRun } = parseFields(newBulk, body, '', 'the body');
  const { agent, context_id: contextId, state, since, until, owner, parked, error, version } = given;
  const wanted = state === undefined ? undefined : stateNamed(state);
  const some = {
    ...(contextId !== undefined && { contextId }),
    ...(wanted !== undefined && { state: wanted }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(owner !== undefined && { owner }),
    ...(parked !== undefined && { parked }),
    ...(error !== undefined && { error }),
    ...(version !== undefined && { version }),
  };
  return { action, agent, filter: some, isDryRun };
}

export const encodeBulk = (operation: BulkOperation): z.infer<typeof bulkAnswer> => {
  const { agentId, contextId, state, ...others } = operation.filter;
  return {
    id: operation.id,
    action: operation.action,
    filter: {
      ...(agentId !== undefined && { agent: agentId }),
      ...(contextId !== undefined && { context_id: contextId }),
      ...(state !== undefined && { state: stateName(state) }),
      ...others,
    },
    state: operation.state,
    found: operation.found,
    done: operation.done,
    skipped: operation.skipped,
    failed: operation.failed,
    failures: operation.failures.map(({ taskId, reason }) => ({ task_id: taskId, reason })),
    waits_for: operation.waitsFor,
    created_by: operation.caller.principal.key,
    created_at: operation.createdAt.toISOString(),
    finished_at: operation.finishedAt?.toISOString() ?? null,
  };
};

export const encodeBulkPreview = (
  action: BulkAction,
  { found, tasks, isWhole }: BulkPreview,
): z.infer<typeof bulkPreview> => ({
  dry_run: true,
  action,
  found,
  complete: isWhole,
  tasks: tasks.map(encodeListed),
});
