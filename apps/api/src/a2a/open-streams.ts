import { Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { SseStream } from './sse-stream.js';

/** The streams this process serves, so that a shutdown can end them in a way that callers resume. */
@Injectable()
export class OpenStreams {
  private readonly streams = new Set<SseStream>();
  private closed = false;

  constructor(private readonly metrics: Metrics) {}

  add(stream: SseStream): void {
    this.streams.add(stream);
    this.metrics.openStreams.inc();
    if (this.closed) endForShutdown(stream);
  }

  remove(stream: SseStream): void {
    if (this.streams.delete(stream)) this.metrics.openStreams.dec();
  }

  /** End every stream, and those that open from now on, without a final event. */
  closeAll(): void {
    this.closed = true;
    for (const stream of this.streams) endForShutdown(stream);
  }
}

const endForShutdown = (stream: SseStream): void => stream.close('shutdown', 'this server is shutting down');
