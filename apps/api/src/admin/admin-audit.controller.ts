import { AuditLog } from '@baton/identity';
import { TenantSettings } from '@baton/tasks';
import { Controller, Get, Query, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Readable } from 'node:stream';
import { z } from 'zod';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { textQuery } from '../openapi/query-pipe.js';
import { Describe } from '../openapi/route.js';
import { ACTION, FROM, UNTIL } from '../rest/audit/audit.controller.js';
import { auditPage, encodeAuditPage, readAuditCursor } from '../rest/audit/audit-json.js';
import { CURSOR, LIMIT } from '../rest/paging.js';

const TENANT = textQuery('Slug of the tenant; left out = all, and the platform itself');
const NDJSON = 'application/x-ndjson';
/** Records that an export holds in memory. */
const RECORDS_AT_ONCE = 500;

type Filter = Omit<Parameters<AuditLog['page']>[1], 'limit' | 'after'>;

/** The audit log of all tenants and of the platform. Read-only: the changes themselves write it. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/audit')
export class AdminAuditController {
  constructor(
    private readonly audit: AuditLog,
    private readonly settings: TenantSettings,
  ) {}

  @Describe({
    id: 'listAuditRecords',
    summary: 'Lists who changed what, the latest first',
    answer: auditPage,
  })
  @OperatorRoles('read', 'support')
  @Get()
  async list(
    @Query('tenant', TENANT) slug: string | undefined,
    @Query('action', ACTION) action: string | undefined,
    @Query('from', FROM) from: Date | undefined,
    @Query('until', UNTIL) until: Date | undefined,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof auditPage>> {
    const after = readAuditCursor(cursor);
    const tenantId = await this.tenantIdOf(slug);
    return encodeAuditPage(await this.audit.page(tenantId, { action, from, until, after, limit }));
  }

  @Describe({
    id: 'exportAuditRecords',
    summary: 'Writes all of these records as JSON lines, the latest first. An error breaks the connection',
    answer: z.string(),
    answerTypes: [NDJSON],
  })
  @OperatorRoles('read', 'support')
  @Get('export')
  async export(
    @Res() reply: FastifyReply,
    @Query('tenant', TENANT) slug: string | undefined,
    @Query('action', ACTION) action: string | undefined,
    @Query('from', FROM) from: Date | undefined,
    @Query('until', UNTIL) until: Date | undefined,
  ): Promise<void> {
    const pages = this.linesOf(await this.tenantIdOf(slug), { action, from, until });
    // The first page is read before the status is sent, so that an outage of the database is an error, not a cut.
    const first = await pages.next();
    const rest = Readable.from(join(first.value ?? '', pages), { objectMode: false });
    await reply.header('content-type', NDJSON).send(rest);
  }

  /** The lines of each page. */
  private async *linesOf(tenantId: string | undefined, filter: Filter): AsyncGenerator<string, undefined> {
    let after: Parameters<AuditLog['page']>[1]['after'];
    do {
      const page = await this.audit.page(tenantId, { ...filter, after, limit: RECORDS_AT_ONCE });
      yield page.records.map((record) => `${JSON.stringify(record)}\n`).join('');
      after = page.last;
    } while (after);
  }

  private async tenantIdOf(slug: string | undefined): Promise<string | undefined> {
    return slug === undefined ? undefined : (await this.settings.find(slug)).id;
  }
}

async function* join(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  if (first !== '') yield first;
  yield* rest;
}
