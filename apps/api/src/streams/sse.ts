import { type Frame, frameRecord, type Framing, type ProtocolError, sseRecord } from '@baton/a2a';
import type { FastifyReply } from 'fastify';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { StreamOutput } from './event-stream.js';

/** A stream as server-sent events on a raw response. */
export class SseOutput implements StreamOutput {
  readonly heartbeat = ': heartbeat\n\n';

  constructor(
    private readonly response: ServerResponse,
    private readonly headers: OutgoingHttpHeaders,
  ) {}

  /** Takes the reply out of Fastify's hands, with the headers that it has. */
  static of(reply: FastifyReply): SseOutput {
    const headers = reply.getHeaders() as OutgoingHttpHeaders;
    reply.hijack();
    return new SseOutput(reply.raw, headers);
  }

  get destroyed(): boolean {
    return this.response.destroyed;
  }

  open(onClose: () => void): void {
    const { response } = this;
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      ...this.headers,
    });
    response.flushHeaders();
    response.once('close', onClose);
    // A broken connection also closes the response, and that is handled there.
    response.on('error', () => undefined);
  }

  write(bytes: Buffer, onTaken: () => void): void {
    this.response.write(bytes, onTaken);
  }

  explain(reason: string): string {
    return `: closed: ${reason}\n\n`;
  }

  end(): void {
    this.response.end();
  }

  destroy(): void {
    this.response.destroy();
  }
}

/** How a binding of HTTP writes results and errors as JSON. */
interface JsonEncoder {
  /** The JSON of an enveloped frame. Unset: the binding has no envelope. */
  envelope?(resultJson: string): string;
  encodeError(failure: ProtocolError): string;
}

/** Writes the frames of a stream as server-sent events. */
export const sseFrames = (reply: FastifyReply, framing: Framing, encoder: JsonEncoder) => ({
  output: () => SseOutput.of(reply),
  frame: (frame: Frame) => frameRecord(framing, frame, (json) => encoder.envelope?.(json) ?? json),
  error: (failure: ProtocolError) => sseRecord(encoder.encodeError(failure), { event: framing.errorEvent }),
});
