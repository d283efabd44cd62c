import type { ServerResponse } from 'node:http';

/** What is handed to the socket at a time. Until the reader has taken it, the rest waits here. */
const PIECE_BYTES = 64 * 1024;

const NOTHING = Buffer.alloc(0);

export interface ReaderBufferOptions {
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
export class ReaderBuffer {
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
