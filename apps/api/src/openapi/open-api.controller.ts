import { Controller, Get, Req, Res } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '../access/route-access.js';
import { PublicUrl } from '../http/public-url.js';
import { buildDocument, type DocumentInfo } from './document.js';
import { LazyDocument, openApi, routesAt } from './lazy-document.js';
import { Describe } from './route.js';

const PUBLIC: Omit<DocumentInfo, 'server'> = {
  title: 'Baton',
  description:
    "A tenant's tasks, agents, secrets, schedules, tokens and audit log. Agents are called over A2A, which is not part of this " +
    'document. Clients ignore members of answers that they do not know.',
  token: 'A token of the tenant, or an access token of its OpenID provider',
};

/** The API of tenants as OpenAPI. It is the same for all callers and names nothing of a tenant's. */
@Public()
@Controller('v1/openapi.json')
export class OpenApiController {
  private readonly document: LazyDocument;

  constructor(discovery: DiscoveryService, publicUrl: PublicUrl) {
    this.document = new LazyDocument(() =>
      buildDocument(routesAt(discovery, false), { ...PUBLIC, server: publicUrl.value }),
    );
  }

  @Describe({ id: 'getOpenApi', summary: 'This document', answer: openApi })
  @Get()
  async get(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.document.send(request, reply);
  }
}
