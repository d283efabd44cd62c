import { type Frame, ProtocolError, resultOf } from '@baton/a2a';
import type { AnswerWriter, FrameWriter } from '../core/call-handler.js';
import type { StreamOutput } from '../streams/sse-output.js';
import { GrpcReply } from './grpc-reply.js';

/** Makes the bytes of the JSON of a result, or of a frame with its sequence. */
export type Encode = (json: unknown, sequence?: number) => Buffer;

/** Writes the answer to one call. */
export class GrpcAnswer implements AnswerWriter {
  constructor(
    private readonly reply: GrpcReply,
    private readonly encode: Encode,
  ) {}

  result(result: unknown): void {
    this.reply.message(this.encode(result), () => undefined);
    this.reply.ok();
  }

  error(failure: ProtocolError): void {
    this.reply.fail(failure);
  }

  stream(): FrameWriter {
    return new GrpcStream(this.reply, this.encode);
  }
}

/** A stream as the messages of a call. Its trailers have the sequence of the last one, and the error that ended it. */
class GrpcStream implements FrameWriter, StreamOutput {
  /** HTTP/2 has pings. */
  readonly heartbeat = undefined;
  private failure: ProtocolError | undefined;
  private lastSequence = 0;

  constructor(
    private readonly reply: GrpcReply,
    private readonly encode: Encode,
  ) {}

  output(): StreamOutput {
    return this;
  }

  frame(frame: Frame): Buffer {
    this.lastSequence = frame.sequence;
    return this.encode(resultOf(frame), frame.sequence);
  }

  error(failure: ProtocolError): undefined {
    this.failure = failure;
  }

  get destroyed(): boolean {
    return this.reply.raw.destroyed;
  }

  open(onClose: () => void): void {
    this.reply.raw.once('close', onClose);
    this.reply.open();
  }

  /** HTTP/2 has sent them by itself. */
  flush(): void {}

  write(bytes: Buffer, onTaken: () => void): void {
    this.reply.message(bytes, onTaken);
  }

  explain(reason: string): undefined {
    this.failure = new ProtocolError('unavailable', reason);
  }

  end(): void {
    const trailers = { 'last-event-id': String(this.lastSequence) };
    if (this.failure) this.reply.fail(this.failure, trailers);
    else this.reply.ok(trailers);
  }

  destroy(): void {
    this.reply.destroy();
  }
}
