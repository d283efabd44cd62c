import { Controller, Get, Module, Req, Res, type Type } from '@nestjs/common';
import { APP_GUARD, DiscoveryModule, DiscoveryService } from '@nestjs/core';
import type { FastifyReply, FastifyRequest } from 'fastify';
import fresh from 'fresh';
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Public } from '../access/access.guard.js';
import { HttpModule } from '../http/http.module.js';
import { PublicUrl } from '../http/public-url.js';
import { OnManagementPort } from '../management/management-port.js';
import { buildDocument, type DocumentInfo } from './document.js';
import { PlainTextGuard } from './plain-text.guard.js';
import { Describe, type Route, routesOf } from './route.js';

const MAX_AGE = 300;
const BASE = '/v1/';

/** A document ready to be sent. */
interface Sheet {
  json: string;
  /** As the header has it, quotes included. */
  etag: string;
}

/** Writes the document of one port when it is first asked for: to start is not slower for it. */
class LazyDocument {
  private sheet: Sheet | undefined;

  constructor(private readonly write: () => object) {}

  /** Answers with the document, or with 304 if the caller has it already. */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    this.sheet ??= sheetOf(this.write());
    const { json, etag } = this.sheet;
    reply.headers({ 'cache-control': `public, max-age=${String(MAX_AGE)}`, etag });
    if (fresh({ 'if-none-match': request.headers['if-none-match'] }, { etag }))
      await reply.status(304).send();
    else await reply.header('content-type', 'application/json; charset=utf-8').send(json);
  }
}

function sheetOf(document: object): Sheet {
  const json = JSON.stringify(document);
  const hash = createHash('sha256').update(json).digest('base64url').slice(0, 27);
  return { json, etag: `"${hash}"` };
}

/** The routes below `/v1` of one of the ports, in all modules. */
const routesAt = (discovery: DiscoveryService, isManagement: boolean): Route[] =>
  discovery
    .getControllers()
    .flatMap(({ metatype }) => routesOf(metatype as Type))
    .filter((route) => route.isManagement === isManagement && route.path.startsWith(BASE));

/** A document of OpenAPI. A schema of it would be larger than all others. */
const openApi = z.record(z.string(), z.unknown());

const PUBLIC: Omit<DocumentInfo, 'server'> = {
  title: 'Baton',
  description:
    "A tenant's tasks, agents, secrets, schedules, tokens and audit log. Agents are called over A2A, which is not part of this " +
    'document. Clients ignore members of answers that they do not know.',
  token: 'A token of the tenant, or an access token of its OpenID provider',
};
const OPERATORS: Omit<DocumentInfo, 'server'> = {
  title: 'Baton for operators',
  description:
    'All tenants, on the management port. Clients ignore members of answers that they do not know.',
  token: 'A token of an operator: `npx baton operator-tokens create`',
};

/** The API of tenants as OpenAPI. It is the same for everybody and names nothing of a tenant's. */
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

/** The description of all that is below `/v1`, at either port, and the guard that holds for all that it describes. */
@Module({
  imports: [DiscoveryModule, HttpModule],
  providers: [{ provide: APP_GUARD, useClass: PlainTextGuard }],
  controllers: [OpenApiController, AdminOpenApiController],
})
export class OpenApiModule {}
