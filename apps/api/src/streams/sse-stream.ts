import { ProtocolError, type StreamItem } from '@baton/a2a';
import { Environment } from '@baton/config';
import { gauge, type MetricOf, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { logContextOf } from '../http/requests.js';

/** Size of one piece for the socket. The rest waits here until the reader has taken the piece. */
const PIECE_BYTES = 64 * 1024;

const NOTHING = Buffer.alloc(0);

const OPEN_STREAMS = gauge('baton_open_streams', 'Streams that this process serves');

/** Maximum time for a stream that was closed early to send its buffer. */
const LINGER_MS = 5_000;
/** The same for a stream whose caller may read no longer. */
const LINGER_REFUSED_MS = 500;

// One for all: an abort without a reason makes a DOMException with a stack, once a stream.
const STREAM_OVER = new Error('the stream is over');

/** One event of a stream as it goes out. */
export interface SseRecord {
  /** A reader resumes after this sequence. */
  sequence: number;
  text: string;
}

/** Encodes the items of a stream as text. */
export interface SseEncoding {
  /** The records of an item: none, one or several. */
  item(item: StreamItem): SseRecord[];
  /** The last record of a failed stream. */
  error(error: unknown): string;
}

export interface SseOptions {
  headers: OutgoingHttpHeaders;
  /** Maximum that waits for the reader before the source is paused. */
  bufferBytes: number;
  /** Maximum time without progress of the reader. Then the stream is closed. */
  stallMs: number;
  /** Called once, when the stream is over. */
  onEnd?(end: StreamEnd): void;
}

/** Why a stream ended. All but `completed` and `failed` can be resumed with `Last-Event-ID`. */
export type StreamEnd = 'completed' | 'failed' | 'caller-left' | 'fell-behind' | 'refused' | 'shutdown';

/** How long a stream may still send its buffer. Those that are not listed: as long as the reader makes progress. */
const LINGER: Partial<Record<StreamEnd, number>> = {
  'caller-left': LINGER_MS,
  'fell-behind': LINGER_MS,
  refused: LINGER_REFUSED_MS,
  shutdown: LINGER_MS,
};

/**
 * One server-sent event stream on a raw response. It owns headers, framing (`id: <sequence>`), the bounded buffer
 * and the end; the source of the items knows nothing of HTTP. `caller` is aborted when the
 * stream is over for whatever reason, which ends the source. That never stops a run. If somebody else aborts `caller` with
 * a ProtocolError, the stream ends with that error.
 */
export class SseStream {
  /** Sequence of the last frame written; 0 before the first. */
  lastSequence = 0;
  private end: StreamEnd | undefined;
  private ending: Promise<void> | undefined;
  private readonly buffer: ReaderBuffer;

  constructor(
    private readonly response: ServerResponse,
    private readonly caller: AbortController,
    private readonly options: SseOptions,
  ) {
    const { bufferBytes: limit, stallMs } = options;
    this.buffer = new ReaderBuffer(response, { limit, stallMs, onStall: () => this.onStall() });
  }

  /** Send the headers at once, so that the caller knows of its stream before there is an event. */
  open(): void {
    const { response, options } = this;
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      ...options.headers,
    });
    response.flushHeaders();
    response.once('close', this.onClose);
    response.on('error', this.onError);
    if (response.destroyed) this.onClose();
  }

  /**
   * Write frames until the source ends or fails, the caller leaves or falls behind, or `close` is called.
   * Resolves when the reader has taken them, or will take no more.
   */
  async pipe(items: AsyncIterable<StreamItem>, encoding: SseEncoding): Promise<StreamEnd> {
    const { signal } = this.caller;
    signal.addEventListener('abort', () => this.onAbort(encoding), { once: true });
    try {
      for await (const item of items) {
        if (this.end) break;
        for (const { sequence, text } of encoding.item(item)) {
          this.lastSequence = sequence;
          this.buffer.add(text);
        }
        if (this.buffer.isFull) await this.buffer.taken();
      }
      this.finish('completed');
    } catch (error) {
      if (!this.end) this.buffer.add(encoding.error(error));
      this.finish('failed');
    }
    await this.ending;
    return this.end ?? 'completed';
  }

  /** Sends a comment, so that the connection is not idle. */
  beat(): void {
    // Waiting data already keeps the connection busy. A comment behind it would only take memory.
    if (!this.end && this.buffer.isEmpty) this.buffer.add(': heartbeat\n\n');
  }

  /** End early with a comment that says why. There is no final event, so the caller resumes. */
  close(end: 'fell-behind' | 'shutdown', reason: string): void {
    if (this.end) return;
    this.explain(reason);
    this.finish(end);
  }

  private explain(reason: string): void {
    this.buffer.add(`: closed: ${reason}; resume with Last-Event-ID: ${String(this.lastSequence)}\n\n`);
  }

  /** The token of the caller is no longer good: the error follows the last event, and the caller resumes with another. */
  private onAbort(encoding: SseEncoding): void {
    const reason: unknown = this.caller.signal.reason;
    if (this.end || !(reason instanceof ProtocolError)) return;
    this.explain(`${reason.message}; use a valid token`);
    this.buffer.add(encoding.error(reason));
    this.finish('refused');
  }

  /** The source ends at once. The reader may still take the buffer. */
  private finish(end: StreamEnd): void {
    if (this.end) return;
    this.end = end;
    this.options.onEnd?.(end);
    this.caller.abort(STREAM_OVER);
    if (this.response.destroyed) this.buffer.close();
    else this.ending = this.endResponse(LINGER[end]);
  }

  /** @param lingerMs maximum time for the rest; unset: as long as the reader makes progress */
  private async endResponse(lingerMs: number | undefined): Promise<void> {
    const { response, buffer, options } = this;
    const destroy = (): void => void response.destroy();
    const linger = lingerMs === undefined ? undefined : setTimeout(destroy, lingerMs).unref();
    await buffer.taken();
    clearTimeout(linger);
    response.end();
    const last = setTimeout(destroy, lingerMs ?? options.stallMs).unref();
    response.once('close', () => clearTimeout(last));
  }

  private onStall(): void {
    if (this.end) this.response.destroy();
    else this.close('fell-behind', 'the reader fell behind');
  }

  private readonly onClose = (): void => {
    this.finish('caller-left');
    this.buffer.close();
  };

  /** A broken connection also closes the response, and that is handled there. */
  private readonly onError = (): void => undefined;
}

interface ReaderBufferOptions {
  /** From this size on, in characters, it is full: the source is paused until everything is taken. */
  limit: number;
  /** A reader that takes less than one piece (64 KiB) in so many milliseconds has stalled. */
  stallMs: number;
  onStall(): void;
}

/**
 * Text for one reader. The socket holds one piece at a time. So the memory of a slow reader is counted here, and each
 * piece that it takes is a sign of life. Data that the reader sends is not a sign of life.
 */
class ReaderBuffer {
  private texts: string[] = [];
  private chars = 0;
  /** The rest of what was taken out of `texts` and is not yet with the socket. */
  private encoded = NOTHING;
  private writing = false;
  private scheduled: NodeJS.Immediate | undefined;
  private stall: NodeJS.Timeout | undefined;
  private wake: (() => void)[] = [];
  private closed = false;

  constructor(
    private readonly response: ServerResponse,
    private readonly options: ReaderBufferOptions,
  ) {}

  get isEmpty(): boolean {
    return this.chars + this.encoded.length === 0 && !this.writing;
  }

  get isFull(): boolean {
    return this.chars + this.encoded.length >= this.options.limit;
  }

  /** Adds a text. Texts of one turn of the event loop are sent together. */
  add(text: string): void {
    this.texts.push(text);
    this.chars += text.length;
    if (!this.writing) this.scheduled ??= setImmediate(this.send);
  }

  /** Resolves when the reader has taken everything, or the buffer is closed. */
  async taken(): Promise<void> {
    if (this.isEmpty || this.closed) return;
    await new Promise<void>((resolve) => this.wake.push(resolve));
  }

  /** Drop the waiting text, and resolve the callers that wait for it. */
  close(): void {
    this.closed = true;
    clearImmediate(this.scheduled);
    clearTimeout(this.stall);
    this.texts = [];
    this.chars = 0;
    this.encoded = NOTHING;
    this.wakeAll();
  }

  private readonly send = (): void => {
    this.scheduled = undefined;
    if (this.closed || this.response.destroyed) return;
    if (this.encoded.length === 0) this.encode();
    const piece = this.encoded.subarray(0, PIECE_BYTES);
    this.encoded = this.encoded.length > PIECE_BYTES ? this.encoded.subarray(PIECE_BYTES) : NOTHING;
    this.writing = true;
    this.stall = this.stall?.refresh() ?? setTimeout(this.onTimer, this.options.stallMs).unref();
    this.response.write(piece, this.onTaken);
  };

  /** Encodes about one piece of text as bytes. Never splits a text, because the split could be inside a character. */
  private encode(): void {
    let chars = 0;
    let count = 0;
    while (count < this.texts.length && chars < PIECE_BYTES) chars += this.texts[count++]?.length ?? 0;
    this.encoded = Buffer.from(this.texts.splice(0, count).join(''));
    this.chars -= chars;
  }

  private readonly onTaken = (): void => {
    this.writing = false;
    if (this.closed) return;
    if (this.isEmpty) this.wakeAll();
    else this.send();
  };

  private readonly onTimer = (): void => {
    if (this.writing && !this.closed) this.options.onStall();
  };

  private wakeAll(): void {
    for (const wake of this.wake.splice(0)) wake();
  }
}

/** Who gets a stream, and how its items are written. */
export interface StreamTarget extends SseEncoding {
  /** Aborted when the stream is over. */
  caller: AbortController;
  request: FastifyRequest;
  reply: FastifyReply;
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
  private readonly groups: readonly Set<SseStream>[];
  /** The group whose heartbeat is next. */
  private next = 0;
  private heartbeat: NodeJS.Timeout | undefined;
  private count = 0;
  private closed = false;

  private readonly openStreams: MetricOf<typeof OPEN_STREAMS>;

  constructor(
    metrics: Metrics,
    private readonly environment: Environment,
  ) {
    this.openStreams = metrics.of(OPEN_STREAMS);
    const groups = Math.min(BEAT_GROUPS, environment.sseHeartbeatMs);
    this.groups = Array.from({ length: groups }, () => new Set<SseStream>());
  }

  /** Takes the reply out of Fastify's hands and streams to it, with the headers that it has. Resolves when the stream is over, however it ended. */
  async send(items: AsyncIterable<StreamItem>, target: StreamTarget): Promise<void> {
    const { caller, request, reply } = target;
    const { sseBufferBytes: bufferBytes, sseStallMs: stallMs } = this.environment;
    const headers = reply.getHeaders() as OutgoingHttpHeaders;
    const log = logContextOf(request);
    const onEnd = (end: StreamEnd): void => {
      log.stream = end;
      log.lastSequence = stream.lastSequence;
    };
    reply.hijack();
    const stream = new SseStream(reply.raw, caller, { headers, bufferBytes, stallMs, onEnd });
    const group = this.add(stream);
    try {
      stream.open();
      log.streamedAt = performance.now();
      await stream.pipe(items, target);
    } finally {
      this.remove(stream, group);
    }
  }

  /** Ends every open and every later stream without a final event. */
  closeAll(): void {
    this.closed = true;
    for (const group of this.groups) group.forEach(endForShutdown);
  }

  /** @returns the group that it is in */
  private add(stream: SseStream): Set<SseStream> {
    const group = this.groups.reduce((least, other) => (other.size < least.size ? other : least));
    group.add(stream);
    this.count += 1;
    this.openStreams.inc();
    this.heartbeat ??= setInterval(this.onTick, this.environment.sseHeartbeatMs / this.groups.length).unref();
    if (this.closed) endForShutdown(stream);
    return group;
  }

  private remove(stream: SseStream, group: Set<SseStream>): void {
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

const endForShutdown = (stream: SseStream): void => stream.close('shutdown', 'this server is shutting down');
