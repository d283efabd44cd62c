import { parseFields } from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf, Secrets } from '@baton/identity';
import { Controller, Delete, Get, HttpCode, Param, Patch, Put, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/route-access.js';
import { BodyReader } from '../../http/body-reader.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT, nextCursor, oneMore, pageOf, readPage } from '../paging.js';
import {
  secretAnswer,
  encodeSecret,
  type SecretAnswer,
  explainSecret,
  noSuchSecret,
  origins,
} from './secret-json.js';
import { assertMasterKey } from './assert-master-key.js';

export const newSecret = z.strictObject({ value: z.string(), origins: origins.optional() });
export const secretPatch = z.strictObject({ origins });

const secretList = z.object({ secrets: z.array(secretAnswer), next_cursor: nextCursor });

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
