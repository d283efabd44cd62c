import { ProtocolError, parseFields } from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf, SecretError, type SecretInfo, Secrets } from '@baton/identity';
import { Controller, Delete, Get, HttpCode, Param, Patch, Put, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/access.guard.js';
import { BodyReader } from '../../http/body.js';
import { pageOf, readLimit } from '../query.js';

const origins = z.array(z.string());
const body = z.strictObject({ value: z.string(), origins: origins.optional() });
const change = z.strictObject({ origins });

/** A tenant's secrets: set, listed by name, removed. A value is never shown again. */
@RequireScope('secrets:write')
@Controller('v1/secrets')
export class SecretsController {
  constructor(
    private readonly secrets: Secrets,
    private readonly bodies: BodyReader,
    private readonly environment: Environment,
  ) {}

  /** By name: `{secrets: [{name, origins, created_at, updated_at}], next_cursor}`; the cursor is null on the last page. */
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

  /** Sets the secret to the body's `value`, and the `origins` that may receive it. Replaces an existing one. */
  @Put(':name')
  async set(@Param('name') name: string, @Req() request: FastifyRequest): Promise<Record<string, unknown>> {
    const { tenantId } = callerOf(request);
    if (!this.environment.masterKey) throw new ProtocolError('not-configured', NO_MASTER_KEY);
    const { value, origins } = parseFields(body, await this.bodies.json(request), '', 'the body');
    return encodeSecret(
      await this.secrets.set(tenantId, name, value, origins, actorOf(request)).catch(explain),
    );
  }

  /** Sets the `origins` that may receive the secret. The value stays. */
  @Patch(':name')
  async change(
    @Param('name') name: string,
    @Req() request: FastifyRequest,
  ): Promise<Record<string, unknown>> {
    const { tenantId } = callerOf(request);
    const { origins } = parseFields(change, await this.bodies.json(request), '', 'the body');
    const secret = await this.secrets.setOrigins(tenantId, name, origins, actorOf(request)).catch(explain);
    if (secret) return encodeSecret(secret);
    throw new ProtocolError('not-found', `Secret not found: ${name}`);
  }

  @Delete(':name')
  @HttpCode(204)
  async remove(@Param('name') name: string, @Req() request: FastifyRequest): Promise<void> {
    const { tenantId } = callerOf(request);
    if (await this.secrets.remove(tenantId, name, actorOf(request))) return;
    throw new ProtocolError('not-found', `Secret not found: ${name}`);
  }
}

const NO_MASTER_KEY =
  'this installation stores no secrets: its operator must set BATON_MASTER_KEY (or _FILE, _COMMAND) for every process';

function explain(error: unknown): never {
  if (!(error instanceof SecretError)) throw error;
  const { message, field } = error;
  const violations = field === undefined ? [] : [{ field, description: message }];
  throw new ProtocolError('invalid-params', message, violations.length > 0 ? { violations } : {});
}

/** `origins` is null for a secret of an earlier release, which may go anywhere until they are set. */
const encodeSecret = ({ name, origins, createdAt, updatedAt }: SecretInfo): Record<string, unknown> => ({
  name,
  origins,
  created_at: createdAt.toISOString(),
  updated_at: updatedAt.toISOString(),
});
