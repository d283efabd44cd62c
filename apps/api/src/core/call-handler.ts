import {
  answerContextOf,
  type AnswerContext,
  assertAccept,
  type Codec,
  frameRecord,
  isStreaming,
  type ProtocolError,
  requestedTaskId,
  sseRecord,
} from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CallerLeft } from '../http/body.js';
import { Failures } from '../http/errors.js';
import { logContextOf } from '../http/requests.js';
import type { SseEncoding } from '../streams/sse-stream.js';
import { CallRunner } from './call-runner.js';
import { CallResolver, type DecodedRequest, type Exchange } from './request-context.js';

/** How one binding of the protocol writes the answer to one call. */
export interface AnswerWriter {
  /** Sends the JSON of a result. */
  result(result: unknown): void;
  /** Sends an error. */
  error(failure: ProtocolError): void;
  /** The text of an enveloped frame of a stream. */
  encodeResult(result: unknown): string;
  /** The text of the error that ends a stream. */
  encodeError(failure: ProtocolError): string;
}

/**
 * Answers decoded calls. A binding maps its requests to calls and writes the answers; whatever lies between is here, and
 * the same for all bindings.
 */
@Injectable()
export class CallHandler {
  constructor(
    private readonly calls: CallResolver,
    private readonly runner: CallRunner,
    private readonly failures: Failures,
  ) {}

  /**
   * Does what a call asks for, and answers with its result or its stream.
   * @param writer unset: nobody waits for the result, and nothing is answered
   * @throws ProtocolError for whatever is wrong before there is an answer
   */
  async answer(decoded: DecodedRequest, exchange: Exchange, writer: AnswerWriter | undefined): Promise<void> {
    const { profile, codec, call } = decoded;
    const { request, reply } = exchange;
    assertAccept(profile, request.headers.accept, isStreaming(call));
    const { context, headers } = await this.calls.resolve(decoded, exchange);
    logContextOf(request).taskId = requestedTaskId(call);
    reply.headers(headers);
    const answered = answerContextOf(context, call);
    if (!isStreaming(call)) {
      const result = await this.runner.run(call, context, exchange);
      writer?.result(codec.encodeResult(call.operation, result, answered));
    } else if (writer) {
      const encoding = this.encodingOf(codec, answered, writer, exchange);
      await this.runner.stream(call, context, exchange, encoding);
    } else await this.runner.start(call, context, exchange);
  }

  /** Answers with the error that anything thrown is for the caller, unless the caller has disconnected. */
  fail(error: unknown, { request, reply }: Exchange, writer: Pick<AnswerWriter, 'error'>): void {
    if (error instanceof CallerLeft || reply.raw.destroyed) reply.hijack();
    else writer.error(this.failures.of(error, request));
  }

  private encodingOf(
    codec: Codec,
    answered: AnswerContext,
    writer: AnswerWriter,
    { request }: Exchange,
  ): SseEncoding {
    const { framing } = codec;
    const encode = codec.streamEncoder(answered);
    const envelope = (result: unknown): string => writer.encodeResult(result);
    return {
      item: (item) =>
        encode(item).map((frame) => ({
          sequence: frame.sequence,
          text: frameRecord(framing, frame, envelope),
        })),
      error: (error) =>
        sseRecord(writer.encodeError(this.failures.of(error, request)), { event: framing.errorEvent }),
    };
  }
}
