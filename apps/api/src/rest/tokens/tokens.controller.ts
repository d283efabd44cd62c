import { ProtocolError, isUuid } from '@baton/a2a';
import { type ApiToken, type Caller, callerOf, TokenService } from '@baton/identity';
import { TenantTokens } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/route-access.js';
import { BodyReader } from '../../http/body-reader.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT } from '../paging.js';
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
  reaches,
  readTokenCursor,
  revokedToken,
  STOP,
  tokenAnswer,
  tokenPage,
  tokenPatch,
  tokenRotation,
  tokenWithWork,
} from './token-json.js';

/** A tenant's bearer tokens, for its administrators. A token gives only what its holder has. */
@RequireScope('admin')
@Controller('v1/tokens')
export class TokensController {
  constructor(
    private readonly service: TokenService,
    private readonly tokens: TenantTokens,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({
    id: 'listTokens',
    summary: 'Lists the tokens, the newest first, also expired and revoked ones',
    answer: tokenPage,
  })
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof tokenPage>> {
    const caller = callerOf(request);
    const after = readTokenCursor(cursor);
    const found = await this.service.list(caller.tenantId, { limit: limit + 1, after });
    return encodeTokenPage(found, limit, ({ agents }) => reaches(caller, agents));
  }

  @Describe({
    id: 'createToken',
    summary: 'Creates a token. Its `secret` is never shown again',
    body: newToken,
    answer: issuedToken,
    answerHeaders: ['Location'],
  })
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof issuedToken>> {
    const caller = callerOf(request);
    const rights = decodeNewToken(await this.bodies.json(request), caller);
    const { secret, token } = await this.service.issue(
      { tenantId: caller.tenantId, ...rights },
      actorOf(request),
    );
    reply.status(201).header('location', `/v1/tokens/${token.id}`);
    return { ...encodeToken(token), secret };
  }

  @Describe({
    id: 'getToken',
    summary: 'Shows a token, with its running tasks and schedules',
    answer: tokenWithWork,
  })
  @Get(':id')
  async get(@Param('id') id: string, @Req() request: FastifyRequest): Promise<z.infer<typeof tokenWithWork>> {
    const token = await this.find(callerOf(request), id);
    return { ...encodeToken(token), running: encodeOpenWork(await this.tokens.running(token)) };
  }

  @Describe({
    id: 'changeToken',
    summary: 'Changes the given members of a token',
    body: tokenPatch,
    answer: tokenAnswer,
  })
  @Patch(':id')
  async change(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof tokenAnswer>> {
    const caller = callerOf(request);
    const body = await this.bodies.json(request);
    const token = await this.find(caller, id);
    const rights = decodeTokenPatch(body, caller);
    return encodeToken(await this.tokens.change(token, rights, actorOf(request)));
  }

  @Describe({
    id: 'rotateToken',
    summary: 'Gives a token a new `secret`. The old one stays valid for a while',
    body: tokenRotation,
    answer: issuedToken,
  })
  @Post(':id/rotate')
  @HttpCode(200)
  async rotate(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof issuedToken>> {
    const caller = callerOf(request);
    const body = await this.bodies.json(request);
    const token = await this.find(caller, id);
    const rotation = decodeRotation(body, token, caller);
    const issued = await this.tokens.rotate(token, rotation, actorOf(request));
    return { ...encodeToken(issued.token), secret: issued.secret };
  }

  @Describe({
    id: 'revokeToken',
    summary: 'Revokes a token, and shows its running tasks and schedules, or the stopped ones',
    answer: revokedToken,
  })
  @Delete(':id')
  async revoke(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Query('stop', STOP) isStopped: boolean,
  ): Promise<z.infer<typeof revokedToken>> {
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
