import { ProtocolError } from '@baton/a2a';
import { OPERATOR_ROLES, OperatorTokens } from '@baton/identity';
import { Controller, Delete, Get, Param, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { timeSchema } from '../openapi/schemas.js';

const operatorToken = z
  .object({
    id: z.string(),
    name: z.string(),
    prefix: z.string().describe('First characters of the secret'),
    role: z
      .enum(OPERATOR_ROLES)
      .describe('What it may do: read everything, support without contents, or all'),
    expires_at: timeSchema.nullable().describe('Null: never'),
    revoked_at: timeSchema.nullable(),
    created_at: timeSchema,
  })
  .meta({ id: 'OperatorToken' });
type OperatorTokenAnswer = z.infer<typeof operatorToken>;
const operatorTokenList = z.object({ operator_tokens: z.array(operatorToken) });

/**
 * The tokens of operators. No route makes one: a stolen token must not make others. `baton operator-tokens create` does, on
 * the database.
 */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/operator-tokens')
export class AdminOperatorTokensController {
  constructor(private readonly tokens: OperatorTokens) {}

  @Describe({
    id: 'listOperatorTokens',
    summary: 'Lists the tokens of operators, the newest first',
    answer: operatorTokenList,
  })
  @OperatorRoles('read', 'support')
  @Get()
  async list(): Promise<z.infer<typeof operatorTokenList>> {
    return { operator_tokens: (await this.tokens.list()).map(encode) };
  }

  @Describe({
    id: 'revokeOperatorToken',
    summary: 'Revokes a token of an operator, by its id or prefix, and answers with it',
    answer: operatorToken,
  })
  @Delete(':token')
  async revoke(@Param('token') name: string, @Req() request: FastifyRequest): Promise<OperatorTokenAnswer> {
    const token = await this.tokens.revoke(name, operatorActorOf(request));
    if (token) return encode(token);
    // The message does not repeat the name: it may be a whole secret.
    throw new ProtocolError('not-found', 'There is no such token of an operator');
  }
}

const encode = (token: Awaited<ReturnType<OperatorTokens['list']>>[number]): OperatorTokenAnswer => ({
  id: token.id,
  name: token.name,
  prefix: token.prefix,
  role: token.role,
  expires_at: token.expiresAt?.toISOString() ?? null,
  revoked_at: token.revokedAt?.toISOString() ?? null,
  created_at: token.createdAt.toISOString(),
});
