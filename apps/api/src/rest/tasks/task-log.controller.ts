import { errorWire, OPERATIONS, ProtocolError, sseRecord } from '@baton/a2a';
import { ArtifactPages, TaskLogPages } from '@baton/tasks';
import { Controller, Get, Param, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope, RequireScopeToo } from '../../access/route-access.js';
import { lastEventId } from '../../core/call-headers.js';
import type { RequestContext } from '../../core/call-resolver.js';
import { CallRunner } from '../../core/call-runner.js';
import { Failures } from '../../http/failures.js';
import type { HttpExchange } from '../../http/requests.js';
import { QueryPipe } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { SseOutput } from '../../streams/sse-output.js';
import { CURSOR, LIMIT } from '../paging.js';
import { artifactPage, encodeArtifactPage, readArtifactCursor } from './artifact-json.js';
import { TaskCallResolver } from './task-call-resolver.js';
import {
  consolePage,
  encodeConsolePage,
  encodeEvent,
  eventTimes,
  readConsoleCursor,
} from './task-log-json.js';

const SINCE = new QueryPipe(
  {
    description: 'The sequence of the last event that the caller has',
    schema: { type: 'integer', minimum: 0, default: 0 },
  },
  (text, name) => {
    if (text === undefined || text === '') return 0;
    if (/^\d{1,15}$/.test(text)) return Number(text);
    throw ProtocolError.invalidParams(name, 'must be the sequence of an event: 0, 1, 2 …');
  },
);

/** The output of a task: its events, its artifacts, and the console of the agent's code. */
@Controller('v1/tasks')
export class TaskLogController {
  constructor(
    private readonly calls: TaskCallResolver,
    private readonly runner: CallRunner,
    private readonly logPages: TaskLogPages,
    private readonly artifactPages: ArtifactPages,
    private readonly failures: Failures,
  ) {}

  @Describe({
    id: 'listArtifacts',
    summary: 'Lists the artifacts as of the first page. A large artifact continues on further pages',
    answer: artifactPage,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id/artifacts')
  async artifacts(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof artifactPage>> {
    const call = await this.calls.resolve('getTask', id, { request, reply });
    const position = cursor ? readArtifactCursor(cursor) : undefined;
    return encodeArtifactPage(id, await this.artifactPages.page(call, id, position));
  }

  @Describe({
    id: 'listConsoleLines',
    summary: "Lists what the agent's code has written to its console during the task, the oldest line first",
    answer: consolePage,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @RequireScopeToo('agents:write')
  @Get(':id/logs')
  async logs(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof consolePage>> {
    const after = readConsoleCursor(cursor);
    const { call } = await this.calls.resolveSeen(id, { request, reply });
    const { lines, more } = await this.logPages.consoleLines(call.tenantId, id, { after, limit });
    return encodeConsolePage(id, lines, more);
  }

  @Describe({
    id: 'streamEvents',
    summary:
      'Streams the events after a number (`Last-Event-ID` wins over `since_seq`), first stored ones, then live ones, until ' +
      'the task has ended or waits for its caller. Each has the sequence as `id`, and as `data` the StreamResponse of ' +
      'A2A 1.0 as JSON with the sequence as `seq`',
    answer: z.string(),
    answerTypes: ['text/event-stream'],
    requestHeaders: ['Last-Event-ID'],
  })
  @RequireScope(...OPERATIONS.subscribeToTask.scopes)
  @Get(':id/events')
  async events(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query('since_seq', SINCE) since: number,
  ): Promise<void> {
    const call = await this.calls.resolve('subscribeToTask', id, { request, reply });
    const after = lastEventId(request) ?? since;
    await this.streamLog({ ...call, lastEventId: after }, id, { request, reply });
  }

  @Describe({
    id: 'listEventTimes',
    summary:
      'Lists when the events after a number were stored, at most 1,000 of them. With `more`, ask again with the last `seq`',
    answer: eventTimes,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id/event-times')
  async eventTimes(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Query('since_seq', SINCE) since: number,
  ): Promise<z.infer<typeof eventTimes>> {
    const { call } = await this.calls.resolveSeen(id, { request, reply });
    const { times, more } = await this.logPages.eventTimes(call.tenantId, id, since);
    const each = times.map(({ sequence, at }) => ({ seq: sequence, at: at.toISOString() }));
    return { task_id: id, times: each, more };
  }

  private streamLog(context: RequestContext, id: string, exchange: HttpExchange): Promise<void> {
    const call = { operation: 'subscribeToTask', request: { tenant: '', id } } as const;
    return this.runner.stream(call, context, exchange, {
      output: () => SseOutput.hijack(exchange.reply),
      item: (item) => [{ sequence: item.sequence, data: sseRecord(encodeEvent(item), item) }],
      error: (error) => {
        const { kind, message } = this.failures.toProtocolError(error, exchange.request);
        const { reason: status } = errorWire(kind);
        return sseRecord(JSON.stringify({ error: { status, message } }), { event: 'error' });
      },
    });
  }
}
