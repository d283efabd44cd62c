import { LIMIT_NAMES, type LimitName } from '@baton/config';
import type { Tenant, TenantUsage } from '@baton/tasks';
import { z } from 'zod';
import { encodeTime, timeSchema } from '../openapi/schemas.js';
import { nextCursor } from '../rest/paging.js';

export const tenantAnswer = z
  .object({
    id: z.string(),
    slug: z.string(),
    default_agent: z.string().describe('Slug of the agent that answers where none is named'),
    index_model: z.string().nullable().describe('Null: the model of the installation'),
    index_model_url: z.string().nullable(),
    egress_allow: z.array(z.string()).describe('The only destinations that its agents may call; empty = all'),
    egress_deny: z.array(z.string()).describe('Destinations that its agents may not call'),
    suspended_at: timeSchema.nullable(),
    suspended_reason: z.string().nullable(),
    deleting_at: timeSchema.nullable(),
    created_at: timeSchema,
    stored_bytes: z
      .int()
      .nullable()
      .optional()
      .describe('Bytes that it keeps in the database. In lists only. Null: they are not counted yet'),
  })
  .meta({ id: 'Tenant' });
export const tenantList = z.object({ tenants: z.array(tenantAnswer), next_cursor: nextCursor });
export const suspendedTenant = z.object({ tenant: tenantAnswer, canceled_tasks: z.int() });
export const deletedTenant = z.object({
  id: z.string(),
  slug: z.string(),
  canceled_tasks: z.int(),
  rows: z.record(z.string(), z.int()).describe('Deleted rows by table'),
});

const limitInForce = z
  .object({
    value: z.number().nullable().describe('Null: no limit'),
    from: z.enum(['set', 'default', 'none']),
    countedTasks: z
      .int()
      .optional()
      .describe('Tasks that are counted so far. Until all are, it refuses nothing'),
  })
  .meta({ id: 'Limit' });
export const limitsAnswer = z.object({
  limits: z
    .object(
      Object.fromEntries(LIMIT_NAMES.map((name) => [name, limitInForce])) as Record<
        LimitName,
        typeof limitInForce
      >,
    )
    .meta({ id: 'Limits' }),
});

export const tenantUsage = z.object({
  stored_bytes: z.int().nullable().describe('Null: they are not counted yet'),
  queued_runs: z.int(),
  running_runs: z.int(),
  suspended_runs: z.int().describe('Runs that wait for other tasks'),
  dead_letters: z.int(),
  days: z.array(
    z.object({ day: z.string().meta({ format: 'date' }), input_tokens: z.int(), output_tokens: z.int() }),
  ),
});

export const importedTenant = z.object({
  id: z.string(),
  slug: z.string(),
  records: z.record(z.string(), z.int()).describe('Rows by the kind of their lines'),
  secrets: z.array(z.string()).describe('Secrets that the tenant had, and this one does not have yet'),
  paused_schedules: z.int(),
});

export const encodeTenant = (tenant: Tenant): z.infer<typeof tenantAnswer> => ({
  id: tenant.id,
  slug: tenant.slug,
  default_agent: tenant.defaultAgent,
  index_model: tenant.indexModel,
  index_model_url: tenant.indexModelUrl,
  egress_allow: tenant.egressAllow,
  egress_deny: tenant.egressDeny,
  suspended_at: encodeTime(tenant.suspendedAt),
  suspended_reason: tenant.suspendedReason,
  deleting_at: encodeTime(tenant.deletingAt),
  created_at: tenant.createdAt.toISOString(),
  ...(tenant.storedBytes !== undefined && { stored_bytes: tenant.storedBytes }),
});

export const encodeUsage = (usage: TenantUsage): z.infer<typeof tenantUsage> => ({
  stored_bytes: usage.storedBytes,
  queued_runs: usage.queuedRuns,
  running_runs: usage.runningRuns,
  suspended_runs: usage.suspendedRuns,
  dead_letters: usage.deadLetters,
  days: usage.days.map(({ day, inputTokens, outputTokens }) => ({
    day,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
  })),
});
