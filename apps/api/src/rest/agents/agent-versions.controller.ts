import { ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { AgentDirectory, Catalog } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT, cutPage } from '../paging.js';
import {
  agentWrite,
  authorOf,
  DRY_RUN,
  encodeVersion,
  encodeVersionSummary,
  encodeWrite,
  etagOf,
  versionAnswer,
  versionList,
  writeOptions,
} from './agent-json.js';

/** The versions of an agent. Every write makes one. */
@Controller('v1/agents/:agent/versions')
export class AgentVersionsController {
  constructor(
    private readonly catalog: Catalog,
    private readonly directory: AgentDirectory,
  ) {}

  @Describe({
    id: 'listAgentVersions',
    summary: 'Lists the versions of an agent, the newest first',
    answer: versionList,
  })
  @RequireScope('agents:read', 'agents:write')
  @Get()
  async list(
    @Param('agent') name: string,
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof versionList>> {
    const before = cursor ? readVersion('cursor', cursor) : undefined;
    const found = await this.catalog.versions(callerOf(request), name, limit + 1, before);
    const { page, last } = cutPage(found, limit);
    return { versions: page.map(encodeVersionSummary), next_cursor: last ? String(last.version) : null };
  }

  @Describe({ id: 'getAgentVersion', summary: 'Shows a version of an agent', answer: versionAnswer })
  @RequireScope('agents:read', 'agents:write')
  @Get(':version')
  async get(
    @Param('agent') name: string,
    @Param('version') version: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof versionAnswer>> {
    const number = readVersion('version', version);
    return encodeVersion(await this.catalog.version(callerOf(request), name, number));
  }

  @Describe({
    id: 'eraseAgentVersion',
    summary: 'Erases the contents of an earlier version. It stays in the list, with `erased_at`',
  })
  @RequireScope('agents:write')
  @Delete(':version')
  @HttpCode(204)
  async erase(
    @Param('agent') name: string,
    @Param('version') version: string,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    await this.catalog.eraseVersion(authorOf(request), name, readVersion('version', version));
  }

  @Describe({
    id: 'restoreAgentVersion',
    summary: 'Makes a new version of the agent with the contents of that version',
    answer: agentWrite,
    requestHeaders: ['If-Match', 'If-None-Match'],
    answerHeaders: ['ETag'],
  })
  @RequireScope('agents:write')
  @Post(':version/restore')
  @HttpCode(200)
  async restore(
    @Param('agent') name: string,
    @Param('version') version: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('dryRun', DRY_RUN) dryRun: boolean,
  ): Promise<z.infer<typeof agentWrite>> {
    const author = authorOf(request);
    const options = writeOptions(request, dryRun);
    const write = await this.catalog.restore(author, name, readVersion('version', version), options);
    this.directory.forget(author.tenantId);
    const { id, version: newest } = write.entry;
    if (!dryRun && id !== undefined) reply.header('etag', etagOf({ id, version: newest }));
    return encodeWrite(write, dryRun);
  }
}

function readVersion(field: string, text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw ProtocolError.invalidParams(field, 'must be the number of a version: 1, 2, 3 …');
}
