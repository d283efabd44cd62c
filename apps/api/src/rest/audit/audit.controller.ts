import { decodePageToken, encodePageToken, ProtocolError } from '@baton/a2a';
import { AuditLog, callerOf } from '@baton/identity';
import { Controller, Get, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { RequireScope } from '../../access/access.guard.js';
import { readLimit } from '../query.js';

const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/;

/** A tenant's audit log: who changed what. Read-only: the changes themselves write it. */
@Controller('v1/audit')
export class AuditController {
  constructor(private readonly audit: AuditLog) {}

  /** The latest first: `{records, next_cursor}`; the cursor is null on the last page. */
  @RequireScope('audit:read')
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('action') action?: string,
    @Query('from') from?: string,
    @Query('until') until?: string,
    @Query('limit') limitText?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Record<string, unknown>> {
    const { tenantId } = callerOf(request);
    const limit = readLimit(limitText);
    const position = cursor ? decodePageToken(cursor, 'cursor') : undefined;
    const { records, last } = await this.audit.page(tenantId, {
      action: readAction(action),
      from: readTime('from', from),
      until: readTime('until', until),
      after: position && { at: position.statusAt, id: position.taskId },
      limit,
    });
    return {
      records,
      next_cursor: last ? encodePageToken({ statusAt: last.at, taskId: last.id }) : null,
    };
  }
}

function readAction(text: string | undefined): string | undefined {
  if (text === undefined || text === '') return undefined;
  if (typeof text === 'string' && AuditLog.knows(text)) return text;
  throw ProtocolError.invalidParams(
    'action',
    'must be an action of the audit log, such as token.create, or its first word, such as token',
  );
}

function readTime(field: string, text: string | undefined): Date | undefined {
  if (text === undefined || text === '') return undefined;
  const time = typeof text === 'string' && TIME.test(text) ? new Date(text) : undefined;
  if (time && !Number.isNaN(time.getTime())) return time;
  throw ProtocolError.invalidParams(
    field,
    'must be a time with its zone, such as 2026-12-31T08:00:00Z (write + as %2B)',
  );
}
