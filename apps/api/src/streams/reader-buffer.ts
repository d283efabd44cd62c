import type { RecordData, StreamOutput } from './sse-output.js';
import { StreamMemory } from './stream-memory.js';

/** Size of one piece of text for the socket. The rest waits here until the reader has taken the piece. */
const PIECE_BYTES = 64 * 1024;

const NOTHING = Buffer.alloc(0);

interface ReaderBufferOptions {
  /** From this size on, in characters or bytes, it is full: the source is paused until everything is taken. */
  limit: number;
  /** A reader that takes less than one piece (64 KiB) within this many milliseconds has stalled. */
  stallMs: number;
  memory: StreamMemory;
  onStall(): void;
}

/**
 * Records for one reader. The socket holds one piece at a time. So the memory of a slow reader is counted here, and each
 * piece that it takes counts as activity. Data that the reader sends is not activity.
 */
export class ReaderBuffer {
  private records: RecordData[] = [];
  private size = 0;
  /** The bytes that were removed from `records` and that the socket has not accepted yet. */
  private encoded = NOTHING;
  private writing = false;
  private scheduled: NodeJS.Immediate | undefined;
  private stall: NodeJS.Timeout | undefined;
  private wake: (() => void)[] = [];
  private closed = false;
  /** Bytes that are counted in `memory`. */
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

  /** Ends the output after the waiting records. */
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
