import { parseFields } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type SecretInfo, Secrets } from '@baton/identity';
import { TenantSettings } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Put, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { BodyReader } from '../http/body-reader.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { CURSOR, LIMIT, nextCursor, oneMore, pageOf, readPage } from '../rest/paging.js';
import { newSecret, secretPatch } from '../rest/secrets/secrets.controller.js';
import { assertMasterKey } from '../rest/secrets/assert-master-key.js';
import { encodeSecret, explainSecret, noSuchSecret, secretAnswer } from '../rest/secrets/secret-json.js';

const ofTenant = secretAnswer
  .extend({ key_id: z.string().describe('Which master key has encrypted it') })
  .meta({ id: 'TenantSecret' });
const secretList = z.object({ secrets: z.array(ofTenant), next_cursor: nextCursor });
type TenantSecretAnswer = z.infer<typeof ofTenant>;

/** The secrets of a tenant, for operators: the same as at `/v1/secrets`. A value is never shown. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants/:tenant/secrets')
export class AdminSecretsController {
  constructor(
    private readonly settings: TenantSettings,
    private readonly secrets: Secrets,
    private readonly bodies: BodyReader,
    private readonly environment: Environment,
  ) {}

  @Describe({
    id: 'listSecrets',
    summary: 'Lists the secrets of a tenant, without values',
    answer: secretList,
  })
  @OperatorRoles('read', 'support')
  @Get()
  async list(
    @Param('tenant') slug: string,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof secretList>> {
    const { id } = await this.settings.find(slug);
    const asked = readPage(limit, cursor);
    const { page, nextCursor } = pageOf(await this.secrets.list(id, oneMore(asked)), nameOf, asked);
    return { secrets: page.map(encode), next_cursor: nextCursor };
  }

  @Describe({
    id: 'setSecret',
    summary: 'Sets the value of a secret, and the origins that may receive it. Replaces an existing one',
    body: newSecret,
    answer: ofTenant,
  })
  @Put(':name')
  async set(
    @Param('tenant') slug: string,
    @Param('name') name: string,
    @Req() request: FastifyRequest,
  ): Promise<TenantSecretAnswer> {
    assertMasterKey(this.environment);
    const { value, origins } = parseFields(newSecret, await this.bodies.ofOperator(request), '', 'the body');
    const { id } = await this.settings.find(slug);
    const by = operatorActorOf(request);
    return encode(await this.secrets.set(id, name, value, origins, by).catch(explainSecret));
  }

  @Describe({
    id: 'changeSecret',
    summary: 'Sets the origins that may receive a secret. Its value stays',
    body: secretPatch,
    answer: ofTenant,
  })
  @Patch(':name')
  async change(
    @Param('tenant') slug: string,
    @Param('name') name: string,
    @Req() request: FastifyRequest,
  ): Promise<TenantSecretAnswer> {
    const { origins } = parseFields(secretPatch, await this.bodies.ofOperator(request), '', 'the body');
    const { id } = await this.settings.find(slug);
    const by = operatorActorOf(request);
    const secret = await this.secrets.setOrigins(id, name, origins, by).catch(explainSecret);
    if (secret) return encode(secret);
    throw noSuchSecret(name);
  }

  @Describe({ id: 'deleteSecret', summary: 'Deletes a secret' })
  @Delete(':name')
  @HttpCode(204)
  async remove(
    @Param('tenant') slug: string,
    @Param('name') name: string,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    const { id } = await this.settings.find(slug);
    if (await this.secrets.remove(id, name, operatorActorOf(request))) return;
    throw noSuchSecret(name);
  }
}

const nameOf = ({ name }: SecretInfo): string => name;

const encode = (secret: SecretInfo): TenantSecretAnswer => ({
  ...encodeSecret(secret),
  key_id: secret.keyId,
});
