import { ProtocolError, isUuid } from '@baton/a2a';
import { type ApiToken, type Caller, callerOf, TokenService } from '@baton/identity';
import { TenantTokens } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/access.guard.js';
import { BodyReader } from '../../http/body.js';
import { readFlag } from '../query.js';
import {
  decodeNewToken,
  decodeRotation,
  decodeTokenPatch,
  encodeOpenWork,
  encodeRevoked,
  encodeToken,
  encodeTokenPage,
  reaches,
  readTokenPage,
} from './token-json.js';

type Json = Record<string, unknown>;

/** A tenant's bearer tokens, for its administrators. A token gives only what its holder has. */
@RequireScope('admin')
@Controller('v1/tokens')
export class TokensController {
  constructor(
    private readonly service: TokenService,
    private readonly tokens: TenantTokens,
    private readonly bodies: BodyReader,
  ) {}

  /** The newest first: `{tokens, next_cursor}`; the cursor is null on the last page. */
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limitText?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Json> {
    const caller = callerOf(request);
    const { limit, after } = readTokenPage(limitText, cursor);
    const found = await this.service.list(caller.tenantId, { limit: limit + 1, after });
    return encodeTokenPage(found, limit, ({ agents }) => reaches(caller, agents));
  }

  /** 201 with the new token and its `secret`, which is never shown again. */
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Json> {
    const caller = callerOf(request);
    const rights = decodeNewToken(await this.bodies.json(request), caller);
    const { secret, token } = await this.service.issue(
      { tenantId: caller.tenantId, ...rights },
      actorOf(request),
    );
    reply.status(201).header('location', `/v1/tokens/${token.id}`);
    return { ...encodeToken(token), secret };
  }

  /** The token, and what it has that goes on by itself. */
  @Get(':id')
  async get(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const token = await this.find(callerOf(request), id);
    return { ...encodeToken(token), running: encodeOpenWork(await this.tokens.running(token)) };
  }

  /** Changes only the given members. */
  @Patch(':id')
  async change(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const caller = callerOf(request);
    const body = await this.bodies.json(request);
    const token = await this.find(caller, id);
    const rights = decodeTokenPatch(body, caller);
    return encodeToken(await this.tokens.change(token, rights, actorOf(request)));
  }

  /** The token with a new `secret`. The one before stays good for a while. */
  @Post(':id/rotate')
  @HttpCode(200)
  async rotate(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const caller = callerOf(request);
    const body = await this.bodies.json(request);
    const token = await this.find(caller, id);
    const rotation = decodeRotation(body, token, caller);
    const issued = await this.tokens.rotate(token, rotation, actorOf(request));
    return { ...encodeToken(issued.token), secret: issued.secret };
  }

  /** Revokes the token: what it leaves running, and with `?stop=true` what of it was stopped. */
  @Delete(':id')
  async revoke(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Query('stop') stop?: string,
  ): Promise<Json> {
    const isStopped = readFlag('stop', stop);
    const token = await this.find(callerOf(request), id);
    return encodeRevoked(await this.tokens.revoke(token, isStopped, actorOf(request)));
  }

  /** Throws `not-found`, also for a token that reaches agents which do not exist for the caller. */
  private async find(caller: Caller, id: string): Promise<ApiToken> {
    const token = isUuid(id) ? await this.service.find(caller.tenantId, id) : undefined;
    if (token && reaches(caller, token.agents)) return token;
    throw notFound(id);
  }
}

const notFound = (id: string): ProtocolError =>
  new ProtocolError('not-found', `Token not found: ${isUuid(id) ? id : 'name it by its id'}`);
