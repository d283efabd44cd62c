import { type Frame, frameRecord, type Framing, ProtocolError, sseRecord } from '@baton/a2a';
import type { FastifyReply } from 'fastify';
import { SseOutput } from './sse-output.js';

/** How a binding of HTTP writes results and errors as JSON. */
interface JsonEncoder {
  /** The JSON of an enveloped frame. Unset: the binding has no envelope. */
  envelope?(resultJson: string): string;
  encodeError(failure: ProtocolError): string;
}

/** Writes the frames of a stream as server-sent events. */
export const sseFrames = (reply: FastifyReply, framing: Framing, encoder: JsonEncoder) => ({
  output: () => SseOutput.hijack(reply, framing.commentEnd),
  frame: (frame: Frame) => frameRecord(framing, frame, (json) => encoder.envelope?.(json) ?? json),
  error: (failure: ProtocolError) => sseRecord(encoder.encodeError(failure), { event: framing.errorEvent }),
});
