import { decodePageToken, encodePageToken, ProtocolError } from '@baton/a2a';
import { AuditLog, callerOf } from '@baton/identity';
import { Controller, Get, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/access.guard.js';
import { QueryPipe, timeQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';
import { CURSOR, LIMIT, nextCursor } from '../paging.js';

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

const auditRecord = z
  .object({
    id: z.string(),
    at: timeSchema,
    tenant_id: z.string().nullable().describe('Null: it is about the installation'),
    actor: z.object({ kind: z.string(), key: z.string(), name: z.string().nullable() }),
    source: z.string().nullable().describe('The network of the caller, such as 192.0.2.0/24'),
    request_id: z.string().nullable().describe('`X-Request-Id` of the call'),
    action: z.string(),
    target: z.object({ kind: z.string(), name: z.string() }),
    outcome: z.enum(['ok', 'refused']),
    detail: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'AuditRecord' });
export const auditPage = z.object({ records: z.array(auditRecord), next_cursor: nextCursor });

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

/** The record after which the page begins. Throws `invalid-params`. */
export function readAuditCursor(cursor: string | undefined) {
  const position = cursor ? decodePageToken(cursor, 'cursor') : undefined;
  return position && { at: position.statusAt, id: position.taskId };
}

export const encodeAuditPage = ({
  records,
  last,
}: Awaited<ReturnType<AuditLog['page']>>): z.infer<typeof auditPage> => ({
  records,
  next_cursor: last ? encodePageToken({ statusAt: last.at, taskId: last.id }) : null,
});
