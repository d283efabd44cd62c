import { type StreamItem } from '@baton/a2a';
import { Environment } from '@baton/config';
import { gauge, type MetricOf, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { holderOf } from '../http/holder-of.js';
import { LoopTurns } from '../http/loop-turns.js';
import { type CallRequest, logContextOf } from '../http/requests.js';
import { StreamMemory } from './stream-memory.js';
import { type StreamOutput } from './sse-output.js';
import { EventStream, type StreamEnd, type StreamEncoding } from './event-stream.js';

const OPEN_STREAMS = gauge('baton_open_streams', 'Streams that this process serves');

/** How one binding writes one stream. */
export interface StreamWriter extends StreamEncoding {
  /** Takes the answer for the stream. Until then the answer can still be a plain error. */
  output(): StreamOutput;
}

/** Who gets a stream, and how it is written. */
export interface StreamTarget {
  writer: StreamWriter;
  /** Aborted when the stream is over. */
  caller: AbortController;
  request: CallRequest;
}

/** Maximum number of groups of streams whose heartbeats are sent at different times. */
const BEAT_GROUPS = 16;

/**
 * The streams that this process serves. A shutdown ends them in a way that lets callers resume.
 *
 * One timer sends all heartbeats: a stream is in one of a few groups, and each tick is for one of them. So thousands of
 * streams neither have a timer each nor are all written to at once.
 */
@Injectable()
export class EventStreams {
  private readonly groups: readonly Set<EventStream>[];
  /** The group whose heartbeat is next. */
  private next = 0;
  private heartbeat: NodeJS.Timeout | undefined;
  private count = 0;
  private closed = false;

  private readonly openStreams: MetricOf<typeof OPEN_STREAMS>;
  private readonly memory: StreamMemory;

  constructor(
    metrics: Metrics,
    private readonly environment: Environment,
    private readonly turns: LoopTurns,
  ) {
    this.openStreams = metrics.get(OPEN_STREAMS);
    this.memory = new StreamMemory(environment.sseBufferTotalBytes);
    const groups = Math.min(BEAT_GROUPS, environment.sseHeartbeatMs);
    this.groups = Array.from({ length: groups }, () => new Set<EventStream>());
  }

  /** Streams to the target. Resolves when the stream is over, however it ended. */
  async send(items: AsyncIterable<StreamItem[]>, target: StreamTarget): Promise<void> {
    const { writer, caller, request } = target;
    const { sseBufferBytes: bufferBytes, sseStallMs: stallMs } = this.environment;
    const log = logContextOf(request);
    const onEnd = (end: StreamEnd): void => {
      log.stream = end;
      log.lastSequence = stream.lastSequence;
    };
    const stream = new EventStream(writer.output(), caller, {
      bufferBytes,
      stallMs,
      memory: this.memory,
      turnFor: (chars) => this.turns.take(holderOf(request), chars),
      onEnd,
    });
    const group = this.add(stream);
    this.memory.join();
    try {
      stream.open();
      log.streamedAt = performance.now();
      await stream.pipe(items, writer);
    } finally {
      this.memory.leave();
      this.remove(stream, group);
    }
  }

  /** Ends every open and every later stream without a final event. */
  closeAll(): void {
    this.closed = true;
    for (const group of this.groups) group.forEach(endForShutdown);
  }

  /** @returns the group that it is in */
  private add(stream: EventStream): Set<EventStream> {
    const group = this.groups.reduce((least, other) => (other.size < least.size ? other : least));
    group.add(stream);
    this.count += 1;
    this.openStreams.inc();
    this.heartbeat ??= setInterval(this.onTick, this.environment.sseHeartbeatMs / this.groups.length).unref();
    if (this.closed) endForShutdown(stream);
    return group;
  }

  private remove(stream: EventStream, group: Set<EventStream>): void {
    group.delete(stream);
    this.count -= 1;
    this.openStreams.dec();
    if (this.count > 0) return;
    clearInterval(this.heartbeat);
    this.heartbeat = undefined;
  }

  private readonly onTick = (): void => {
    this.groups[this.next]?.forEach((stream) => stream.beat());
    this.next = (this.next + 1) % this.groups.length;
  };
}

const endForShutdown = (stream: EventStream): void =>
  stream.close('shutdown', 'this server is shutting down');
