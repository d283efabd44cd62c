import { parseFields, SLUG, stateName, TaskState } from '@baton/a2a';
import { outboundUrl } from '@baton/outbound';
import type {
  PushTry,
  ReceiverReply,
  Webhook,
  WebhookDelivery,
  WebhookHealth,
  WebhookSpec,
} from '@baton/tasks';
import { z } from 'zod';
import { stateSchema, timeSchema } from '../../openapi/schemas.js';
import { nextCursor } from '../paging.js';
import { taskNames } from '../task-names.js';

/** Each event of the tenant is compared with the list of each webhook. */
const MAX_AGENTS = 100;
/** Default time for which the former secret still signs. */
const OVERLAP_SECONDS = 86_400;
/** Long enough for a change that is rolled out by hand. */
const MAX_OVERLAP_SECONDS = 30 * 86_400;

const STATES = new Map(
  Object.values(TaskState)
    .filter((state): state is TaskState => Number(state) > 0)
    .map((state) => [stateName(state), state]),
);
const stateNames = [...STATES.keys()] as [string, ...string[]];

const members = {
  url: outboundUrl,
  agents: z
    .array(z.string().regex(SLUG, { error: 'must be the slug of an agent' }))
    .min(1, { error: 'name at least one agent, or give null for all' })
    .max(MAX_AGENTS)
    .nullable(),
  states: z
    .array(z.enum(stateNames, { error: `choose from ${stateNames.join(', ')}` }))
    .min(1, { error: 'name at least one state, or give null for all' })
    .max(stateNames.length)
    .nullable(),
  enabled: z.boolean(),
};
export const newWebhook = z.strictObject(members).partial({ agents: true, states: true, enabled: true });
export const webhookPatch = z.strictObject(members).partial();
export const webhookRotation = z.strictObject({
  overlap_seconds: z.int().min(0).max(MAX_OVERLAP_SECONDS).default(OVERLAP_SECONDS),
});

export const webhookAnswer = z
  .object({
    id: z.string(),
    url: z.string(),
    agents: z
      .array(z.string())
      .nullable()
      .describe('Slugs of the agents whose tasks it is notified of. Null: all'),
    states: z.array(stateSchema).nullable().describe('The states that it is notified of. Null: all'),
    enabled: z.boolean(),
    created_by: z.string().describe('The key of the principal that has made it'),
    created_at: timeSchema,
    updated_at: timeSchema,
  })
  .meta({ id: 'Webhook' });
export const webhookWithSecret = webhookAnswer
  .extend({ secret: z.string().describe('`whsec_…`: what signs its deliveries. It is never shown again') })
  .meta({ id: 'WebhookWithSecret' });
const lastAnswer = {
  status: z.int().nullable().describe('HTTP status of the last answer. Null: there was none'),
  error: z.string().nullable().describe('Why the last try has failed. Null: it has not'),
};
const listedWebhook = webhookAnswer
  .extend({
    health: z
      .object({
        tasks: z.int().describe('Tasks that it is notified of'),
        retrying: z.int().describe('Tasks whose events its receiver has not taken yet'),
        given_up: z.int().describe('Tasks whose events were given up'),
        ...lastAnswer,
      })
      .nullable()
      .describe('Its deliveries of the newest tasks of the tenant. Null: it is notified of none of them'),
  })
  .meta({ id: 'ListedWebhook' });
export const webhookList = z.object({ webhooks: z.array(listedWebhook), next_cursor: nextCursor });
const webhookTry = z
  .object({
    at: timeSchema.describe('When it ended'),
    duration_ms: z.int(),
    status: z.int().nullable().describe('HTTP status of the answer. Null: there was none'),
    error: z.string().nullable().describe('Null: the receiver has taken it'),
    request: z
      .object({
        method: z.literal('POST'),
        event: z.int().describe('The event that it delivers, or the last one of several'),
        headers: z.record(z.string(), z.string()).describe('Secrets and signatures are hidden'),
        body: z.string().describe('The beginning of the body'),
        bytes: z.int().describe('Of the whole body'),
      })
      .nullable()
      .describe('Null: nothing was sent, or an earlier release has sent it'),
    answer: z.string().nullable().describe('The beginning of the body of the answer. Null: there was none'),
  })
  .meta({ id: 'WebhookTry' });
const webhookDelivery = z
  .object({
    task_id: taskNames.task_id,
    agent_id: z.string(),
    state: z
      .enum(['delivered', 'waiting', 'retrying', 'given-up', 'ended', 'idle'])
      .describe('`ended`: the receiver has answered 410. `idle`: there was nothing to deliver'),
    ...lastAnswer,
    failures: z.int().describe('Tries that have failed in a row'),
    failing_since: timeSchema.nullable(),
    next_at: timeSchema.nullable().describe('When it is tried next'),
    delivered_event: z.int().describe('The last event of the task that it has'),
    waiting: z.int().describe('Events that it has not received'),
    tries: z.array(webhookTry).optional().describe('With `task`: the newest ten requests, the oldest first'),
  })
  .meta({ id: 'WebhookDelivery' });
export const webhookDeliveries = z.object({
  deliveries: z.array(webhookDelivery),
  next_cursor: nextCursor,
});
export const webhookRedelivery = z.object({
  tasks: z.array(z.string()).describe('The tasks that it is notified of again'),
});
export const webhookTest = z
  .object({
    delivered: z.boolean().describe('Whether the receiver has answered 2xx'),
    status: z.int().nullable().describe('The HTTP status of its answer. Null: there was none'),
    error: z.string().nullable().describe('Why there was no answer'),
    duration_ms: z.int(),
  })
  .meta({ id: 'WebhookTest' });

type GivenWebhook = z.infer<typeof webhookPatch>;

/** Reads a new webhook. Throws `invalid-params` naming every wrong field. */
export function decodeNewWebhook(body: unknown): WebhookSpec {
  const given = parseFields(newWebhook, body, '', 'the body');
  return { agents: [], states: [], enabled: true, url: given.url, ...specOf(given) };
}

/** Reads a change. Throws `invalid-params` naming every wrong field. */
export const decodeWebhookPatch = (body: unknown): Partial<WebhookSpec> =>
  specOf(parseFields(webhookPatch, body, '', 'the body'));

/** Reads a rotation of the secret. @returns for how long the former one continues to sign */
export const decodeWebhookRotation = (body: unknown): number =>
  parseFields(webhookRotation, body, '', 'the body').overlap_seconds * 1000;

function specOf({ url, agents, states, enabled }: GivenWebhook): Partial<WebhookSpec> {
  return {
    ...(url !== undefined && { url }),
    ...(agents !== undefined && { agents: [...new Set(agents)] }),
    ...(states !== undefined && { states: [...new Set(states)].flatMap((name) => STATES.get(name) ?? []) }),
    ...(enabled !== undefined && { enabled }),
  };
}

export const encodeWebhook = (webhook: Webhook): z.infer<typeof webhookAnswer> => ({
  id: webhook.id,
  url: webhook.url,
  agents: webhook.agents.length > 0 ? webhook.agents : null,
  states: webhook.states.length > 0 ? webhook.states.map(stateName) : null,
  enabled: webhook.enabled,
  created_by: webhook.createdBy,
  created_at: webhook.createdAt.toISOString(),
  updated_at: webhook.updatedAt.toISOString(),
});

export const encodeListedWebhook = (
  webhook: Webhook,
  health: WebhookHealth | undefined,
): z.infer<typeof listedWebhook> => ({
  ...encodeWebhook(webhook),
  health: health
    ? {
        tasks: health.tasks,
        retrying: health.retrying,
        given_up: health.dead,
        status: health.status,
        error: health.error,
      }
    : null,
});

export const encodeWebhookDelivery = (
  delivery: WebhookDelivery,
  tries: readonly PushTry[] | undefined,
): z.infer<typeof webhookDelivery> => ({
  task_id: delivery.taskId,
  agent_id: delivery.agentId,
  state: deliveryState(delivery),
  status: delivery.status,
  error: delivery.error,
  failures: delivery.failures,
  failing_since: delivery.failingSince?.toISOString() ?? null,
  next_at: delivery.nextAt?.toISOString() ?? null,
  delivered_event: delivery.delivered,
  waiting: delivery.waiting,
  ...(tries && { tries: tries.map(encodeTry) }),
});

const encodeTry = ({ at, ms, status, error, exchange }: PushTry): z.infer<typeof webhookTry> => ({
  at: at.toISOString(),
  duration_ms: ms,
  status,
  error,
  request: exchange
    ? {
        method: 'POST',
        event: exchange.sequence,
        headers: exchange.headers,
        body: exchange.body,
        bytes: exchange.bytes,
      }
    : null,
  answer: exchange?.answer ?? null,
});

function deliveryState({ state, failingSince, nextAt, status }: WebhookDelivery) {
  if (state === 'dead') return 'given-up';
  if (state === 'ended') return 'ended';
  if (failingSince) return 'retrying';
  if (nextAt) return 'waiting';
  return status === null ? 'idle' : 'delivered';
}

export const encodeWebhookTest = ({ durationMs, ...test }: ReceiverReply): z.infer<typeof webhookTest> => ({
  ...test,
  duration_ms: durationMs,
});
