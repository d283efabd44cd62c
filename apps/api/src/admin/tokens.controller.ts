import { ProtocolError } from '@baton/a2a';
import { TokenService } from '@baton/identity';
import { type ApiToken, TenantSettings, TenantTokens } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly } from '../access/access.guard.js';
import { BodyReader } from '../http/body.js';
import { OnManagementPort } from '../management/management-port.js';
import { readFlag } from '../rest/query.js';
import {
  decodeNewToken,
  decodeRotation,
  decodeTokenPatch,
  encodeOpenWork,
  encodeRevoked,
  encodeToken,
  encodeTokenPage,
  readTokenPage,
} from '../rest/tokens/token-json.js';

type Json = Record<string, unknown>;

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

  /** Newest first: `{tokens, next_cursor}`; the cursor is null on the last page. */
  @Get()
  async list(
    @Param('tenant') slug: string,
    @Query('limit') limitText?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Json> {
    const { id } = await this.settings.find(slug);
    const { limit, after } = readTokenPage(limitText, cursor);
    return encodeTokenPage(await this.service.list(id, { limit: limit + 1, after }), limit);
  }

  /** 201 with the token, and `secret`, which is shown only here. */
  @Post()
  async create(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<Json> {
    const { id: tenantId } = await this.settings.find(slug);
    const rights = decodeNewToken(await this.bodies.ofOperator(request));
    const { secret, token } = await this.service.issue({ tenantId, ...rights }, operatorActorOf(request));
    return { ...encodeToken(token), secret };
  }

  /** The token, and what it has that goes on by itself. */
  @Get(':token')
  async get(@Param('tenant') slug: string, @Param('token') name: string): Promise<Json> {
    const token = await this.find(slug, name);
    return { ...encodeToken(token), running: encodeOpenWork(await this.tokens.running(token)) };
  }

  /** Changes only the given members. */
  @Patch(':token')
  async change(
    @Param('tenant') slug: string,
    @Param('token') name: string,
    @Req() request: FastifyRequest,
  ): Promise<Json> {
    const body = await this.bodies.ofOperator(request);
    const token = await this.find(slug, name);
    return encodeToken(await this.tokens.change(token, decodeTokenPatch(body), operatorActorOf(request)));
  }

  /** The token with a new `secret`. The one before stays good for a while. */
  @Post(':token/rotate')
  @HttpCode(200)
  async rotate(
    @Param('tenant') slug: string,
    @Param('token') name: string,
    @Req() request: FastifyRequest,
  ): Promise<Json> {
    const body = await this.bodies.ofOperator(request);
    const token = await this.find(slug, name);
    const issued = await this.tokens.rotate(token, decodeRotation(body, token), operatorActorOf(request));
    return { ...encodeToken(issued.token), secret: issued.secret };
  }

  /** Revokes the token: what it leaves running, and with `?stop=true` what of it was stopped. */
  @Delete(':token')
  async revoke(
    @Param('tenant') slug: string,
    @Param('token') name: string,
    @Req() request: FastifyRequest,
    @Query('stop') stop?: string,
  ): Promise<Json> {
    const isStopped = readFlag('stop', stop);
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
