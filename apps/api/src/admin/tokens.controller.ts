import { parseFields, ProtocolError, SCOPES } from '@baton/a2a';
import { TokenService } from '@baton/identity';
import { type ApiToken, OperatorDesk, TenantSettings } from '@baton/tasks';
import { Controller, Delete, Get, Param, Post, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly } from '../access/access.guard.js';
import { BodyReader } from '../http/body.js';
import { OnManagementPort } from '../management/management-port.js';

type Json = Record<string, unknown>;

const newTokenBody = z.strictObject({
  name: z.string().min(1).max(200),
  scopes: z.array(z.enum(SCOPES)).min(1),
  expires_at: z.iso
    .datetime({ offset: true, error: 'give a time with its offset, such as 2026-12-31T08:00:00Z' })
    .nullable()
    .default(null),
});

/** The tokens of a tenant, for operators. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants/:tenant/tokens')
export class AdminTokensController {
  constructor(
    private readonly settings: TenantSettings,
    private readonly service: TokenService,
    private readonly desk: OperatorDesk,
    private readonly bodies: BodyReader,
  ) {}

  /** Newest first: `{tokens}`. */
  @Get()
  async list(@Param('tenant') slug: string): Promise<Json> {
    return { tokens: (await this.desk.listTokens(slug)).map(encodeToken) };
  }

  /** 201 with the token, and `secret`, which is shown only here. */
  @Post()
  async create(@Param('tenant') slug: string, @Req() request: FastifyRequest): Promise<Json> {
    const { id: tenantId } = await this.settings.find(slug);
    const body = parseFields(newTokenBody, await this.bodies.ofOperator(request), '', 'the body');
    const expiresAt = body.expires_at === null ? null : new Date(body.expires_at);
    const { name, scopes } = body;
    const { secret, token } = await this.service.issue(
      { tenantId, name, scopes, expiresAt },
      operatorActorOf(request),
    );
    return { ...encodeToken(token), secret };
  }

  /** Revokes a token by its id or prefix. Its open streams end. */
  @Delete(':token')
  async revoke(
    @Param('tenant') slug: string,
    @Param('token') idOrPrefix: string,
    @Req() request: FastifyRequest,
  ): Promise<Json> {
    const { id } = await this.settings.find(slug);
    const token = await this.service.revoke(id, idOrPrefix, operatorActorOf(request));
    // The message does not repeat the argument: it may be a whole secret.
    if (!token) throw new ProtocolError('not-found', 'The tenant has no such token');
    return encodeToken(token);
  }
}

const timeOf = (date: Date | null): string | null => date?.toISOString() ?? null;

const encodeToken = (token: ApiToken): Json => ({
  ...{ id: token.id, name: token.name, prefix: token.prefix, scopes: token.scopes },
  ...{ expires_at: timeOf(token.expiresAt), revoked_at: timeOf(token.revokedAt) },
  created_at: timeOf(token.createdAt),
});
