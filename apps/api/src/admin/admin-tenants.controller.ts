import { isMediaType, parseFields, ProtocolError } from '@baton/a2a';
import { LIMIT_NAMES, type LimitName, type LimitOverrides, limitRule } from '@baton/config';
import { PlatformService, TenantLifecycle, TenantSettings } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { BodyReader } from '../http/body-reader.js';
import { OnManagementPort } from '../management/management-port.js';
import { flagQuery, textQuery } from '../openapi/query-pipe.js';
import { Describe } from '../openapi/route.js';
import { CURSOR, LIMIT, oneMore, pageOf, readPage } from '../rest/paging.js';
import {
  deletedTenant,
  encodeTenant,
  encodeUsage,
  importedTenant,
  limitsAnswer,
  suspendedTenant,
  tenantAnswer,
  tenantList,
  tenantUsage,
} from './tenant-json.js';

const NDJSON = 'application/x-ndjson';

type TenantAnswer = z.infer<typeof tenantAnswer>;

const newTenantBody = z.strictObject({ slug: z.string() });
const changeTenantBody = z
  .strictObject({
    default_agent: z.string(),
    index_model: z.string(),
    index_model_url: z.string(),
    egress_allow: z.array(z.string()),
    egress_deny: z.array(z.string()),
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

const CONFIRM = textQuery('The slug of the tenant again', { isRequired: true });
const SKIP_RUNNING = flagQuery('Leave out tasks that have not ended');

/** Tenants: create, change, suspend, resume, delete, export, import. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants')
export class AdminTenantsController {
  constructor(
    private readonly settings: TenantSettings,
    private readonly lifecycle: TenantLifecycle,
    private readonly bodies: BodyReader,
    private readonly platform: PlatformService,
  ) {}

  @Describe({ id: 'listTenants', summary: 'Lists the tenants by slug', answer: tenantList })
  @OperatorRoles('read', 'support')
  @Get()
  async list(
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof tenantList>> {
    const asked = readPage(limit, cursor);
    const found = await this.settings.list(oneMore(asked));
    const { page, nextCursor } = pageOf(found, ({ slug }) => slug, asked);
    return { tenants: page.map(encodeTenant), next_cursor: nextCursor };
  }

  @Describe({ id: 'createTenant', summary: 'Creates a tenant', body: newTenantBody, answer: tenantAnswer })
  @Post()
  async create(@Req() request: FastifyRequest): Promise<TenantAnswer> {
    const { slug } = parseFields(newTenantBody, await this.bodies.ofOperator(request), '', 'the body');
    return encodeTenant(await this.settings.create(slug, operatorActorOf(request)));
  }

  @Describe({ id: 'getTenant', summary: 'Shows a tenant', answer: tenantAnswer })
  @OperatorRoles('read', 'support')
  @Get(':tenant')
  async get(@Param('tenant') slug: string): Promise<TenantAnswer> {
    return encodeTenant(await this.settings.find(slug));
  }

  @Describe({
    id: 'changeTenant',
    summary: 'Changes the given settings of a tenant',
    body: changeTenantBody,
    answer: tenantAnswer,
  })
  @Patch(':tenant')
  async change(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<TenantAnswer> {
    const body = parseFields(changeTenantBody, await this.bodies.ofOperator(request), '', 'the body');
    const change = {
      defaultAgent: body.default_agent,
      indexModel: body.index_model,
      indexModelUrl: body.index_model_url,
      egressAllow: body.egress_allow,
      egressDeny: body.egress_deny,
    };
    const given = Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
    return encodeTenant(await this.settings.change(slug, given, operatorActorOf(request)));
  }

  @Describe({
    id: 'suspendTenant',
    summary: 'Suspends a tenant. With `stop`, it answers when the runs are stopped',
    body: suspendBody,
    answer: suspendedTenant,
  })
  @OperatorRoles('support')
  @Post(':tenant/suspend')
  @HttpCode(200)
  async suspend(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof suspendedTenant>> {
    const { reason, stop } = parseFields(suspendBody, await this.bodies.ofOperator(request), '', 'the body');
    const options = { ...(reason !== undefined && { reason }), stop };
    const { tenant, canceledTasks } = await this.lifecycle.suspend(slug, options, operatorActorOf(request));
    return { tenant: encodeTenant(tenant), canceled_tasks: canceledTasks };
  }

  @Describe({ id: 'resumeTenant', summary: 'Ends the suspension of a tenant', answer: tenantAnswer })
  @OperatorRoles('support')
  @Post(':tenant/resume')
  @HttpCode(200)
  async resume(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<TenantAnswer> {
    return encodeTenant(await this.lifecycle.resume(slug, operatorActorOf(request)));
  }

  @Describe({
    id: 'deleteTenant',
    summary:
      'Deletes a tenant, and answers when everything is deleted. It continues if the caller disconnects',
    answer: deletedTenant,
  })
  @Delete(':tenant')
  async delete(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
    @Query('confirm', CONFIRM) confirm: string | undefined,
  ): Promise<z.infer<typeof deletedTenant>> {
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

  @Describe({ id: 'getTenantLimits', summary: 'Shows the limits of a tenant', answer: limitsAnswer })
  @OperatorRoles('read', 'support')
  @Get(':tenant/limits')
  async limits(@Param('tenant') slug: string): Promise<z.infer<typeof limitsAnswer>> {
    return { limits: await this.settings.limits(slug) };
  }

  @Describe({
    id: 'changeTenantLimits',
    summary: 'Changes the given limits of a tenant: a number, null for none, or `default`',
    body: limitsBody,
    answer: limitsAnswer,
  })
  @Patch(':tenant/limits')
  async changeLimits(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof limitsAnswer>> {
    const body = parseFields(limitsBody, await this.bodies.ofOperator(request), '', 'the body');
    const entries = Object.entries(body) as [LimitName, number | null | 'default'][];
    const values = Object.fromEntries(entries.filter(([, value]) => value !== 'default')) as LimitOverrides;
    const defaults = entries.flatMap(([name, value]) => (value === 'default' ? [name] : []));
    return { limits: await this.settings.changeLimits(slug, values, defaults, operatorActorOf(request)) };
  }

  @Describe({
    id: 'getTenantUsage',
    summary: 'Shows what a tenant uses now, and what it has used of models in the last 31 days',
    answer: tenantUsage,
  })
  @OperatorRoles('read', 'support')
  @Get(':tenant/usage')
  async usage(@Param('tenant') slug: string): Promise<z.infer<typeof tenantUsage>> {
    return encodeUsage(await this.settings.usage(slug));
  }

  @Describe({
    id: 'exportTenant',
    summary: 'Exports a tenant as NDJSON. Without a last line of the kind `end` it is not complete',
    answer: z.string(),
    answerTypes: [NDJSON],
  })
  @OperatorRoles('read')
  @Get(':tenant/export')
  async export(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query('skip_running', SKIP_RUNNING) skipRunning: boolean,
  ): Promise<void> {
    const out = await this.platform.export(slug, { skipRunning }, operatorActorOf(request));
    await reply.header('content-type', NDJSON).send(out);
  }

  @Describe({
    id: 'importTenant',
    summary: 'Makes a tenant of that slug from an export',
    body: z.string(),
    bodyTypes: [NDJSON],
    answer: importedTenant,
  })
  @Post(':tenant/import')
  async import(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof importedTenant>> {
    if (!isMediaType(request.headers['content-type'], NDJSON)) {
      throw new ProtocolError('media-type', `send the export of a tenant as ${NDJSON}`);
    }
    const imported = await this.platform.import(slug, request.raw, operatorActorOf(request));
    const { id, records, secrets, pausedSchedules } = imported;
    return { id, slug, records, secrets, paused_schedules: pausedSchedules };
  }
}
