import { Controller, Get, Req, Res } from '@nestjs/common';
import { DiscoveryService } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { buildDocument, type DocumentInfo } from './document.js';
import { Describe } from './route.js';
import { LazyDocument, openApi, routesAt } from './lazy-document.js';

const OPERATORS: Omit<DocumentInfo, 'server'> = {
  title: 'Baton for operators',
  description:
    'All tenants, on the management port. Clients ignore members of answers that they do not know.',
  token: 'A token of an operator: `baton operator-tokens create`',
};

/** The API of operators as OpenAPI. The management port has a URL of its own, so it has a document of its own. */
@Public()
@OnManagementPort()
@Controller('v1/admin/openapi.json')
export class AdminOpenApiController {
  private readonly document: LazyDocument;

  constructor(discovery: DiscoveryService) {
    // Operators reach the port by tunnels and proxies: its URL is where they got the document from.
    this.document = new LazyDocument(() =>
      buildDocument(routesAt(discovery, true), { ...OPERATORS, server: '/' }),
    );
  }

  @Describe({ id: 'getOpenApi', summary: 'This document', answer: openApi })
  @Get()
  async get(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    await this.document.send(request, reply);
  }
}
