import { ProtocolError, decodePageToken, encodePageToken, isUuid, tokenPrincipal } from '@baton/a2a';
import { type ApiToken, type Caller, callerOf, TokenService } from '@baton/identity';
import { PrincipalWork } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/access.guard.js';
import { BodyReader } from '../../http/body.js';
import { readFlag, readLimit } from '../query.js';
import {
  decodeNewToken,
  decodeRotation,
  decodeTokenPatch,
  encodeOpenWork,
  encodeToken,
  reaches,
} from './token-json.js';

type Json = Record<string, unknown>;

/** A tenant's bearer tokens, for its administrators. A token gives only what its holder has. */
@RequireScope('admin')
@Controller('v1/tokens')
export class TokensController {
  constructor(
    private readonly tokens: TokenService,
    private readonly work: PrincipalWork,
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
    const limit = readLimit(limitText);
    const position = cursor ? decodePageToken(cursor, 'cursor') : undefined;
    const after = position && { createdAt: position.statusAt, id: position.taskId };
    const found = await this.tokens.list(caller.tenantId, { limit: limit + 1, after });
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return {
      tokens: page.filter(({ agents }) => reaches(caller, agents)).map(encodeToken),
      next_cursor: last ? encodePageToken({ statusAt: last.createdAt, taskId: last.id }) : null,
    };
  }

  /** 201 with the new token and its `secret`, which is never shown again. */
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Json> {
    const caller = callerOf(request);
    const rights = decodeNewToken(await this.bodies.json(request), caller);
    const { secret, token } = await this.tokens.issue(
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
    return { ...encodeToken(token), running: encodeOpenWork(await this.workOf(token)) };
  }

  /** Changes only the given members. */
  @Patch(':id')
  async change(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const caller = callerOf(request);
    const body = await this.bodies.json(request);
    const token = await this.find(caller, id);
    const rights = decodeTokenPatch(body, caller);
    const by = actorOf(request);
    return encodeToken(assertGood(await this.tokens.change(caller.tenantId, token.id, rights, by)));
  }

  /** The token with a new `secret`. The one before stays good for a while. */
  @Post(':id/rotate')
  @HttpCode(200)
  async rotate(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const caller = callerOf(request);
    const body = await this.bodies.json(request);
    const token = await this.find(caller, id);
    const rotation = decodeRotation(body, token, caller);
    const by = actorOf(request);
    const issued = assertGood(await this.tokens.rotate(caller.tenantId, token.id, rotation, by));
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
    const { id: tokenId, tenantId } = await this.find(callerOf(request), id);
    const by = actorOf(request);
    const token = await this.tokens.revoke(tenantId, tokenId, by);
    if (!token) throw notFound(id);
    const owner = tokenPrincipal(tokenId).key;
    const stopped = isStopped ? await this.work.stop(tenantId, owner, by) : undefined;
    return {
      ...encodeToken(token),
      running: encodeOpenWork(await this.workOf(token)),
      ...(stopped && {
        ...{ canceled_tasks: stopped.canceledTasks, paused_schedules: stopped.pausedSchedules },
      }),
    };
  }

  private workOf({ tenantId, id }: ApiToken) {
    return this.work.open(tenantId, tokenPrincipal(id).key);
  }

  /** Throws `not-found`, also for a token that reaches agents which do not exist for the caller. */
  private async find(caller: Caller, id: string): Promise<ApiToken> {
    const token = isUuid(id) ? await this.tokens.find(caller.tenantId, id) : undefined;
    if (token && reaches(caller, token.agents)) return token;
    throw notFound(id);
  }
}

const notFound = (id: string): ProtocolError =>
  new ProtocolError('not-found', `Token not found: ${isUuid(id) ? id : 'name it by its id'}`);

function assertGood<T>(changed: T | undefined): T {
  if (changed) return changed;
  throw new ProtocolError('conflict', 'the token was revoked: create another');
}
