import { parseWholeDocument } from '@baton/agents';
import { AgentDirectory, type Author, Catalog, TenantSettings, WorkerWatch } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { BodyReader } from '../http/body-reader.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import {
  agentAnswer,
  agentBody,
  agentList,
  agentWrite,
  encodeAgent,
  encodeAgentSummary,
  encodeLoadFailures,
  encodeWrite,
} from '../rest/agents/agent-json.js';
import { CURSOR, LIMIT, oneMore, pageOf, readPage } from '../rest/paging.js';

/** The agents of a tenant, for operators: what tenants do at `/v1/agents` without a token of theirs. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants/:tenant/agents')
export class AdminAgentsController {
  constructor(
    private readonly settings: TenantSettings,
    private readonly catalog: Catalog,
    private readonly directory: AgentDirectory,
    private readonly bodies: BodyReader,
    private readonly workers: WorkerWatch,
  ) {}

  @Describe({
    id: 'listAgents',
    summary: 'Lists the agents that a tenant can call, by slug',
    answer: agentList,
  })
  @OperatorRoles('read')
  @Get()
  async list(
    @Param('tenant') slug: string,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof agentList>> {
    const { id: tenantId } = await this.settings.find(slug);
    const asked = readPage(limit, cursor);
    const [found, failures] = await Promise.all([
      this.catalog.page({ tenantId }, oneMore(asked)),
      asked.after === undefined ? this.workers.loadFailures({ tenantId }) : [],
    ]);
    const { page, nextCursor } = pageOf(found, (agent) => agent.slug, asked);
    return { agents: page.map(encodeAgentSummary), ...encodeLoadFailures(failures), next_cursor: nextCursor };
  }

  @Describe({
    id: 'createAgent',
    summary: 'Adds an agent to the catalog of a tenant',
    body: agentBody,
    answer: agentWrite,
  })
  @Post()
  @HttpCode(201)
  async create(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof agentWrite>> {
    const document = parseWholeDocument(await this.bodies.ofOperator(request));
    const author = await this.authorFor(slug, request);
    const write = await this.catalog.create(author, document);
    this.directory.forget(author.tenantId);
    return encodeWrite(write, false);
  }

  @Describe({
    id: 'deleteAgent',
    summary: 'Takes an agent out of the catalog of a tenant, and answers with it',
    answer: agentAnswer,
  })
  @Delete(':agent')
  async remove(
    @Param('tenant') slug: string,
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof agentAnswer>> {
    const author = await this.authorFor(slug, request);
    const agent = await this.catalog.remove(author, name);
    this.directory.forget(author.tenantId);
    return encodeAgent(agent);
  }

  private async authorFor(slug: string, request: FastifyRequest): Promise<Author> {
    const { id: tenantId } = await this.settings.find(slug);
    return { tenantId, by: 'operator', actor: operatorActorOf(request) };
  }
}
