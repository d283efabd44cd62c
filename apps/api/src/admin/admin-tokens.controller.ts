import { ProtocolError } from '@baton/a2a';
import { TokenService } from '@baton/identity';
import { type ApiToken, TenantSettings, TenantTokens } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { BodyReader } from '../http/body-reader.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { CURSOR, LIMIT } from '../rest/paging.js';
import {
  decodeNewToken,
  decodeRotation,
  decodeTokenPatch,
  encodeOpenWork,
  encodeRevoked,
  encodeToken,
  encodeTokenPage,
  issuedToken,
  newToken,
  readTokenCursor,
  revokedToken,
  STOP,
  tokenAnswer,
  tokenPage,
  tokenPatch,
  tokenRotation,
  tokenWithWork,
} from '../rest/tokens/token-json.js';

/** The tokens of a tenant, for operators: the same as at `/v1/tokens`, with any rights. A token is named by its id or prefix. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants/:tenant/tokens')
export class AdminTokensController {
  constructor(
    private readonly settings: TenantSettings,
    private readonly service: TokenService,
    private readonly tokens: TenantTokens,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({
    id: 'listTokens',
    summary: 'Lists the tokens of a tenant, the newest first',
    answer: tokenPage,
  })
  @OperatorRoles('read', 'support')
  @Get()
  async list(
    @Param('tenant') slug: string,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof tokenPage>> {
    const { id } = await this.settings.find(slug);
    const after = readTokenCursor(cursor);
    return encodeTokenPage(await this.service.list(id, { limit: limit + 1, after }), limit);
  }

  @Describe({
    id: 'createToken',
    summary: 'Creates a token of a tenant. Its `secret` is never shown again',
    body: newToken,
    answer: issuedToken,
  })
  @Post()
  async create(
    @Param('tenant') slug: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof issuedToken>> {
    const { id: tenantId } = await this.settings.find(slug);
    const rights = decodeNewToken(await this.bodies.ofOperator(request));
    const { secret, token } = await this.service.issue({ tenantId, ...rights }, operatorActorOf(request));
    return { ...encodeToken(token), secret };
  }

  @Describe({
    id: 'getToken',
    summary: 'Shows a token, with its running tasks and schedules',
    answer: tokenWithWork,
  })
  @OperatorRoles('read', 'support')
  @Get(':token')
  async get(
    @Param('tenant') slug: string,
    @Param('token') name: string,
  ): Promise<z.infer<typeof tokenWithWork>> {
    const token = await this.find(slug, name);
    return { ...encodeToken(token), running: encodeOpenWork(await this.tokens.running(token)) };
  }

  @Describe({
    id: 'changeToken',
    summary: 'Changes the given members of a token',
    body: tokenPatch,
    answer: tokenAnswer,
  })
  @Patch(':token')
  async change(
    @Param('tenant') slug: string,
    @Param('token') name: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof tokenAnswer>> {
    const body = await this.bodies.ofOperator(request);
    const token = await this.find(slug, name);
    return encodeToken(await this.tokens.change(token, decodeTokenPatch(body), operatorActorOf(request)));
  }

  @Describe({
    id: 'rotateToken',
    summary: 'Gives a token a new `secret`. The old one stays valid for a while',
    body: tokenRotation,
    answer: issuedToken,
  })
  @Post(':token/rotate')
  @HttpCode(200)
  async rotate(
    @Param('tenant') slug: string,
    @Param('token') name: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof issuedToken>> {
    const body = await this.bodies.ofOperator(request);
    const token = await this.find(slug, name);
    const issued = await this.tokens.rotate(token, decodeRotation(body, token), operatorActorOf(request));
    return { ...encodeToken(issued.token), secret: issued.secret };
  }

  @Describe({
    id: 'revokeToken',
    summary: 'Revokes a token, and shows its running tasks and schedules, or the stopped ones',
    answer: revokedToken,
  })
  @Delete(':token')
  async revoke(
    @Param('tenant') slug: string,
    @Param('token') name: string,
    @Req() request: FastifyRequest,
    @Query('stop', STOP) isStopped: boolean,
  ): Promise<z.infer<typeof revokedToken>> {
    const token = await this.find(slug, name);
    return encodeRevoked(await this.tokens.revoke(token, isStopped, operatorActorOf(request)));
  }

  /** Throws `not-found`. The message does not repeat the name: it may be a whole secret. */
  private async find(slug: string, name: string): Promise<ApiToken> {
    const { id } = await this.settings.find(slug);
    const token = await this.service.find(id, name);
    if (token) return token;
    throw new ProtocolError('not-found', 'The tenant has no such token');
  }
}
