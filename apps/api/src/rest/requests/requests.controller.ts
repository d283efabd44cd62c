import {
  OPERATIONS,
  type OperationName,
  ProtocolError,
  SPEC_RULES,
  decodePageToken,
  encodePageToken,
  errorWire,
  isUuid,
  sseRecord,
} from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { AgentDirectory, ArtifactPages, RequestListing } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RequireScope } from '../../access/access.guard.js';
import { lastEventId, traceparent } from '../../core/call-headers.js';
import { CallRunner } from '../../core/call-runner.js';
import type { Exchange, RequestContext } from '../../core/request-context.js';
import { Failures } from '../../http/errors.js';
import { ReadMemoryPool } from '../../http/read-memory.js';
import { logContextOf } from '../../http/requests.js';
import { readLimit } from '../query.js';
import {
  encodeArtifactPage,
  encodeEvent,
  encodeRequest,
  encodeRequestWithTask,
  encodeRunError,
  readArtifactCursor,
} from './request-json.js';

/** A request is a task, in the words of Arbiter's clients. */
const PROFILE = 'arbiter';

/** A tenant's tasks, of all its agents and profiles, without the envelopes of A2A (wire contract ). */
@Controller('v1/requests')
export class RequestsController {
  constructor(
    private readonly agents: AgentDirectory,
    private readonly memory: ReadMemoryPool,
    private readonly runner: CallRunner,
    private readonly listing: RequestListing,
    private readonly artifactPages: ArtifactPages,
    private readonly failures: Failures,
  ) {}

  /** Newest status first: `{requests, next_cursor}`; the cursor is null on the last page. */
  @RequireScope(...OPERATIONS.listTasks.scopes)
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limit?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Record<string, unknown>> {
    const caller = callerOf(request);
    const after = cursor ? decodePageToken(cursor, 'cursor') : undefined;
    const page = { limit: readLimit(limit), after };
    const { tasks, more } = await this.listing.list(caller, page);
    const last = tasks.at(-1)?.task;
    const statusAt = last?.status?.timestamp;
    return {
      requests: tasks.map(({ task, agentId }) => encodeRequest(task, agentId)),
      next_cursor:
        more && statusAt ? encodePageToken({ statusAt: new Date(statusAt), taskId: last.id }) : null,
    };
  }

  /** The whole task, with the ids of its parent and its children, and the last error in the agent's code. */
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id')
  async get(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Record<string, unknown>> {
    const exchange = { request, reply };
    const call = await this.contextFor('getTask', id, exchange);
    const asked = { tenant: '', id, historyLength: undefined };
    const task = await this.runner.run({ operation: 'getTask', request: asked }, call, exchange);
    const relations = await this.listing.relations(call.tenantId, id);
    const error = await this.listing.lastError(call.tenantId, id);
    const isAuthor = call.scopes.includes('agents:write') || call.scopes.includes('admin');
    return {
      ...encodeRequestWithTask(task, call.agent.id, relations),
      error: error ? encodeRunError(error, isAuthor) : null,
    };
  }

  /**
   * The artifacts as of the first page, however large they are: `{request_id, as_of_event, artifacts, next_cursor}`;
   * the cursor is null on the last page. A large artifact goes on over several pages.
   */
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id/artifacts')
  async artifacts(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('cursor') cursor?: string,
  ): Promise<Record<string, unknown>> {
    const call = await this.contextFor('getTask', id, { request, reply });
    const position = cursor ? readArtifactCursor(cursor) : undefined;
    return encodeArtifactPage(id, await this.artifactPages.page(call, id, position));
  }

  /**
   * The log after `since_seq` (or `Last-Event-ID`, which wins), then live until the task has ended or waits for
   * its caller: `id: <sequence>` and `data:` as `encodeEvent` has it.
   */
  @RequireScope(...OPERATIONS.subscribeToTask.scopes)
  @Get(':id/events')
  async events(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query('since_seq') since?: string,
  ): Promise<void> {
    const call = await this.contextFor('subscribeToTask', id, { request, reply });
    const after = lastEventId(request) ?? readSequence(since);
    await this.streamLog({ ...call, lastEventId: after }, id, { request, reply });
  }

  /** 200 `{request_id, cancelled: true}`, or 404 with the reason. */
  @RequireScope(...OPERATIONS.cancelTask.scopes)
  @Post(':id/cancel')
  @HttpCode(200)
  async cancel(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Record<string, unknown>> {
    try {
      const exchange = { request, reply };
      const call = await this.contextFor('cancelTask', id, exchange);
      const asked = { tenant: '', id, metadata: undefined };
      await this.runner.run({ operation: 'cancelTask', request: asked }, call, exchange);
      return { request_id: id, cancelled: true };
    } catch (error) {
      if (!(error instanceof ProtocolError) || !NOT_CANCELED.has(error.kind)) throw error;
      reply.status(404);
      return { request_id: id, cancelled: false, reason: error.message };
    }
  }

  /**
   * The context of a call about a task of the tenant, whichever agent the task belongs to. Throws `task-not-found` for an
   * unknown id or another tenant's.
   */
  private async contextFor(
    operation: OperationName,
    id: string,
    { request, reply }: Exchange,
  ): Promise<RequestContext> {
    const { tenantId, principal, scopes, agents } = callerOf(request);
    const { access } = OPERATIONS[operation];
    logContextOf(request).taskId = id;
    const agent = isUuid(id)
      ? await this.agents.ofTask({ tenantId, principal, scopes, agents }, PROFILE, id)
      : undefined;
    if (!agent) throw ProtocolError.taskNotFound(id);
    return {
      tenantId,
      principal,
      scopes,
      agents,
      access,
      requestId: request.id,
      address: request.ip,
      agent,
      profile: PROFILE,
      rules: { ...SPEC_RULES, taskScope: 'tenant' },
      version: '1.0',
      extensions: [],
      traceparent: traceparent(request),
      memory: this.memory.leaseFor(tenantId, reply.raw, access === 'read'),
    };
  }

  private streamLog(context: RequestContext, id: string, exchange: Exchange): Promise<void> {
    const call = { operation: 'subscribeToTask', request: { tenant: '', id } } as const;
    return this.runner.stream(call, context, exchange, {
      item: (item) => [{ sequence: item.sequence, text: sseRecord(encodeEvent(item), item) }],
      error: (error) => {
        const { kind, message } = this.failures.of(error, exchange.request);
        const { reason: status } = errorWire(kind);
        return sseRecord(JSON.stringify({ error: { status, message } }), { event: 'error' });
      },
    });
  }
}

const NOT_CANCELED: ReadonlySet<string> = new Set(['task-not-found', 'task-not-cancelable']);

function readSequence(text: string | undefined): number {
  if (text === undefined || text === '') return 0;
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw ProtocolError.invalidParams('since_seq', 'must be the sequence of an event: 0, 1, 2 …');
}
