import { ProtocolError } from '@baton/a2a';
import { Controller, Get, Header, Param, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { Counted, Public } from '../access/route-access.js';
import { AuthorizationServers } from '../access/authorization-servers.js';

/** Where clients of MCP sign in (RFC 9728): at the path of each resource, and at the root for clients that read only that. */
@Public()
@Counted()
@Controller('.well-known/oauth-protected-resource')
export class ProtectedResourceController {
  constructor(private readonly servers: AuthorizationServers) {}

  @Get()
  @Header('cache-control', 'private, max-age=60')
  root(@Req() request: FastifyRequest): Promise<object> {
    return this.metadata('', request);
  }

  @Get('mcp')
  @Header('cache-control', 'private, max-age=60')
  all(@Req() request: FastifyRequest): Promise<object> {
    return this.metadata('/mcp', request);
  }

  @Get('agents/:agent/mcp')
  @Header('cache-control', 'private, max-age=60')
  one(@Param('agent') agent: string, @Req() request: FastifyRequest): Promise<object> {
    return this.metadata(`/agents/${encodeURIComponent(agent)}/mcp`, request);
  }

  private async metadata(path: string, request: FastifyRequest): Promise<object> {
    const metadata = await this.servers.metadata(path, request);
    if (metadata) return metadata;
    throw new ProtocolError('not-found', 'this host has no authorization servers: use a token of Baton');
  }
}
