import { ProtocolError } from '@baton/a2a';
import { AuditLog, callerOf } from '@baton/identity';
import { Controller, Get, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { QueryPipe, timeQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT } from '../paging.js';
import { auditPage, readAuditCursor, encodeAuditPage } from './audit-json.js';

/** `?action=` */
export const ACTION = new QueryPipe(
  {
    description: 'An action, such as token.create, or its first word, such as token',
    schema: { type: 'string' },
  },
  (text, name) => {
    if (text === undefined || text === '') return undefined;
    if (AuditLog.knows(text)) return text;
    throw ProtocolError.invalidParams(
      name,
      'must be an action of the audit log, such as token.create, or its first word, such as token',
    );
  },
);

/** `?from=` and `?until=` */
export const FROM = timeQuery('Not before this time');
export const UNTIL = timeQuery('Before this time');

const FOR_ALL_AGENTS =
  'the token has a list of agents, and the audit log is about the whole tenant: read it with a token for all agents';

/** A tenant's audit log: who changed what. Read-only: the changes themselves write it. */
@Controller('v1/audit')
export class AuditController {
  constructor(private readonly audit: AuditLog) {}

  @Describe({
    id: 'listAuditRecords',
    summary: 'Lists who changed what, the latest first',
    answer: auditPage,
  })
  @RequireScope('audit:read')
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('action', ACTION) action: string | undefined,
    @Query('from', FROM) from: Date | undefined,
    @Query('until', UNTIL) until: Date | undefined,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof auditPage>> {
    const { tenantId, agents } = callerOf(request);
    if (agents) throw new ProtocolError('forbidden', FOR_ALL_AGENTS);
    const after = readAuditCursor(cursor);
    return encodeAuditPage(await this.audit.page(tenantId, { action, from, until, after, limit }));
  }
}
