import {
  type CallContext,
  type Requests,
  type Results,
  type RpcPath,
  type StreamItem,
  type StreamingCall,
  type StreamingOperationName,
  type StreamingOperations,
  type UnaryCall,
  type UnaryOperationName,
  type UnaryOperations,
  answerContextOf,
  answeredTaskId,
  frameRecord,
  isStreaming,
  requestedTaskId,
  sseRecord,
} from '@baton/a2a';
import { OperationTable } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Failures } from '../http/errors.js';
import { CallerLeft } from '../http/body.js';
import { logContextOf } from '../http/request-log.js';
import { Traffic } from '../http/traffic.js';
import { type AdmittedCall, Admission } from './admission.js';
import { abortedWhenGone, CALLER_GONE } from './caller-gone.js';
import { PeekedItems } from './peeked-items.js';
import { RpcAnswer } from './rpc-answer.js';
import type { SseEncoding } from './sse-stream.js';
import { StreamQuota } from './stream-quota.js';
import { StreamSender } from './stream-sender.js';

/** From an HTTP request to an operation and back, for every profile alike. */
@Injectable()
export class RpcHandler {
  constructor(
    private readonly admission: Admission,
    private readonly table: OperationTable,
    private readonly sender: StreamSender,
    private readonly quota: StreamQuota,
    private readonly traffic: Traffic,
    private readonly failures: Failures,
  ) {}

  /** Answer one request. Never rejects: whatever goes wrong becomes an answer, if anybody is there to read it. */
  async dispatch(
    path: RpcPath,
    agent: string | undefined,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const answer = new RpcAnswer(path, request, reply);
    try {
      const call = await this.admission.admit(path, agent, answer);
      logContextOf(request).taskId = requestedTaskId(call.operation);
      reply.headers(call.headers);
      if (isStreaming(call.operation)) await this.stream(call.operation, call, answer);
      else await this.answer(call.operation, call, answer);
    } catch (error) {
      if (error instanceof CallerLeft || reply.raw.destroyed) reply.hijack();
      else answer.error(this.failures.of(error, request));
    }
  }

  private async answer(
    { operation, request }: UnaryCall,
    call: AdmittedCall,
    answer: RpcAnswer,
  ): Promise<void> {
    const caller = abortedWhenGone(answer.reply);
    this.traffic.add(caller);
    try {
      const result = await this.runUnary(operation, request, call.context, caller.signal);
      logContextOf(answer.request).taskId ??= answeredTaskId(operation, result);
      if (call.isNotification) answer.none();
      else
        answer.result(
          call.codec.encodeResult(operation, result, answerContextOf(call.context, call.operation)),
        );
    } finally {
      this.traffic.remove(caller);
    }
  }

  private stream(operation: StreamingCall, call: AdmittedCall, answer: RpcAnswer): Promise<void> {
    const caller = abortedWhenGone(answer.reply);
    return this.quota.during(call.context.tenantId, caller.signal, () =>
      this.streamTo(caller, operation, call, answer),
    );
  }

  private async streamTo(
    caller: AbortController,
    { operation, request }: StreamingCall,
    call: AdmittedCall,
    answer: RpcAnswer,
  ): Promise<void> {
    const items = new PeekedItems(
      this.runStreaming(operation, request, call.context, caller.signal),
      call.context.memory.release,
    );
    noteTask(operation, await items.peek(call.isNotification ? Infinity : undefined), answer.request);
    if (call.isNotification) {
      caller.abort(CALLER_GONE);
      answer.none();
      return;
    }
    await this.sender.send(items, {
      caller,
      headers: { ...call.headers, 'x-request-id': answer.request.id },
      request: answer.request,
      reply: answer.reply,
      ...this.encodingFor(call, answer),
    });
  }

  private encodingFor({ codec, context, operation }: AdmittedCall, answer: RpcAnswer): SseEncoding {
    const { framing } = codec;
    const encode = codec.streamEncoder(answerContextOf(context, operation));
    const envelope = (result: unknown): string => answer.encodeResult(result);
    return {
      item: (item) =>
        encode(item).map((frame) => ({
          sequence: frame.sequence,
          text: frameRecord(framing, frame, envelope),
        })),
      error: (error) =>
        sseRecord(answer.encodeError(this.failures.of(error, answer.request)), {
          event: framing.errorEvent,
        }),
    };
  }

  private runUnary<K extends UnaryOperationName>(
    operation: K,
    request: Requests[K],
    context: CallContext,
    signal: AbortSignal,
  ): Promise<Results[K]> {
    const operations: UnaryOperations = this.table.operations;
    return operations[operation](context, request, signal);
  }

  private runStreaming<K extends StreamingOperationName>(
    operation: K,
    request: Requests[K],
    context: CallContext,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem> {
    const operations: StreamingOperations = this.table.operations;
    return operations[operation](context, request, signal);
  }
}

/** In a function of its own, so that no stream keeps the task it began with: it may be large. */
function noteTask(
  operation: StreamingOperationName,
  first: StreamItem | undefined,
  request: FastifyRequest,
): void {
  if (first) logContextOf(request).taskId ??= answeredTaskId(operation, first);
}
