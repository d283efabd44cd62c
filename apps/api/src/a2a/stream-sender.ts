import type { StreamItem } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { logContextOf } from '../http/request-log.js';
import { OpenStreams } from './open-streams.js';
import { type SseEncoding, SseStream, type StreamEnd } from './sse-stream.js';

/** Whom a stream goes to, and how its items are written. */
export interface StreamTarget extends SseEncoding {
  /** Aborted when the stream is over. */
  caller: AbortController;
  headers: Record<string, string>;
  request: FastifyRequest;
  reply: FastifyReply;
}

/** Takes a reply out of Fastify's hands and streams to it. */
@Injectable()
export class StreamSender {
  constructor(
    private readonly streams: OpenStreams,
    private readonly environment: Environment,
  ) {}

  /** Resolves when the stream is over, however it ended. */
  async send(items: AsyncIterable<StreamItem>, target: StreamTarget): Promise<void> {
    const { caller, headers, request, reply } = target;
    const {
      sseHeartbeatMs: heartbeatMs,
      sseBufferBytes: bufferBytes,
      sseStallMs: stallMs,
    } = this.environment;
    const notes = logContextOf(request);
    const onEnd = (end: StreamEnd): void => {
      notes.stream = end;
      notes.lastSequence = stream.lastSequence;
    };
    reply.hijack();
    const stream = new SseStream(reply.raw, caller, { headers, heartbeatMs, bufferBytes, stallMs, onEnd });
    this.streams.add(stream);
    try {
      stream.open();
      notes.streamedAt = performance.now();
      await stream.pipe(items, target);
    } finally {
      this.streams.remove(stream);
    }
  }
}
