import type { StreamItem } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { logContextOf } from '../http/request-log.js';
import { type SseEncoding, SseStream, type StreamEnd } from './sse-stream.js';

/** Who gets a stream, and how its items are written. */
export interface StreamTarget extends SseEncoding {
  /** Aborted when the stream is over. */
  caller: AbortController;
  headers: Record<string, string>;
  request: FastifyRequest;
  reply: FastifyReply;
}

/** The streams that this process serves. A shutdown ends them in a way that lets callers resume. */
@Injectable()
export class EventStreams {
  private readonly open = new Set<SseStream>();
  private closed = false;

  constructor(
    private readonly metrics: Metrics,
    private readonly environment: Environment,
  ) {}

  /** Takes the reply out of Fastify's hands and streams to it. Resolves when the stream is over, however it ended. */
  async send(items: AsyncIterable<StreamItem>, target: StreamTarget): Promise<void> {
    const { caller, request, reply } = target;
    const {
      sseHeartbeatMs: heartbeatMs,
      sseBufferBytes: bufferBytes,
      sseStallMs: stallMs,
    } = this.environment;
    const headers = { ...target.headers, 'x-request-id': request.id };
    const log = logContextOf(request);
    const onEnd = (end: StreamEnd): void => {
      log.stream = end;
      log.lastSequence = stream.lastSequence;
    };
    reply.hijack();
    const stream = new SseStream(reply.raw, caller, { headers, heartbeatMs, bufferBytes, stallMs, onEnd });
    this.add(stream);
    try {
      stream.open();
      log.streamedAt = performance.now();
      await stream.pipe(items, target);
    } finally {
      this.open.delete(stream);
      this.metrics.openStreams.dec();
    }
  }

  /** Ends every stream, and those that open from now on, without a final event. */
  closeAll(): void {
    this.closed = true;
    for (const stream of this.open) endForShutdown(stream);
  }

  private add(stream: SseStream): void {
    this.open.add(stream);
    this.metrics.openStreams.inc();
    if (this.closed) endForShutdown(stream);
  }
}

const endForShutdown = (stream: SseStream): void => stream.close('shutdown', 'this server is shutting down');
