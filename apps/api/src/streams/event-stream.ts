import { ProtocolError, type StreamItem } from '@baton/a2a';
import { SMALL_WORK_BYTES } from '../http/loop-turns.js';
import { ReaderBuffer } from './reader-buffer.js';
import type { RecordData, StreamOutput } from './sse-output.js';
import { StreamMemory } from './stream-memory.js';

/** Maximum time for a stream that was closed early to send its buffer. */
const LINGER_MS = 5_000;
/** Maximum time for a stream whose caller has lost the right to read to send its buffer. */
const LINGER_REFUSED_MS = 500;

// One for all: an abort without a reason makes a DOMException with a stack, once a stream.
const STREAM_OVER = new Error('the stream is over');

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
  /** The last record of a failed stream. Undefined: the output reports it when it ends. */
  error(error: unknown): RecordData | undefined;
  /** The last record of a stream whose source has ended. Unset: its last item is the end. */
  last?(): Promise<RecordData | undefined>;
}

export interface StreamOptions {
  /** Maximum that waits for the reader before the source is paused. */
  bufferBytes: number;
  /** Maximum time without progress of the reader. Then the stream is closed. */
  stallMs: number;
  /** What all streams of the process hold. */
  memory: StreamMemory;
  /** Resolves when items of this many characters may be encoded. */
  turnFor(chars: number): Promise<void>;
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
 * One stream of events to one reader. It owns the bounded buffer and the end; the source of the items is independent of
 * the reader, and the output nothing of the source. `caller` is aborted at every end of the stream, which ends the
 * source. That never stops a run. If another component aborts `caller` with a ProtocolError, the stream ends with that
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

  /** Send the headers soon, so that the caller has its stream open before the first event. */
  open(): void {
    this.output.open(this.onClose);
    if (this.output.destroyed) this.onClose();
    else this.buffer.schedule();
  }

  /**
   * Write frames until the source ends or fails, the caller leaves or falls behind, or `close` is called.
   * Resolves when the reader has taken them, or will take no more.
   * @param items this stream takes the items out of each array
   */
  async pipe(items: AsyncIterable<StreamItem[]>, encoding: StreamEncoding): Promise<StreamEnd> {
    const { signal } = this.caller;
    signal.addEventListener('abort', () => this.onAbort(encoding), { once: true });
    try {
      for await (const together of items) {
        await this.write(together, encoding);
        if (this.end) break;
      }
      if (!this.end) {
        const last = await encoding.last?.();
        // It may have been closed meanwhile.
        if (!this.hasEnded()) this.buffer.add(last);
      }
      this.finish('completed');
    } catch (error) {
      if (!this.end) this.buffer.add(encoding.error(error));
      this.finish('failed');
    }
    await this.ending;
    return this.end ?? 'completed';
  }

  /**
   * Takes the items out of the array. `pipe` and the generators of the source keep the array until the next one comes, which may take
   * hours, and an item may be a large task. A method of its own, because `pipe` would keep the last item as well.
   */
  private async write(together: StreamItem[], encoding: StreamEncoding): Promise<void> {
    let chars = 0;
    for (let item = together.shift(); item; item = together.shift()) {
      chars += item.json?.length ?? 0;
      // One large event, or many small ones.
      if (chars > SMALL_WORK_BYTES) {
        await this.options.turnFor(chars);
        chars = 0;
      }
      if (this.end) return;
      for (const { sequence, data } of encoding.item(item)) {
        this.lastSequence = sequence;
        this.buffer.add(data);
      }
      if (this.buffer.isFull) await this.buffer.taken();
    }
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

  /** A method, because the compiler takes a field for unchanged after an `await`. */
  private hasEnded(): boolean {
    return this.end !== undefined;
  }

  private explain(reason: string): void {
    this.buffer.add(
      this.output.explain(`${reason}; resume with Last-Event-ID: ${String(this.lastSequence)}`),
    );
  }

  /** The token of the caller is no longer valid: the error follows the last event, and the caller resumes with another token. */
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
