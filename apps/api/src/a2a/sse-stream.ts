import type { ServerResponse } from 'node:http';
import type { StreamItem } from '@baton/a2a';

/** Frames that are ready within one turn of the event loop go out in one write, up to about this many characters. */
const BATCH_CHARS = 64 * 1024;
/** A reader that takes nothing for this many heartbeats is closed. */
const STALL_HEARTBEATS = 2;
/** How long a closed stream may take to hand over what is still buffered. */
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
  headers: Record<string, string>;
  heartbeatMs: number;
  /** Bytes that may wait for the reader before the source is paused. */
  bufferBytes: number;
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
  private pending = '';
  private scheduled: NodeJS.Immediate | undefined;
  private heartbeat: NodeJS.Timeout | undefined;
  private wake: (() => void) | undefined;

  constructor(
    private readonly response: ServerResponse,
    private readonly caller: AbortController,
    private readonly options: SseOptions,
  ) {}

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
    response.on('drain', this.onDrain);
    response.on('error', this.onError);
    // The socket's own timer counts a write that makes no progress as idle, and heartbeats start it anew.
    response.setTimeout(options.heartbeatMs * STALL_HEARTBEATS, this.onIdle);
    this.heartbeat = setInterval(this.onHeartbeat, options.heartbeatMs);
    if (response.destroyed) this.onClose();
  }

  /** Write frames until the source ends or fails, the caller leaves or falls behind, or `close` is called. */
  async pipe(items: AsyncIterable<StreamItem>, encoding: SseEncoding): Promise<StreamEnd> {
    try {
      for await (const item of items) {
        if (this.end) break;
        for (const { sequence, text } of encoding.item(item)) {
          this.lastSequence = sequence;
          this.write(text);
        }
        if (this.isFull) await this.room();
      }
      this.finish('completed');
    } catch (error) {
      if (!this.end) this.write(encoding.error(error));
      this.finish('failed');
    }
    return this.end ?? 'completed';
  }

  /** End early with a comment that says why. There is no final event, so the caller resumes. */
  close(end: 'fell-behind' | 'shutdown', reason: string): void {
    if (this.end) return;
    this.write(`: closed: ${reason}; resume with Last-Event-ID: ${String(this.lastSequence)}\n\n`);
    this.finish(end);
  }

  private write(text: string): void {
    this.pending += text;
    if (this.pending.length >= BATCH_CHARS) this.flush();
    else this.scheduled ??= setImmediate(this.flush);
  }

  private readonly flush = (): void => {
    clearImmediate(this.scheduled);
    this.scheduled = undefined;
    const text = this.pending;
    this.pending = '';
    if (text && !this.response.destroyed) this.response.write(text);
  };

  private get isFull(): boolean {
    return this.pending.length + this.response.writableLength >= this.options.bufferBytes;
  }

  /** Resolves when the reader has taken everything, or the stream is over. */
  private async room(): Promise<void> {
    this.flush();
    if (!this.end && this.response.writableNeedDrain) {
      await new Promise<void>((resolve) => {
        this.wake = resolve;
      });
    }
  }

  private finish(end: StreamEnd): void {
    if (this.end) return;
    this.end = end;
    this.options.onEnd?.(end);
    this.flush();
    this.release();
    const { response } = this;
    if (response.destroyed) return;
    response.end();
    const linger = setTimeout(() => response.destroy(), LINGER_MS).unref();
    response.once('close', () => clearTimeout(linger));
  }

  private release(): void {
    clearInterval(this.heartbeat);
    clearImmediate(this.scheduled);
    this.response.removeListener('close', this.onClose);
    this.response.removeListener('drain', this.onDrain);
    this.response.setTimeout(0);
    this.response.removeListener('timeout', this.onIdle);
    this.wake?.();
    this.caller.abort(STREAM_OVER);
  }

  private readonly onHeartbeat = (): void => {
    // What waits already keeps the connection busy; a comment behind it would only take memory.
    if (this.response.writableLength === 0 && this.pending === '') this.write(': heartbeat\n\n');
  };

  private readonly onDrain = (): void => {
    this.wake?.();
    this.wake = undefined;
  };

  private readonly onIdle = (): void => {
    if (this.response.writableLength > 0) this.close('fell-behind', 'the reader fell behind');
  };

  private readonly onClose = (): void => {
    this.finish('caller-left');
  };

  /** A broken connection also closes the response, which is where it is dealt with. */
  private readonly onError = (): void => undefined;
}
