import { ProtocolError, type Scope, parseFields } from '@baton/a2a';
import { Environment } from '@baton/config';
import type { SecretInfo } from '@baton/database';
import { BearerGuard, callerOf, SecretError, Secrets } from '@baton/identity';
import { Controller, Delete, Get, HttpCode, Param, Put, Query, Req, UseGuards } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { requireScope } from '../a2a/scopes.js';
import { JsonBodies } from './json-bodies.js';
import type { NativePath } from './native-path.js';
import { pageOf } from './page.js';
import { readLimit } from './read-limit.js';

export const SECRET_PATHS: readonly NativePath[] = [
  ['/v1/secrets', 'GET'],
  ['/v1/secrets/:name', 'PUT', 'DELETE'],
];

const WRITE: readonly Scope[] = ['secrets:write'];
const body = z.strictObject({ value: z.string() });

/** A tenant's secrets: set, listed by name, removed. A value is never shown again. */
@Controller('v1/secrets')
@UseGuards(BearerGuard)
export class SecretsController {
  constructor(
    private readonly secrets: Secrets,
    private readonly bodies: JsonBodies,
    private readonly environment: Environment,
  ) {}

  /** By name: `{secrets: [{name, created_at, updated_at}], next_cursor}`; the cursor is null on the last page. */
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limit?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Record<string, unknown>> {
    const { tenantId } = callerWithSecrets(request);
    const all = await this.secrets.list(tenantId);
    const { page, nextCursor } = pageOf(all, ({ name }) => name, { limit: readLimit(limit), cursor });
    return { secrets: page.map(encodeSecret), next_cursor: nextCursor };
  }

  /** Sets it to the body's `value`, in place of the one of that name. */
  @Put(':name')
  async set(@Param('name') name: string, @Req() request: FastifyRequest): Promise<Record<string, unknown>> {
    const { tenantId } = callerWithSecrets(request);
    if (!this.environment.masterKey) throw new ProtocolError('not-configured', NO_MASTER_KEY);
    const { value } = parseFields(body, await this.bodies.read(request), '', 'the body');
    try {
      return encodeSecret(await this.secrets.set(tenantId, name, value));
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      const { message, field } = error;
      const wrong = field && { violations: [{ field, description: message }] };
      throw new ProtocolError('invalid-params', message, wrong);
    }
  }

  @Delete(':name')
  @HttpCode(204)
  async remove(@Param('name') name: string, @Req() request: FastifyRequest): Promise<void> {
    const { tenantId } = callerWithSecrets(request);
    if (await this.secrets.remove(tenantId, name)) return;
    throw new ProtocolError('not-found', `Secret not found: ${name}`);
  }
}

const NO_MASTER_KEY =
  'this installation keeps no secrets: its operator has to set BATON_MASTER_KEY for every process';

/** Throws `forbidden` unless the caller may have to do with secrets. */
function callerWithSecrets(request: FastifyRequest) {
  const caller = callerOf(request);
  requireScope(WRITE, caller.scopes);
  return caller;
}

const encodeSecret = ({ name, createdAt, updatedAt }: SecretInfo): Record<string, unknown> => ({
  name,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});
