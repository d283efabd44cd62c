import { hasScope, ProtocolError } from '@baton/a2a';
import { namedCallees, parseWholeDocument, refusedCommands } from '@baton/agents';
import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import {
  AgentDirectory,
  type Author,
  Catalog,
  type CatalogWrite,
  VersionsInUse,
  ToolChecks,
  WorkerWatch,
  type CatalogWriteOptions,
} from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Put, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { BodyReader } from '../../http/body-reader.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT, oneMore, pageOf, readPage } from '../paging.js';
import {
  agentAnswer,
  agentBody,
  agentList,
  agentPatch,
  agentWrite,
  authorOf,
  CHECK_TOOLS,
  DRY_RUN,
  encodeAgent,
  encodeAgentSummary,
  encodeLoadFailures,
  encodeMissingSecrets,
  encodeOpenVersions,
  encodeWrite,
  etagOf,
  openVersions,
  writeOptions,
} from './agent-json.js';

type WrittenAgent = z.infer<typeof agentWrite>;
type AgentWarning = NonNullable<WrittenAgent['warnings']>[number];

const PATCH_TYPES = ['application/merge-patch+json', 'application/json'];

/** A tenant's agents: lists all of them; creates, changes and deletes its own. */
@Controller('v1/agents')
export class AgentsController {
  constructor(
    private readonly catalog: Catalog,
    private readonly directory: AgentDirectory,
    private readonly bodies: BodyReader,
    private readonly environment: Environment,
    private readonly workers: WorkerWatch,
    private readonly tools: ToolChecks,
    private readonly versionsInUse: VersionsInUse,
  ) {}

  @Describe({ id: 'listAgents', summary: 'Lists the agents by slug, without definitions', answer: agentList })
  @RequireScope('agents:read', 'agents:write')
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof agentList>> {
    const asked = readPage(limit, cursor);
    const caller = callerOf(request);
    // A caller that may write agents may read why they do not load. The text is what a module of the operator has thrown.
    const looks = asked.after === undefined && hasScope(['agents:write'], caller.scopes);
    const [found, failures] = await Promise.all([
      this.catalog.page(caller, oneMore(asked)),
      looks ? this.workers.loadFailures(caller) : [],
    ]);
    const { page, nextCursor } = pageOf(found, ({ slug }) => slug, asked);
    return { agents: page.map(encodeAgentSummary), ...encodeLoadFailures(failures), next_cursor: nextCursor };
  }

  @Describe({ id: 'getAgent', summary: 'Shows an agent', answer: agentAnswer, answerHeaders: ['ETag'] })
  @RequireScope('agents:read', 'agents:write')
  @Get(':agent')
  async get(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof agentAnswer>> {
    const caller = callerOf(request);
    const agent = await this.catalog.get(caller, name);
    if (!('createdAt' in agent)) return encodeAgent(agent);
    reply.header('etag', etagOf(agent));
    const missing = await this.catalog.missingSecrets(caller.tenantId, agent.definition);
    return { ...encodeAgent(agent), ...encodeMissingSecrets(missing) };
  }

  @Describe({
    id: 'listOpenVersions',
    summary: 'Counts the open tasks of an agent by the version with which they have begun',
    answer: openVersions,
  })
  @RequireScope('agents:read', 'agents:write')
  @Get(':agent/open-versions')
  async openVersions(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof openVersions>> {
    const { agent, versions } = await this.versionsInUse.count(callerOf(request), name);
    return encodeOpenVersions(agent, versions);
  }

  @Describe({
    id: 'createAgent',
    summary: 'Creates an agent. 201, or 200 for a dry run',
    body: agentBody,
    answer: agentWrite,
    statuses: [200, 201],
    requestHeaders: ['If-Match', 'If-None-Match'],
    answerHeaders: ['ETag', 'Location'],
  })
  @RequireScope('agents:write')
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('dryRun', DRY_RUN) dryRun: boolean,
    @Query('checkTools', CHECK_TOOLS) checksTools: boolean,
  ): Promise<WrittenAgent> {
    return this.write(request, reply, { dryRun, checksTools }, async (author, options) => {
      const document = parseWholeDocument(await this.bodies.json(request));
      return this.catalog.create(author, document, options);
    });
  }

  @Describe({
    id: 'putAgent',
    summary: 'Creates or replaces an agent. 201 if it is new, else 200',
    body: agentBody,
    answer: agentWrite,
    statuses: [200, 201],
    requestHeaders: ['If-Match', 'If-None-Match'],
    answerHeaders: ['ETag', 'Location'],
  })
  @RequireScope('agents:write')
  @Put(':agent')
  async put(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('dryRun', DRY_RUN) dryRun: boolean,
    @Query('checkTools', CHECK_TOOLS) checksTools: boolean,
  ): Promise<WrittenAgent> {
    return this.write(request, reply, { dryRun, checksTools }, async (author, options) => {
      const document = parseWholeDocument(await this.bodies.json(request));
      return this.catalog.put(author, name, document, options);
    });
  }

  @Describe({
    id: 'patchAgent',
    summary: 'Changes an agent by a JSON merge patch (RFC 7396) of its document',
    body: agentPatch,
    bodyTypes: PATCH_TYPES,
    answer: agentWrite,
    requestHeaders: ['If-Match', 'If-None-Match'],
    answerHeaders: ['ETag'],
  })
  @RequireScope('agents:write')
  @Patch(':agent')
  async patch(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('dryRun', DRY_RUN) dryRun: boolean,
    @Query('checkTools', CHECK_TOOLS) checksTools: boolean,
  ): Promise<WrittenAgent> {
    return this.write(request, reply, { dryRun, checksTools }, async (author, options) => {
      const patch = await this.bodies.json(request, PATCH_TYPES);
      return this.catalog.patch(author, name, patch, options);
    });
  }

  @Describe({ id: 'deleteAgent', summary: 'Deletes an agent', requestHeaders: ['If-Match', 'If-None-Match'] })
  @RequireScope('agents:write')
  @Delete(':agent')
  @HttpCode(204)
  async remove(@Param('agent') name: string, @Req() request: FastifyRequest): Promise<void> {
    const author = authorOf(request);
    await this.catalog.remove(author, name, writeOptions(request, false));
    this.directory.forget(author.tenantId);
  }

  /** Writes an agent and answers the outcome: 201 if it is new, else 200. */
  private async write(
    request: FastifyRequest,
    reply: FastifyReply,
    { dryRun, checksTools }: { dryRun: boolean; checksTools: boolean },
    act: (author: Author, options: Required<CatalogWriteOptions>) => Promise<CatalogWrite>,
  ): Promise<WrittenAgent> {
    if (checksTools && !dryRun)
      throw ProtocolError.invalidParams('checkTools', 'needs dryRun=true: write the agent after the check');
    const author = authorOf(request);
    const write = await act(author, writeOptions(request, dryRun));
    const { outcome, entry } = write;
    const unchecked = checksTools ? await this.tools.check(author.tenantId, entry.definition) : [];
    this.directory.forget(author.tenantId);
    const isNew = outcome === 'created' && !dryRun;
    reply.status(isNew ? 201 : 200);
    if (isNew) reply.header('location', `/v1/agents/${entry.slug}`);
    if (!dryRun && entry.id !== undefined)
      reply.header('etag', etagOf({ id: entry.id, version: entry.version }));
    const written = encodeWrite(write, dryRun, await this.warningsOf(author.tenantId, entry));
    return { ...written, ...(unchecked.length > 0 && { unchecked_tools: unchecked }) };
  }

  /** Settings that are accepted but will fail when the agent runs: unknown agents, missing secrets, commands that are not allowed. */
  private async warningsOf(
    tenantId: string,
    { definition }: Pick<CatalogWrite['entry'], 'definition'>,
  ): Promise<AgentWarning[]> {
    const callees = await Promise.all(
      namedCallees(definition).map(async ({ field, agent }) => {
        const found = await this.directory.find(tenantId, agent);
        return found ? [] : [{ field, agent, description: `there is no agent "${agent}"` }];
      }),
    );
    const secrets = await this.catalog.missingSecrets(tenantId, definition);
    return [
      ...callees.flat(),
      ...secrets.map(({ field, secret }) => ({
        field,
        description: `there is no secret "${secret}": set it before the agent runs`,
      })),
      ...refusedCommands(definition, this.environment.mcpStdioAllow),
    ];
  }
}
