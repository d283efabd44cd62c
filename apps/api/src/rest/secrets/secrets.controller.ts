import { ProtocolError, parseFields } from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf, SecretError, type SecretInfo, Secrets } from '@baton/identity';
import { Controller, Delete, Get, HttpCode, Param, Patch, Put, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/access.guard.js';
import { BodyReader } from '../../http/body-reader.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';
import { CURSOR, LIMIT, nextCursor, oneMore, pageOf, readPage } from '../paging.js';

const origins = z
  .array(z.string())
  .describe('The origins that may receive it, such as https://crm.example.com');
export const newSecret = z.strictObject({ value: z.string(), origins: origins.optional() });
export const secretPatch = z.strictObject({ origins });

export const secretAnswer = z
  .object({
    name: z.string(),
    origins: origins.nullable().describe('Null: an earlier release stored it, and it may go anywhere'),
    created_at: timeSchema,
    updated_at: timeSchema,
  })
  .meta({ id: 'Secret' });
const secretList = z.object({ secrets: z.array(secretAnswer), next_cursor: nextCursor });
type SecretAnswer = z.infer<typeof secretAnswer>;

/** A tenant's secrets: set, listed by name, removed. A value is never shown again. */
@RequireScope('secrets:write')
@Controller('v1/secrets')
export class SecretsController {
  constructor(
    private readonly secrets: Secrets,
    private readonly bodies: BodyReader,
    private readonly environment: Environment,
  ) {}

  @Describe({ id: 'listSecrets', summary: 'Lists the secrets by name, without values', answer: secretList })
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof secretList>> {
    const { tenantId } = callerOf(request);
    const asked = readPage(limit, cursor);
    const found = await this.secrets.list(tenantId, oneMore(asked));
    const { page, nextCursor } = pageOf(found, ({ name }) => name, asked);
    return { secrets: page.map(encodeSecret), next_cursor: nextCursor };
  }

  @Describe({
    id: 'setSecret',
    summary: 'Sets the value of a secret, and the origins that may receive it. Replaces an existing one',
    body: newSecret,
    answer: secretAnswer,
  })
  @Put(':name')
  async set(@Param('name') name: string, @Req() request: FastifyRequest): Promise<SecretAnswer> {
    const { tenantId } = callerOf(request);
    assertMasterKey(this.environment);
    const { value, origins } = parseFields(newSecret, await this.bodies.json(request), '', 'the body');
    return encodeSecret(
      await this.secrets.set(tenantId, name, value, origins, actorOf(request)).catch(explainSecret),
    );
  }

  @Describe({
    id: 'changeSecret',
    summary: 'Sets the origins that may receive a secret. Its value stays',
    body: secretPatch,
    answer: secretAnswer,
  })
  @Patch(':name')
  async change(@Param('name') name: string, @Req() request: FastifyRequest): Promise<SecretAnswer> {
    const { tenantId } = callerOf(request);
    const { origins } = parseFields(secretPatch, await this.bodies.json(request), '', 'the body');
    const secret = await this.secrets
      .setOrigins(tenantId, name, origins, actorOf(request))
      .catch(explainSecret);
    if (secret) return encodeSecret(secret);
    throw noSuchSecret(name);
  }

  @Describe({ id: 'deleteSecret', summary: 'Deletes a secret' })
  @Delete(':name')
  @HttpCode(204)
  async remove(@Param('name') name: string, @Req() request: FastifyRequest): Promise<void> {
    const { tenantId } = callerOf(request);
    if (await this.secrets.remove(tenantId, name, actorOf(request))) return;
    throw noSuchSecret(name);
  }
}

const NO_MASTER_KEY =
  'this installation stores no secrets: its operator must set BATON_MASTER_KEY (or _FILE, _COMMAND) for every process';

/** Throws `not-configured`. */
export function assertMasterKey({ masterKey }: Pick<Environment, 'masterKey'>): void {
  if (!masterKey) throw new ProtocolError('not-configured', NO_MASTER_KEY);
}

export const noSuchSecret = (name: string): ProtocolError =>
  new ProtocolError('not-found', `Secret not found: ${name}`);

/** Throws `invalid-params` for a fault of a secret. */
export function explainSecret(error: unknown): never {
  if (!(error instanceof SecretError)) throw error;
  const { message, field } = error;
  const violations = field === undefined ? [] : [{ field, description: message }];
  throw new ProtocolError('invalid-params', message, violations.length > 0 ? { violations } : {});
}

/** Without its value. */
export const encodeSecret = ({ name, origins, createdAt, updatedAt }: SecretInfo): SecretAnswer => ({
  name,
  origins,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});
