import { ProtocolError, parseFields } from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf, SecretError, type SecretInfo, Secrets } from '@baton/identity';
import { Controller, Delete, Get, HttpCode, Param, Put, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/access.guard.js';
import { BodyReader } from '../../http/body.js';
import { pageOf, readLimit } from '../query.js';

const body = z.strictObject({ value: z.string() });

/** A tenant's secrets: set, listed by name, removed. A value is never shown again. */
@RequireScope('secrets:write')
@Controller('v1/secrets')
export class SecretsController {
  constructor(
    private readonly secrets: Secrets,
    private readonly bodies: BodyReader,
    private readonly environment: Environment,
  ) {}

  /** By name: `{secrets: [{name, created_at, updated_at}], next_cursor}`; the cursor is null on the last page. */
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limit?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Record<string, unknown>> {
    const { tenantId } = callerOf(request);
    const all = await this.secrets.list(tenantId);
    const { page, nextCursor } = pageOf(all, ({ name }) => name, { limit: readLimit(limit), cursor });
    return { secrets: page.map(encodeSecret), next_cursor: nextCursor };
  }

  /** Sets the secret to the body's `value`. Replaces an existing one. */
  @Put(':name')
  async set(@Param('name') name: string, @Req() request: FastifyRequest): Promise<Record<string, unknown>> {
    const { tenantId } = callerOf(request);
    if (!this.environment.masterKey) throw new ProtocolError('not-configured', NO_MASTER_KEY);
    const { value } = parseFields(body, await this.bodies.json(request), '', 'the body');
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
    const { tenantId } = callerOf(request);
    if (await this.secrets.remove(tenantId, name)) return;
    throw new ProtocolError('not-found', `Secret not found: ${name}`);
  }
}

const NO_MASTER_KEY =
  'this installation stores no secrets: its operator must set BATON_MASTER_KEY for every process';

const encodeSecret = ({ name, createdAt, updatedAt }: SecretInfo): Record<string, unknown> => ({
  name,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});
