import { type Frame, frameRecord, type Framing, ProtocolError, sseRecord, type StreamItem } from '@baton/a2a';
import { Environment } from '@baton/config';
import { gauge, type MetricOf, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { type CallRequest, logContextOf } from '../http/requests.js';
import { StreamMemory } from './stream-memory.js';

/** Size of one piece of text for the socket. The rest waits here until the reader has taken the piece. */
const PIECE_BYTES = 64 * 1024;

const NOTHING = Buffer.alloc(0);

const OPEN_STREAMS = gauge('baton_open_streams', 'Streams that this process serves');

/** Maximum time for a stream that was closed early to send its buffer. */
const LINGER_MS = 5_000;
/** The same for a stream whose caller may read no longer. */
const LINGER_REFUSED_MS = 500;

// One for all: an abort without a reason makes a DOMException with a stack, once a stream.
const STREAM_OVER = new Error('the stream is over');

/**
 * A record as it goes out. Texts are joined, and sent in pieces of one size. Bytes go out one by one and whole: they are the
 * messages of a protocol that frames them itself.
 */
export type RecordData = string | Buffer;

/** One event of a stream as it goes out. */
export interface StreamRecord {
  /** A reader resumes after this sequence. */
  sequence: number;
  data: RecordData;
}

/** Encodes the items of a stream. */
export interface StreamEncoding {
  /** The records of an item: none, one or several. */
  item(item: StreamItem): StreamRecord[];
  /** The last record of a failed stream. Undefined: the output says it when it ends. */
  error(error: unknown): RecordData | undefined;
}

/** The way to the reader of one stream: a response of HTTP, or a call of gRPC. */
export interface StreamOutput {
  /** What keeps an idle connection busy; undefined: the protocol does. */
  readonly heartbeat: RecordData | undefined;
  readonly destroyed: boolean;
  /** Takes the headers, which go out with the first bytes. @param onClose called once, when nothing more can be sent */
  open(onClose: () => void): void;
  /** Sends the headers alone: there is nothing yet to go with them. */
  flush(): void;
  /** @param onTaken called when the reader has taken it */
  write(bytes: Buffer, onTaken: () => void): void;
  /** The stream ends early, and this tells the reader why. @returns the record that says it, if one does */
  explain(reason: string): RecordData | undefined;
  /** Nothing follows. Goes out with the last bytes, if they are written in the same turn of the event loop. */
  end(): void;
  destroy(): void;
}

/** How one binding writes one stream. */
export interface StreamWriter extends StreamEncoding {
  /** Takes the answer for the stream. Until then the answer can still be a plain error. */
  output(): StreamOutput;
}

export interface StreamOptions {
  /** Maximum that waits for the reader before the source is paused. */
  bufferBytes: number;
  /** Maximum time without progress of the reader. Then the stream is closed. */
  stallMs: number;
  /** What all streams of the process hold. */
  memory: StreamMemory;
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
 * One stream of events to one reader. It owns the bounded buffer and the end; the source of the items knows nothing of
 * the reader, and the output nothing of the source. `caller` is aborted at every end of the stream, which ends the
 * source. That never stops a run. If somebody else aborts `caller` with a ProtocolError, the stream ends with that
 * error.
 */
export class EventStream {
  /** Sequence of the last frame written; 0 before the first. */
  lastSequence = 0;
  private end: StreamEnd | undefined;
  private ending: Promise<void> | undefined;
  private closed = false;
  /** Closes the output if its end does not get through. */
  private last: NodeJS.Timeout | undefined;
  private readonly buffer: ReaderBuffer;

  constructor(
    private readonly output: StreamOutput,
    private readonly caller: AbortController,
    private readonly options: StreamOptions,
  ) {
    const { bufferBytes: limit, stallMs, memory } = options;
    this.buffer = new ReaderBuffer(output, { limit, stallMs, memory, onStall: () => this.onStall() });
  }

  /** Send the headers soon, so that the caller knows of its stream before there is an event. */
  open(): void {
    this.output.open(this.onClose);
    if (this.output.destroyed) this.onClose();
    else this.buffer.schedule();
  }

  /**
   * Write frames until the source ends or fails, the caller leaves or falls behind, or `close` is called.
   * Resolves when the reader has taken them, or will take no more.
   */
  async pipe(items: AsyncIterable<readonly StreamItem[]>, encoding: StreamEncoding): Promise<StreamEnd> {
    const { signal } = this.caller;
    signal.addEventListener('abort', () => this.onAbort(encoding), { once: true });
    try {
      for await (const together of items) {
        for (const item of together) {
          if (this.end) break;
          for (const { sequence, data } of encoding.item(item)) {
            this.lastSequence = sequence;
            this.buffer.add(data);
          }
          if (this.buffer.isFull) await this.buffer.taken();
        }
        if (this.end) break;
      }
      this.finish('completed');
    } catch (error) {
      if (!this.end) this.buffer.add(encoding.error(error));
      this.finish('failed');
    }
    await this.ending;
    return this.end ?? 'completed';
  }

  /** Keeps the connection busy. */
  beat(): void {
    // Waiting data already keeps the connection busy. A comment behind it would only take memory.
    if (!this.end && this.buffer.isEmpty) this.buffer.add(this.output.heartbeat);
  }

  /** End early, and say why. There is no final event, so the caller resumes. */
  close(end: 'fell-behind' | 'shutdown', reason: string): void {
    if (this.end) return;
    this.explain(reason);
    this.finish(end);
  }

  private explain(reason: string): void {
    this.buffer.add(
      this.output.explain(`${reason}; resume with Last-Event-ID: ${String(this.lastSequence)}`),
    );
  }

  /** The token of the caller is no longer good: the error follows the last event, and the caller resumes with another. */
  private onAbort(encoding: StreamEncoding): void {
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
    if (this.output.destroyed) this.buffer.close();
    else this.ending = this.endOutput(LINGER[end]);
  }

  /** @param lingerMs maximum time for the rest; unset: as long as the reader makes progress */
  private async endOutput(lingerMs: number | undefined): Promise<void> {
    const { output, buffer, options } = this;
    const destroy = (): void => output.destroy();
    const linger = lingerMs === undefined ? undefined : setTimeout(destroy, lingerMs).unref();
    buffer.end();
    await buffer.taken();
    clearTimeout(linger);
    if (this.closed) return;
    this.last = setTimeout(destroy, lingerMs ?? options.stallMs).unref();
  }

  private onStall(): void {
    if (this.end) this.output.destroy();
    else this.close('fell-behind', 'the reader fell behind');
  }

  private readonly onClose = (): void => {
    this.closed = true;
    clearTimeout(this.last);
    this.finish('caller-left');
    this.buffer.close();
  };
}

interface ReaderBufferOptions {
  /** From this size on, in characters or bytes, it is full: the source is paused until everything is taken. */
  limit: number;
  /** A reader that takes less than one piece (64 KiB) in so many milliseconds has stalled. */
  stallMs: number;
  memory: StreamMemory;
  onStall(): void;
}

/**
 * Records for one reader. The socket holds one piece at a time. So the memory of a slow reader is counted here, and each
 * piece that it takes is a sign of life. Data that the reader sends is not a sign of life.
 */
class ReaderBuffer {
  private records: RecordData[] = [];
  private size = 0;
  /** The bytes that were taken out of `records` and are not yet with the socket. */
  private encoded = NOTHING;
  private writing = false;
  private scheduled: NodeJS.Immediate | undefined;
  private stall: NodeJS.Timeout | undefined;
  private wake: (() => void)[] = [];
  private closed = false;
  /** What `memory` knows of. */
  private counted = 0;
  /** Nothing is added any more. The output ends with the last piece. */
  private ended = false;

  constructor(
    private readonly output: StreamOutput,
    private readonly options: ReaderBufferOptions,
  ) {}

  get isEmpty(): boolean {
    return this.isWritten && !this.writing;
  }

  private get isWritten(): boolean {
    return this.held === 0;
  }

  get isFull(): boolean {
    const { limit, memory } = this.options;
    return this.held >= limit || memory.isFullFor(this.held);
  }

  private get held(): number {
    return this.size + this.encoded.length;
  }

  private count(): void {
    this.options.memory.change(this.held - this.counted);
    this.counted = this.held;
  }

  /** Adds a record, if there is one. Texts of one turn of the event loop are sent together. */
  add(record: RecordData | undefined): void {
    if (record === undefined || record.length === 0) return;
    this.records.push(record);
    this.size += record.length;
    this.count();
    this.schedule();
  }

  /** Sends what has come by the end of this turn of the event loop: the headers, records, and the end. */
  schedule(): void {
    if (!this.writing) this.scheduled ??= setImmediate(this.send);
  }

  /** Ends the output behind what waits. */
  end(): void {
    this.ended = true;
    if (this.writing && this.isWritten) this.output.end();
    else this.schedule();
  }

  /** Resolves when the reader has taken everything, or the buffer is closed. */
  async taken(): Promise<void> {
    if (this.isEmpty || this.closed) return;
    await new Promise<void>((resolve) => this.wake.push(resolve));
  }

  /** Drop the waiting records, and resolve the callers that wait for it. */
  close(): void {
    this.closed = true;
    clearImmediate(this.scheduled);
    clearTimeout(this.stall);
    this.records = [];
    this.size = 0;
    this.encoded = NOTHING;
    this.count();
    this.wakeAll();
  }

  private readonly send = (): void => {
    this.scheduled = undefined;
    const { output } = this;
    if (this.closed || output.destroyed) return;
    if (!this.isWritten) {
      const piece = this.nextPiece();
      this.count();
      this.write(piece);
    } else if (!this.ended) output.flush();
    if (this.ended && this.isWritten) output.end();
  };

  private write(piece: Buffer): void {
    this.writing = true;
    this.stall = this.stall?.refresh() ?? setTimeout(this.onTimer, this.options.stallMs).unref();
    this.output.write(piece, this.onTaken);
  }

  private nextPiece(): Buffer {
    if (this.encoded.length === 0) {
      const [first] = this.records;
      if (typeof first === 'object') {
        this.records.shift();
        this.size -= first.length;
        return first;
      }
      this.encode();
    }
    const piece = this.encoded.subarray(0, PIECE_BYTES);
    this.encoded = this.encoded.length > PIECE_BYTES ? this.encoded.subarray(PIECE_BYTES) : NOTHING;
    return piece;
  }

  /** Encodes about one piece of text as bytes. Never splits a text, because the split could be inside a character. */
  private encode(): void {
    let chars = 0;
    let count = 0;
    while (count < this.records.length && chars < PIECE_BYTES) chars += this.records[count++]?.length ?? 0;
    this.encoded = Buffer.from(this.records.splice(0, count).join(''));
    this.size -= chars;
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
  ) {
    this.openStreams = metrics.of(OPEN_STREAMS);
    this.memory = new StreamMemory(environment.sseBufferTotalBytes);
    const groups = Math.min(BEAT_GROUPS, environment.sseHeartbeatMs);
    this.groups = Array.from({ length: groups }, () => new Set<EventStream>());
  }

  /** Streams to the target. Resolves when the stream is over, however it ended. */
  async send(items: AsyncIterable<readonly StreamItem[]>, target: StreamTarget): Promise<void> {
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

/** A stream as server-sent events on a raw response. */
export class SseOutput implements StreamOutput {
  readonly heartbeat: string;

  /** @param commentEnd what ends a comment, see `Framing.commentEnd` */
  constructor(
    private readonly response: ServerResponse,
    private readonly headers: OutgoingHttpHeaders,
    private readonly commentEnd: string = '\n',
  ) {
    this.heartbeat = `: heartbeat${commentEnd}`;
  }

  /** Takes the reply out of Fastify's hands, with the headers that it has. */
  static of(reply: FastifyReply, commentEnd?: string): SseOutput {
    const headers = reply.getHeaders() as OutgoingHttpHeaders;
    reply.hijack();
    return new SseOutput(reply.raw, headers, commentEnd);
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
    response.once('close', onClose);
    // A broken connection also closes the response, and that is handled there.
    response.on('error', () => undefined);
  }

  flush(): void {
    this.response.flushHeaders();
  }

  write(bytes: Buffer, onTaken: () => void): void {
    this.response.write(bytes, onTaken);
  }

  explain(reason: string): string {
    return `: closed: ${reason}${this.commentEnd}`;
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
  output: () => SseOutput.of(reply, framing.commentEnd),
  frame: (frame: Frame) => frameRecord(framing, frame, (json) => encoder.envelope?.(json) ?? json),
  error: (failure: ProtocolError) => sseRecord(encoder.encodeError(failure), { event: framing.errorEvent }),
});
