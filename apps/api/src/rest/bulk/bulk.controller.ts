import { OPERATIONS, ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { BulkOperations, isSeenBy } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { actorOf } from '../../access/actor.js';
import { AgentFinder } from '../../core/agent-finder.js';
import { BodyReader } from '../../http/body-reader.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT, oneMore, pageOf, readPage } from '../paging.js';
import {
  bulkAnswer,
  bulkList,
  bulkPreview,
  decodeNewBulk,
  encodeBulk,
  encodeBulkPreview,
  newBulk,
} from './bulk-json.js';

type BulkAnswer = z.infer<typeof bulkAnswer>;

/** Operations on many tasks of a tenant. */
@RequireScope(...OPERATIONS.sendMessage.scopes, ...OPERATIONS.cancelTask.scopes)
@Controller('v1/bulk-operations')
export class BulkController {
  constructor(
    private readonly operations: BulkOperations,
    private readonly finder: AgentFinder,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({
    id: 'listBulkOperations',
    summary:
      'Lists the operations on many tasks that the token has begun, the newest first; with `admin`, all of the tenant',
    answer: bulkList,
  })
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof bulkList>> {
    const caller = callerOf(request);
    const asked = readPage(limit, cursor);
    const found = await this.operations.list(caller, oneMore(asked));
    const { page, nextCursor } = pageOf(found, ({ id }) => id, asked);
    const seen = page.filter((operation) => isSeenBy(caller, operation));
    return { bulk_operations: seen.map(encodeBulk), next_cursor: nextCursor };
  }

  @Describe({
    id: 'beginBulkOperation',
    summary:
      'Begins an operation on all tasks that are there now and match the filter. Workers do it, and another worker continues if one dies. ' +
      'With `dry_run` it only says what would be done',
    body: newBulk,
    answer: bulkAnswer,
    otherAnswers: { 200: bulkPreview },
    answerHeaders: ['Location'],
  })
  @Post()
  @HttpCode(201)
  async begin(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<BulkAnswer | z.infer<typeof bulkPreview>> {
    const caller = callerOf(request);
    const { action, agent, isDryRun, ...given } = decodeNewBulk(await this.bodies.json(request));
    if (given.filter.contextId !== undefined && agent === undefined) {
      throw ProtocolError.invalidParams(
        'filter.context_id',
        'needs `agent` as well: a context belongs to an agent',
      );
    }
    const agentId = await this.finder.idOf(caller, agent);
    const filter = { ...given.filter, ...(agentId !== undefined && { agentId }) };
    if (isDryRun) {
      reply.status(200);
      return encodeBulkPreview(action, await this.operations.preview(caller, action, filter));
    }
    const begun = await this.operations.begin(caller, action, filter, actorOf(request));
    reply.header('location', `/v1/bulk-operations/${begun.id}`);
    return encodeBulk(begun);
  }

  @Describe({ id: 'getBulkOperation', summary: 'Shows an operation on many tasks', answer: bulkAnswer })
  @Get(':id')
  async get(@Param('id') id: string, @Req() request: FastifyRequest): Promise<BulkAnswer> {
    return encodeBulk(await this.operations.find(callerOf(request), id));
  }

  @Describe({
    id: 'cancelBulkOperation',
    summary: 'Ends an operation on many tasks. What is done stays done. 409 if it has ended',
    answer: bulkAnswer,
  })
  @Post(':id/cancel')
  @HttpCode(200)
  async cancel(@Param('id') id: string, @Req() request: FastifyRequest): Promise<BulkAnswer> {
    return encodeBulk(await this.operations.cancel(callerOf(request), id, actorOf(request)));
  }
}
