import { parseFields } from '@baton/a2a';
import { BoundHosts, type HostBinding } from '@baton/tasks';
import { Controller, Delete, Get, Param, Put, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { BodyReader } from '../http/body-reader.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { TENANT } from './admin-platform.controller.js';

const hostBody = z.strictObject({
  tenant: z.string(),
  agent: z.string(),
  public: z.boolean().default(false),
});
const hostAnswer = z
  .object({
    host: z.string(),
    tenant_id: z.string(),
    agent: z.string().describe('Slug of the agent'),
    public: z.boolean().describe('Open to callers without a token'),
  })
  .meta({ id: 'Host' });
const tenantHost = hostAnswer
  .extend({ tenant: z.string().describe('Slug of the tenant') })
  .meta({ id: 'TenantHost' });
const hostList = z.object({ hosts: z.array(tenantHost) });

/** Host names and the agents that they lead to. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/hosts')
export class AdminHostsController {
  constructor(
    private readonly hosts: BoundHosts,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({ id: 'listHosts', summary: 'Lists the bound host names', answer: hostList })
  @OperatorRoles('read', 'support')
  @Get()
  async list(@Query('tenant', TENANT) slug: string | undefined): Promise<z.infer<typeof hostList>> {
    const bound = await this.hosts.list(slug);
    return { hosts: bound.map((host) => ({ ...encodeHost(host), tenant: host.tenant })) };
  }

  @Describe({
    id: 'bindHost',
    summary: 'Binds a host name to an agent of a tenant, or changes its binding',
    body: hostBody,
    answer: tenantHost,
  })
  @Put(':host')
  async bind(
    @Param('host') host: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof tenantHost>> {
    const body = parseFields(hostBody, await this.bodies.ofOperator(request), '', 'the body');
    const bound = await this.hosts.bind(host, body, operatorActorOf(request));
    return { ...encodeHost(bound), tenant: bound.tenant };
  }

  @Describe({
    id: 'unbindHost',
    summary: 'Unbinds a host name, and answers with the binding there was',
    answer: hostAnswer,
  })
  @Delete(':host')
  async unbind(
    @Param('host') host: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof hostAnswer>> {
    return encodeHost(await this.hosts.unbind(host, operatorActorOf(request)));
  }
}

const encodeHost = ({ host, agent, tenantId, public: open }: HostBinding): z.infer<typeof hostAnswer> => ({
  host,
  tenant_id: tenantId,
  agent,
  public: open,
});
