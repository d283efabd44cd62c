import { parseAgentDocument } from '@baton/a2a';
import { agentSchema } from '@baton/agents';
import { callerOf } from '@baton/identity';
import { AgentDirectory, type Author, Catalog, type CatalogWrite, type WriteOptions } from '@baton/tasks';
import {
  Controller,
  Delete,
  Get,
  Header,
  HttpCode,
  Param,
  Patch,
  Post,
  Put,
  Query,
  Req,
  Res,
} from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public, RequireScope } from '../../access/access.guard.js';
import { BodyReader } from '../../http/body.js';
import {
  authorOf,
  encodeAgent,
  encodeAgentSummary,
  encodeWrite,
  etagOf,
  writeOptions,
} from './agent-json.js';
import { pageOf, readLimit } from '../query.js';

const PATCH_TYPES = ['application/merge-patch+json', 'application/json'];

/** A tenant's agents: lists all of them; creates, changes and deletes its own. */
@Controller('v1/agents')
export class AgentsController {
  constructor(
    private readonly catalog: Catalog,
    private readonly directory: AgentDirectory,
    private readonly bodies: BodyReader,
  ) {}

  /** By slug: `{agents, next_cursor}`; the cursor is null on the last page. */
  @RequireScope('agents:read', 'agents:write')
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limit?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Record<string, unknown>> {
    const all = await this.catalog.list(callerOf(request));
    const { page, nextCursor } = pageOf(all, ({ slug }) => slug, { limit: readLimit(limit), cursor });
    return { agents: page.map(encodeAgentSummary), next_cursor: nextCursor };
  }

  @RequireScope('agents:read', 'agents:write')
  @Get(':agent')
  async get(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Record<string, unknown>> {
    const agent = await this.catalog.get(callerOf(request), name);
    if ('createdAt' in agent) reply.header('etag', etagOf(agent));
    return encodeAgent(agent);
  }

  /** 201 with the new agent. */
  @RequireScope('agents:write')
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('dryRun') dryRun?: string,
  ): Promise<Record<string, unknown>> {
    return this.write(request, reply, dryRun, async (author, options) => {
      const document = parseAgentDocument(await this.bodies.json(request));
      return this.catalog.create(author, document, options);
    });
  }

  /** 201 or 200: creates or replaces the agent. */
  @RequireScope('agents:write')
  @Put(':agent')
  async put(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('dryRun') dryRun?: string,
  ): Promise<Record<string, unknown>> {
    return this.write(request, reply, dryRun, async (author, options) => {
      const document = parseAgentDocument(await this.bodies.json(request));
      return this.catalog.put(author, name, document, options);
    });
  }

  /** 200; the body is a JSON merge patch (RFC 7396). */
  @RequireScope('agents:write')
  @Patch(':agent')
  async patch(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('dryRun') dryRun?: string,
  ): Promise<Record<string, unknown>> {
    return this.write(request, reply, dryRun, async (author, options) => {
      const patch = await this.bodies.json(request, PATCH_TYPES);
      return this.catalog.patch(author, name, patch, options);
    });
  }

  @RequireScope('agents:write')
  @Delete(':agent')
  @HttpCode(204)
  async remove(@Param('agent') name: string, @Req() request: FastifyRequest): Promise<void> {
    const author = authorOf(request);
    await this.catalog.remove(author, name, writeOptions(request, undefined));
    this.directory.forget(author.tenantId);
  }

  /** Writes an agent and answers the outcome: 201 if it is new, else 200. */
  private async write(
    request: FastifyRequest,
    reply: FastifyReply,
    dryRunText: string | undefined,
    act: (author: Author, options: Required<WriteOptions>) => Promise<CatalogWrite>,
  ): Promise<Record<string, unknown>> {
    const author = authorOf(request);
    const options = writeOptions(request, dryRunText);
    const { dryRun } = options;
    const write = await act(author, options);
    const { outcome, entry } = write;
    this.directory.forget(author.tenantId);
    const isNew = outcome === 'created' && !dryRun;
    reply.status(isNew ? 201 : 200);
    if (isNew) reply.header('location', `/v1/agents/${entry.slug}`);
    if (!dryRun && entry.id !== undefined)
      reply.header('etag', etagOf({ id: entry.id, version: entry.version }));
    return encodeWrite(write, dryRun);
  }
}

/** The JSON schema of agent files, for editors and programs. */
@Public()
@Controller(['/agent.schema.json', '/v1/agent.schema.json'])
export class AgentSchemaController {
  private text: string | undefined;

  @Get()
  @Header('content-type', 'application/schema+json')
  @Header('cache-control', 'public, max-age=300')
  schema(): string {
    this.text ??= JSON.stringify(agentSchema());
    return this.text;
  }
}
