import { parseFields } from '@baton/a2a';
import { parseWholeDocument } from '@baton/agents';
import { AgentDirectory, Catalog } from '@baton/tasks';
import { Controller, Delete, HttpCode, Param, Post, Put, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { BodyReader } from '../../http/body-reader.js';
import { Describe } from '../../openapi/route.js';
import {
  agentAnswer,
  authorOf,
  encodeAgent,
  nextBody,
  WITHDRAWN_SHARE,
  WITHDRAWN_VERSION,
} from './agent-json.js';

/** The version of an agent that gets a share of new tasks. */
@Controller('v1/agents/:agent/next')
export class AgentNextController {
  constructor(
    private readonly catalog: Catalog,
    private readonly directory: AgentDirectory,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({
    id: 'setNextVersion',
    summary: 'Gives a version the label `next`: a share of new tasks begins with it',
    body: nextBody,
    answer: agentAnswer,
  })
  @RequireScope('agents:write')
  @Put()
  async set(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof agentAnswer>> {
    const author = authorOf(request);
    const { agent, ...wanted } = parseFields(nextBody, await this.bodies.json(request), '', 'the body');
    const document = agent && parseWholeDocument(agent);
    const entry = await this.catalog.setNext(author, name, { ...wanted, document });
    this.directory.forget(author.tenantId);
    return encodeAgent(entry);
  }

  @Describe({
    id: 'promoteNextVersion',
    summary: 'Makes a new version of the agent with the contents of the one that has the label `next`',
    answer: agentAnswer,
  })
  @RequireScope('agents:write')
  @Post('promote')
  @HttpCode(200)
  async promote(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof agentAnswer>> {
    const author = authorOf(request);
    const entry = await this.catalog.promoteNext(author, name);
    this.directory.forget(author.tenantId);
    return encodeAgent(entry);
  }

  @Describe({
    id: 'withdrawNextVersion',
    summary: 'Takes the label `next` away, or the mark that it was lost',
  })
  @RequireScope('agents:write')
  @Delete()
  @HttpCode(204)
  async withdraw(
    @Param('agent') name: string,
    @Query('version', WITHDRAWN_VERSION) version: number | undefined,
    @Query('share', WITHDRAWN_SHARE) share: number | undefined,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    const author = authorOf(request);
    await this.catalog.withdrawNext(author, name, { version, share });
    this.directory.forget(author.tenantId);
  }
}
