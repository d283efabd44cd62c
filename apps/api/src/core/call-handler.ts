import {
  answerContextOf,
  type AnswerContext,
  assertAccept,
  type Codec,
  type Frame,
  type Framing,
  isStreaming,
  ProtocolError,
  requestedTaskId,
  type SendResult,
  type StreamItem,
} from '@baton/a2a';
import { type Span, traceIdsOf, type Tracer, Tracing } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { holderOf } from '../http/holder-of.js';
import { LoopTurns, SMALL_WORK_BYTES } from '../http/loop-turns.js';
import { CallerLeft } from '../http/caller-left.js';
import { Failures } from '../http/failures.js';
import { type CallRequest, type Exchange, logContextOf } from '../http/requests.js';
import { type StreamWriter } from '../streams/event-streams.js';
import { type RecordData, type StreamOutput } from '../streams/sse-output.js';
import { traceparent } from './call-headers.js';
import { CallResolver, type DecodedRequest } from './call-resolver.js';
import { CallRunner } from './call-runner.js';

// One for all: an abort without a reason makes a DOMException with a stack, once a request.

/** How one binding of the protocol writes the answer to one call. */
export interface AnswerWriter {
  /** Sends the JSON of a result. */
  result(result: unknown): void;
  /** Sends an error. */
  error(failure: ProtocolError): void;
  /** The answer is a stream: this gets what gives the memory of the result back, to call it before the end of the answer. */
  readonly lend?: ((giveBack: () => void) => void) | undefined;
  /** Writes a stream instead. */
  stream(framing: Framing): FrameWriter;
}

/** How one binding writes the stream of one call. */
export interface FrameWriter {
  output(): StreamOutput;
  frame(frame: Frame): RecordData;
  /** The error that ends a stream; undefined if the output has it. */
  error(failure: ProtocolError): RecordData | undefined;
  /** What follows the last event. Unset: nothing does. */
  last?(): Promise<RecordData | undefined>;
}

/**
 * Answers decoded calls. A binding maps its requests to calls and writes the answers. The steps between are here, and
 * the same for all bindings.
 */
@Injectable()
export class CallHandler {
  constructor(
    private readonly calls: CallResolver,
    private readonly runner: CallRunner,
    private readonly failures: Failures,
    private readonly tracing: Tracing,
    private readonly turns: LoopTurns,
  ) {}

  /**
   * Does what a call asks for, and answers with its result or its stream.
   * @param writer unset: no answer is written (a notification)
   * @throws ProtocolError for every fault before the answer
   */
  async answer(decoded: DecodedRequest, exchange: Exchange, writer: AnswerWriter | undefined): Promise<void> {
    const { tracer } = this.tracing;
    if (!tracer) return this.answerCall(decoded, exchange, writer);
    const span = startSpan(tracer, decoded, exchange.request);
    try {
      await this.answerCall(decoded, exchange, writer, span);
    } catch (error) {
      if (exchange.reply.raw.destroyed) span.set({ 'baton.caller_left': true });
      else noteFailure(span, error);
      throw error;
    } finally {
      const { taskId, agent } = logContextOf(exchange.request);
      span.set({ 'gen_ai.agent.name': agent, 'baton.task.id': taskId });
      span.end();
    }
  }

  private async answerCall(
    decoded: DecodedRequest,
    exchange: Exchange,
    writer: AnswerWriter | undefined,
    span?: Span,
  ): Promise<void> {
    const { profile, codec, call } = decoded;
    const { request, reply } = exchange;
    logContextOf(request).operation = call.operation;
    assertAccept(profile, request.headers.accept, isStreaming(call));
    const { context: resolved, headers } = await this.calls.resolve(decoded, exchange);
    forgetMessage(decoded.params);
    span?.set({ 'baton.tenant.id': resolved.tenantId });
    const context = span ? { ...resolved, traceparent: span.traceparent } : resolved;
    const notes = logContextOf(request);
    notes.taskId = requestedTaskId(call);
    const { traceparent } = context;
    if (traceparent !== undefined) Object.assign(notes, { traceparent }, traceIdsOf(traceparent));
    reply.headers(headers());
    const answered = answerContextOf(context, call);
    if (!isStreaming(call)) {
      const result = await this.runner.run(call, context, exchange);
      // A stream has sent its headers by then.
      if (call.operation === 'sendMessage') reply.headers(headers(activatedIn(result as SendResult)));
      const { bytes } = context.memory;
      if (bytes > SMALL_WORK_BYTES) {
        await this.turns.take(holderOf(request), bytes);
        if (reply.raw.destroyed) throw new CallerLeft('it has not waited for its large answer');
      }
      writer?.result(codec.encodeResult(call.operation, result, answered));
      writer?.lend?.(context.memory.release);
    } else if (writer) {
      await this.runner.stream(
        call,
        context,
        exchange,
        this.streamWriter(codec, answered, writer, exchange, span),
      );
    } else await this.runner.start(call, context, exchange);
  }

  /**
   * What a streaming call yields, once it has passed every check, for `streamFrom`. Nothing is answered.
   * @throws ProtocolError for every fault before that
   */
  async itemsOf(
    decoded: DecodedRequest,
    exchange: Exchange,
  ): Promise<(signal: AbortSignal) => AsyncGenerator<StreamItem[]>> {
    const { call } = decoded;
    if (!isStreaming(call)) throw new Error('this operation yields nothing');
    const { context } = await this.calls.resolve(decoded, exchange);
    const { runner } = this;
    return async function* (signal) {
      try {
        for await (const items of runner.itemsOf(call, context, signal)) {
          yield items;
          // The first one, which may be large, has reached its reader.
          context.memory.release();
        }
      } finally {
        context.memory.release();
      }
    };
  }

  /** Answers with a stream of what several calls yield. */
  streamFrom(
    source: (signal: AbortSignal) => AsyncIterable<StreamItem[]>,
    exchange: Exchange,
    writer: Pick<StreamWriter, 'output' | 'item' | 'last'> & Pick<FrameWriter, 'error'>,
  ): Promise<void> {
    const error = (failure: unknown): RecordData | undefined =>
      writer.error(this.failureOf(failure, exchange.request));
    const { output, item, last } = writer;
    return this.runner.streamFrom(source, exchange, { output, item, error, ...(last && { last }) });
  }

  /** Answers with the error that anything thrown is for the caller, unless the caller has disconnected. */
  fail(error: unknown, { request, reply }: Exchange, writer: Pick<AnswerWriter, 'error'>): void {
    if (error instanceof CallerLeft || reply.raw.destroyed) reply.hijack();
    else writer.error(this.failureOf(error, request));
  }

  private failureOf(error: unknown, request: CallRequest): ProtocolError {
    const failure = this.failures.toProtocolError(error, request);
    logContextOf(request).errorKind = failure.kind;
    return failure;
  }

  private streamWriter(
    codec: Codec,
    answered: AnswerContext,
    writer: AnswerWriter,
    { request }: Exchange,
    span: Span | undefined,
  ): StreamWriter {
    const encode = codec.streamEncoder(answered);
    const frames = writer.stream(codec.framing);
    return {
      output: () => frames.output(),
      item: (item) => encode(item).map((frame) => ({ sequence: frame.sequence, data: frames.frame(frame) })),
      error: (error) => {
        if (span) noteFailure(span, error);
        return frames.error(this.failureOf(error, request));
      },
      ...(frames.last && { last: () => frames.last?.() ?? Promise.resolve(undefined) }),
    };
  }
}

/** The call has the message. A stream may last for hours, and the functions of its binding still have the parsed body. */
function forgetMessage(params: unknown): void {
  if (typeof params === 'object' && params !== null && 'message' in params) params.message = undefined;
}

/** The span of a call, in the trace of its caller. Its name is the method, as the binding calls it. */
function startSpan(tracer: Tracer, decoded: DecodedRequest, request: CallRequest): Span {
  const { profile, codec } = decoded;
  const { rpcMethod = 'call' } = logContextOf(request);
  return tracer.start(rpcMethod, traceparent(request, decoded.traceparent), {
    kind: 'server',
    attributes: {
      'rpc.method': rpcMethod,
      'http.request.method': request.isGrpc ? undefined : request.method,
      'http.route': request.isGrpc ? undefined : request.routeOptions.url,
      'rpc.system.name': request.isGrpc ? 'grpc' : undefined,
      'baton.profile': profile.name,
      'baton.protocol.version': codec.version,
      'baton.request.id': request.id,
    },
  });
}

const OUR_FAULTS: ReadonlySet<string> = new Set(['internal', 'unavailable']);

/** A span of a server has failed only if the server is to blame. What the caller did wrong is an attribute. */
function noteFailure(span: Span, error: unknown): void {
  const kind = error instanceof ProtocolError ? error.kind : 'internal';
  if (OUR_FAULTS.has(kind)) span.fail(kind);
  else span.set({ 'error.type': kind });
}

/** The extensions that the reply of an agent names. */
function activatedIn({ $case, value }: SendResult): string[] {
  if ($case === 'message') return value.extensions;
  const ofStatus = value.status?.message?.extensions ?? [];
  return [...ofStatus, ...value.artifacts.flatMap(({ extensions }) => extensions)];
}
