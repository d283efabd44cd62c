import { parseJsonBody } from '@baton/a2a';
import { Environment } from '@baton/config';
import { callerOf, LimitsService } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { readJsonText } from '../http/read-json-text.js';

/** Reads the bodies of Baton's own endpoints. */
@Injectable()
export class JsonBodies {
  constructor(
    private readonly limits: LimitsService,
    private readonly environment: Environment,
  ) {}

  /**
   * The body of a request, which must be JSON, within the limits of the caller's tenant.
   * @param mediaTypes what it may claim to be
   */
  async read(request: FastifyRequest, mediaTypes = ['application/json']): Promise<unknown> {
    const { smallBodyLimitBytes, requestTimeoutMs: ms } = this.environment;
    const { bodyBytes } = await this.limits.of(callerOf(request).tenantId);
    const limit =
      bodyBytes !== null && bodyBytes < smallBodyLimitBytes
        ? { bytes: bodyBytes, ms, name: 'bodyBytes' }
        : { bytes: smallBodyLimitBytes, ms };
    return parseJsonBody(await readJsonText(request.raw, limit, mediaTypes));
  }
}
