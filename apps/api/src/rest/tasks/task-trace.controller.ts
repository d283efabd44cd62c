import { OPERATIONS, ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import { CallDetails, TaskForks, TaskReplays, TaskTraces } from '@baton/tasks';
import { Controller, Get, Param, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { RequireScope, RequireScopeToo } from '../../access/route-access.js';
import { Describe } from '../../openapi/route.js';
import { encodeModelCall } from './model-call-json.js';
import { maySeeCode } from './may-see-code.js';
import { TaskCallResolver } from './task-call-resolver.js';
import { linksOf } from './task-links.js';
import {
  callDetailAnswer,
  callRecordAnswer,
  encodeCallDetail,
  encodeCallRecord,
  encodeSpan,
  replayAnswer,
  traceAnswer,
} from './trace-json.js';

/** How a task went: its spans, the model and tool calls, and what its code gets to go through its steps again. */
@Controller('v1/tasks')
export class TaskTraceController {
  constructor(
    private readonly calls: TaskCallResolver,
    private readonly traces: TaskTraces,
    private readonly details: CallDetails,
    private readonly replays: TaskReplays,
    private readonly forks: TaskForks,
    private readonly environment: Environment,
  ) {}

  @Describe({
    id: 'getTrace',
    summary:
      'Shows what happened in the task, and how long each part took: turns, waits for a slot, attempts, calls of models and tools, ' +
      'questions, children, push deliveries, and for tokens that may change agents durable steps and the deliveries to webhooks',
    answer: traceAnswer,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @Get(':id/trace')
  async trace(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof traceAnswer>> {
    const { call, task } = await this.calls.resolveSeen(id, { request, reply });
    const { spans, modelCalls } = await this.traces.read(call, id, maySeeCode(call));
    const { modelPrices: prices, modelPricesCurrency } = this.environment;
    return {
      task_id: id,
      now: new Date().toISOString(),
      spans: spans.map(encodeSpan),
      model_calls: modelCalls.map((each) => encodeModelCall(each, prices)),
      currency: prices ? modelPricesCurrency : null,
      ...(await linksOf(this.forks, call.tenantId, task)),
    };
  }

  @Describe({
    id: 'getCall',
    summary:
      'Shows what a call of a model or tool has said, or what a step has returned: the answer of the model, the input and output of the tool, ' +
      'or the result. `entry` is that of its span. Without `model`, `tool` and `step` the task has none with that entry',
    answer: callDetailAnswer,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @RequireScopeToo('agents:write')
  @Get(':id/trace/:entry')
  async callDetail(
    @Param('id') id: string,
    @Param('entry') entry: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof callDetailAnswer>> {
    const position = readEntry(entry);
    const { call } = await this.calls.resolveSeen(id, { request, reply });
    return encodeCallDetail(id, position, await this.details.read(call.tenantId, id, position));
  }

  @Describe({
    id: 'getCallRecord',
    summary:
      'Shows what a model was sent in a call, and what it said: system prompt, messages, tools, parameters, answer, reason of the end, ' +
      'tokens. `entry` is that of its span. The setting `record` of the agent says which calls are recorded',
    answer: callRecordAnswer,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @RequireScopeToo('records:read')
  @Get(':id/trace/:entry/record')
  async callRecord(
    @Param('id') id: string,
    @Param('entry') entry: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof callRecordAnswer>> {
    const position = readEntry(entry);
    const { call } = await this.calls.resolveSeen(id, { request, reply });
    return encodeCallRecord(id, position, await this.details.record(call.tenantId, id, position));
  }

  @Describe({
    id: 'getReplay',
    summary:
      'Shows what the process of an agent in code would get for the present turn of a task that has not ended, with all recorded steps ' +
      'and their results, to replay them against other code',
    answer: replayAnswer,
  })
  @RequireScope(...OPERATIONS.getTask.scopes)
  @RequireScopeToo('agents:write')
  @Get(':id/replay')
  async replay(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof replayAnswer>> {
    const call = await this.calls.resolve('getTask', id, { request, reply });
    const turn = await this.replays.build(call, id);
    return { task_id: id, turn: turn ? { ...turn } : null };
  }
}

function readEntry(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw ProtocolError.invalidParams('entry', 'must be the `entry` of a span: 1, 2, 3 …');
}
