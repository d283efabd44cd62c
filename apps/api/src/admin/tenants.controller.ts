import { parseFields, ProtocolError } from '@baton/a2a';
import { LIMIT_NAMES, type LimitName, type LimitOverrides, limitRule } from '@baton/config';
import { OperatorDesk, type Tenant, TenantLifecycle, TenantSettings } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly } from '../access/access.guard.js';
import { BodyReader } from '../http/body.js';
import { OnManagementPort } from '../management/management-port.js';
import { pageOf, readFlag, readLimit } from '../rest/query.js';

type Json = Record<string, unknown>;

const NDJSON = 'application/x-ndjson';

const newTenantBody = z.strictObject({ slug: z.string() });
const changeTenantBody = z
  .strictObject({
    ...{ default_agent: z.string(), index_model: z.string(), index_model_url: z.string() },
    ...{ egress_allow: z.array(z.string()), egress_deny: z.array(z.string()) },
  })
  .partial();
const suspendBody = z.strictObject({
  reason: z.string().min(1).max(200).optional(),
  stop: z.boolean().default(false),
});

/** A number, null for no limit, or `default`. */
const limitBody = (name: LimitName) => {
  const { min, max, fractions, required } = limitRule(name);
  const number = (fractions ? z.number() : z.int()).min(min).max(max);
  return z.union([required ? number : number.nullable(), z.literal('default')]);
};
const limitsBody = z
  .strictObject(
    Object.fromEntries(LIMIT_NAMES.map((name) => [name, limitBody(name)])) as Record<
      LimitName,
      ReturnType<typeof limitBody>
    >,
  )
  .partial();

/** Tenants: create, change, suspend, resume, delete, export, import. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants')
export class AdminTenantsController {
  constructor(
    private readonly settings: TenantSettings,
    private readonly lifecycle: TenantLifecycle,
    private readonly bodies: BodyReader,
    private readonly desk: OperatorDesk,
  ) {}

  /** By slug: `{tenants, next_cursor}`. */
  @Get()
  async list(@Query('limit') limit?: string, @Query('cursor') cursor?: string): Promise<Json> {
    const all = await this.settings.list();
    const { page, nextCursor } = pageOf(all, ({ slug }) => slug, { limit: readLimit(limit), cursor });
    return { tenants: page.map(encodeTenant), next_cursor: nextCursor };
  }

  @Post()
  async create(@Req() request: FastifyRequest): Promise<Json> {
    const { slug } = parseFields(newTenantBody, await this.bodies.ofOperator(request), '', 'the body');
    return encodeTenant(await this.settings.create(slug, operatorActorOf(request)));
  }

  @Get(':tenant')
  async get(@Param('tenant') slug: string): Promise<Json> {
    return encodeTenant(await this.settings.find(slug));
  }

  @Patch(':tenant')
  async change(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<Json> {
    const body = parseFields(changeTenantBody, await this.bodies.ofOperator(request), '', 'the body');
    const change = {
      ...{ defaultAgent: body.default_agent, indexModel: body.index_model },
      ...{ indexModelUrl: body.index_model_url },
      ...{ egressAllow: body.egress_allow, egressDeny: body.egress_deny },
    };
    const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
    return encodeTenant(await this.settings.change(slug, given, operatorActorOf(request)));
  }

  /** `{tenant, canceled_tasks}`. With `stop`, it answers when the runs are stopped. */
  @Post(':tenant/suspend')
  @HttpCode(200)
  async suspend(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<Json> {
    const { reason, stop } = parseFields(suspendBody, await this.bodies.ofOperator(request), '', 'the body');
    const options = { ...(reason !== undefined && { reason }), stop };
    const { tenant, canceledTasks } = await this.lifecycle.suspend(slug, options, operatorActorOf(request));
    return { tenant: encodeTenant(tenant), canceled_tasks: canceledTasks };
  }

  @Post(':tenant/resume')
  @HttpCode(200)
  async resume(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<Json> {
    return encodeTenant(await this.lifecycle.resume(slug, operatorActorOf(request)));
  }

  /** Answers when everything is deleted: `{id, slug, canceled_tasks, rows}`. It goes on if the caller leaves. */
  @Delete(':tenant')
  async delete(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
    @Query('confirm') confirm?: string,
  ): Promise<Json> {
    if (confirm !== slug) {
      throw ProtocolError.invalidParams('confirm', 'must be the slug of the tenant: this cannot be undone');
    }
    const { id, canceledTasks, rows } = await this.lifecycle.delete(
      slug,
      undefined,
      operatorActorOf(request),
    );
    return { id, slug, canceled_tasks: canceledTasks, rows };
  }

  @Get(':tenant/limits')
  async limits(@Param('tenant') slug: string): Promise<Json> {
    return { limits: await this.settings.limits(slug) };
  }

  /** Each limit is a number, null for none, or `default`. Others stay. */
  @Patch(':tenant/limits')
  async changeLimits(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<Json> {
    const body = parseFields(limitsBody, await this.bodies.ofOperator(request), '', 'the body');
    const entries = Object.entries(body) as [LimitName, number | null | 'default'][];
    const values = Object.fromEntries(entries.filter(([, value]) => value !== 'default')) as LimitOverrides;
    const defaults = entries.flatMap(([name, value]) => (value === 'default' ? [name] : []));
    return { limits: await this.settings.changeLimits(slug, values, defaults, operatorActorOf(request)) };
  }

  @Get(':tenant/usage')
  async usage(@Param('tenant') slug: string): Promise<Json> {
    const { storedBytes, queuedRuns, runningRuns, suspendedRuns, deadLetters, days } =
      await this.settings.usage(slug);
    return {
      ...{ stored_bytes: storedBytes, queued_runs: queuedRuns, running_runs: runningRuns },
      ...{ suspended_runs: suspendedRuns, dead_letters: deadLetters },
      days: days.map(({ day, inputTokens, outputTokens }) => ({
        ...{ day, input_tokens: inputTokens, output_tokens: outputTokens },
      })),
    };
  }

  /** NDJSON. A file without its last line, of the kind `end`, is not complete. */
  @Get(':tenant/export')
  async export(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query('skip_running') skip?: string,
  ): Promise<void> {
    const skipRunning = readFlag('skip_running', skip);
    const out = await this.desk.export(slug, { skipRunning }, operatorActorOf(request));
    await reply.header('content-type', NDJSON).send(out);
  }

  /** Makes a tenant of that slug from an export. 201 with `{id, slug, records, secrets, paused_schedules}`. */
  @Post(':tenant/import')
  async import(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<Json> {
    if (request.headers['content-type']?.split(';')[0]?.trim() !== NDJSON) {
      throw new ProtocolError('media-type', `send the export of a tenant as ${NDJSON}`);
    }
    const imported = await this.desk.import(slug, request.raw, operatorActorOf(request));
    const { id, records, secrets, pausedSchedules } = imported;
    return { id, slug, records, secrets, paused_schedules: pausedSchedules };
  }
}

const timeOf = (date: Date | null): string | null => date?.toISOString() ?? null;

const encodeTenant = (tenant: Tenant): Json => ({
  ...{ id: tenant.id, slug: tenant.slug, default_agent: tenant.defaultAgent },
  ...{ index_model: tenant.indexModel, index_model_url: tenant.indexModelUrl },
  ...{ egress_allow: tenant.egressAllow, egress_deny: tenant.egressDeny },
  ...{ suspended_at: timeOf(tenant.suspendedAt), suspended_reason: tenant.suspendedReason },
  ...{ deleting_at: timeOf(tenant.deletingAt), created_at: timeOf(tenant.createdAt) },
});
