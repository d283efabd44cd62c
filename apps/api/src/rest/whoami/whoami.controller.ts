import { SCOPES } from '@baton/a2a';
import { callerOf, LimitsService, TokenService } from '@baton/identity';
import { Controller, Get, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';

const whoamiAnswer = z
  .object({
    tenant: z.string().describe('Slug of the tenant'),
    principal: z
      .object({
        kind: z.enum(['token', 'user', 'guest', 'schedule', 'operator']),
        key: z.string().describe('The `owner` of the tasks that the caller makes'),
      })
      .describe('Who the caller is for this server'),
    token: z
      .object({ id: z.string(), name: z.string(), prefix: z.string() })
      .nullable()
      .describe('The token of the caller. Null: an OpenID provider has issued it'),
    scopes: z.array(z.enum(SCOPES)),
    agents: z
      .array(z.string())
      .nullable()
      .describe('Slugs of all agents that exist for the caller. Null: all'),
    expires_at: timeSchema.nullable().describe('When the token ends. Null: never'),
  })
  .meta({ id: 'Caller' });

/** Who calls. People and programs learn here what their token may do. */
@Controller('v1/whoami')
export class WhoamiController {
  constructor(
    private readonly tokens: TokenService,
    private readonly limits: LimitsService,
  ) {}

  @Describe({
    id: 'whoami',
    summary: 'Shows the tenant of the caller, its token and what it may do',
    answer: whoamiAnswer,
  })
  // Whatever the token may do.
  @RequireScope(...SCOPES)
  @Get()
  async whoami(@Req() request: FastifyRequest): Promise<z.infer<typeof whoamiAnswer>> {
    const { tenantId, principal, scopes, agents, expiresAt } = callerOf(request);
    const id = principal.kind === 'token' ? principal.key.slice('token:'.length) : undefined;
    const token = id === undefined ? undefined : await this.tokens.find(tenantId, id);
    return {
      tenant: await this.limits.slugOf(tenantId),
      principal: { kind: principal.kind, key: principal.key },
      token: token ? { id: token.id, name: token.name, prefix: token.prefix } : null,
      scopes: [...scopes],
      agents: agents ? [...agents.slugs] : null,
      expires_at: expiresAt?.toISOString() ?? null,
    };
  }
}
