import type { StreamItem } from '@baton/a2a';
import { Environment } from '@baton/config';
import { gauge, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { logContextOf } from '../http/requests.js';

/** What is handed to the socket at a time. Until the reader has taken it, the rest waits here. */
const PIECE_BYTES = 64 * 1024;

const NOTHING = Buffer.alloc(0);

const OPEN_STREAMS = gauge('baton_open_streams', 'Streams open in this process');

/** How long a stream that was closed early may take to hand over what is still buffered. */
const LINGER_MS = 5_000;

// One for all: an abort without a reason makes a DOMException with a stack, once a stream.
const STREAM_OVER = new Error('the stream is over');

/** One event of a stream as it goes out. */
export interface SseRecord {
  /** Whoever has read it goes on after this sequence. */
  sequence: number;
  text: string;
}

/** How a stream of items becomes text on the wire. */
export interface SseEncoding {
  /** The records of an item: none, one or several. */
  item(item: StreamItem): SseRecord[];
  /** The record that ends a stream which fails. */
  error(error: unknown): string;
}

export interface SseOptions {
  headers: OutgoingHttpHeaders;
  heartbeatMs: number;
  /** How much may wait for the reader before the source is paused. */
  bufferBytes: number;
  /** How long a reader may take nothing of what waits for it before it is closed. */
  stallMs: number;
  /** Told once, as soon as the stream is over. */
  onEnd?(end: StreamEnd): void;
}

/** Why a stream ended. All but `completed` and `failed` can be resumed with `Last-Event-ID`. */
export type StreamEnd = 'completed' | 'failed' | 'caller-left' | 'fell-behind' | 'shutdown';

/**
 * One server-sent event stream on a raw response. It owns headers, framing (`id: <sequence>`), heartbeats,
 * the bounded buffer and the end; the source of the items knows nothing of HTTP. `caller` is aborted when the
 * stream is over for whatever reason, which ends the source. That never stops a run.
 */
export class SseStream {
  /** Sequence of the last frame written; 0 before the first. */
  lastSequence = 0;
  private end: StreamEnd | undefined;
  private ending: Promise<void> | undefined;
  private heartbeat: NodeJS.Timeout | undefined;
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
    this.heartbeat = setInterval(this.onHeartbeat, options.heartbeatMs);
    if (response.destroyed) this.onClose();
  }

  /**
   * Write frames until the source ends or fails, the caller leaves or falls behind, or `close` is called.
   * Resolves when the reader has taken them, or will take no more.
   */
  async pipe(items: AsyncIterable<StreamItem>, encoding: SseEncoding): Promise<StreamEnd> {
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

  /** End early with a comment that says why. There is no final event, so the caller resumes. */
  close(end: 'fell-behind' | 'shutdown', reason: string): void {
    if (this.end) return;
    this.buffer.add(`: closed: ${reason}; resume with Last-Event-ID: ${String(this.lastSequence)}\n\n`);
    this.finish(end);
  }

  /** The source is over at once; the reader may still take what waits for it. */
  private finish(end: StreamEnd): void {
    if (this.end) return;
    this.end = end;
    this.options.onEnd?.(end);
    clearInterval(this.heartbeat);
    this.caller.abort(STREAM_OVER);
    if (this.response.destroyed) this.buffer.close();
    else this.ending = this.endResponse(end === 'completed' || end === 'failed' ? undefined : LINGER_MS);
  }

  /** @param lingerMs how long the rest may take; not set: for as long as the reader takes of it */
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

  private readonly onHeartbeat = (): void => {
    // What waits already keeps the connection busy; a comment behind it would only take memory.
    if (this.buffer.isEmpty) this.buffer.add(': heartbeat\n\n');
  };

  private readonly onClose = (): void => {
    this.finish('caller-left');
    this.buffer.close();
  };

  /** A broken connection also closes the response, which is where it is dealt with. */
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
 * Text on its way to one reader. The socket holds one piece at a time, so that what a slow reader costs can be
 * counted here, and so that each piece it takes is a sign of life. What the reader sends meanwhile is none.
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

  /** Takes a text; what comes within one turn of the event loop goes out together. */
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

  /** Forget what waits and free whoever waits for it. */
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

  /** About one piece of text becomes bytes; never half a text, since a character may lie on the cut. */
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

/** The streams that this process serves. A shutdown ends them in a way that lets callers resume. */
@Injectable()
export class EventStreams {
  private readonly open = new Set<SseStream>();
  private closed = false;

  constructor(
    private readonly metrics: Metrics,
    private readonly environment: Environment,
  ) {}

  /** Takes the reply out of Fastify's hands and streams to it, with the headers that it has. Resolves when the stream is over, however it ended. */
  async send(items: AsyncIterable<StreamItem>, target: StreamTarget): Promise<void> {
    const { caller, request, reply } = target;
    const {
      sseHeartbeatMs: heartbeatMs,
      sseBufferBytes: bufferBytes,
      sseStallMs: stallMs,
    } = this.environment;
    const headers = reply.getHeaders() as OutgoingHttpHeaders;
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
      this.metrics.of(OPEN_STREAMS).dec();
    }
  }

  /** Ends every stream, and those that open from now on, without a final event. */
  closeAll(): void {
    this.closed = true;
    for (const stream of this.open) endForShutdown(stream);
  }

  private add(stream: SseStream): void {
    this.open.add(stream);
    this.metrics.of(OPEN_STREAMS).inc();
    if (this.closed) endForShutdown(stream);
  }
}

const endForShutdown = (stream: SseStream): void => stream.close('shutdown', 'this server is shutting down');
