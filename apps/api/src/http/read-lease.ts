import { ProtocolError, type ReadMemory } from '@baton/a2a';
import type { AnswerChannel } from './requests.js';

/** Reads up to this size are counted but never wait. */
export const SMALL_READ_BYTES = 1024 * 1024;

/** `Retry-After` of a refused call. */
const RETRY_AFTER_SECONDS = 5;

/** What a lease needs of the pool. */
interface ReadPool {
  take(tenantId: string, wanted: number, over: AbortSignal): Promise<boolean>;
  takeMore(tenantId: string, wanted: number): void;
  give(tenantId: string, taken: readonly number[]): void;
}

interface LeasedCall {
  tenantId: string;
  /** Resolves when its caller may work on this many bytes. */
  turn(bytes: number): Promise<void>;
  response: AnswerChannel;
  isStrict: boolean;
}

/** The memory of one call. */
export class ReadLease implements ReadMemory {
  private isOver = false;
  /** Ends the wait of a call that waits for memory. Most calls never do. */
  private waiting: AbortController | undefined;
  private readonly taken: number[] = [];
  /** The call reads, and has the memory also if its caller leaves. */
  private isReading = false;

  constructor(
    private readonly pool: ReadPool,
    private readonly call: LeasedCall,
  ) {
    call.response.once('close', this.release);
  }

  /** Bytes that the call has read, as JSON. */
  get bytes(): number {
    return this.taken.reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Throws `unavailable` if the call is strict and gets none. */
  async take(bytes: number): Promise<boolean> {
    const { tenantId, isStrict } = this.call;
    // The connection has ended, so the answer has no reader. Thousands of such calls may still come to their read.
    if (this.isOver) return bytes <= SMALL_READ_BYTES;
    if (this.taken.length > 0) this.pool.takeMore(tenantId, bytes);
    else if (!(await this.pool.take(tenantId, bytes, (this.waiting ??= new AbortController()).signal))) {
      if (isStrict && !this.hasEnded()) throw busy();
      return false;
    }
    // It was closed while the memory was granted.
    if (this.hasEnded()) {
      this.pool.give(tenantId, [bytes]);
      return false;
    }
    this.taken.push(bytes);
    return true;
  }

  giveBack(bytes: number): void {
    const last = this.taken.pop();
    // The call has ended, which has given back all.
    if (last === undefined) return;
    const { tenantId } = this.call;
    const kept = last - bytes;
    if (kept > 0) {
      this.pool.takeMore(tenantId, kept);
      this.taken.push(kept);
    }
    this.pool.give(tenantId, [last]);
  }

  turn(bytes: number): Promise<void> {
    return this.call.turn(bytes);
  }

  /**
   * Keeps the memory until the work is done, also if the caller leaves before: what is being read is in memory until then. Otherwise
   * calls that are given up one after the other would read as many large tasks at once.
   */
  async during<Result>(work: () => Promise<Result>): Promise<Result> {
    this.isReading = true;
    try {
      return await work();
    } finally {
      this.isReading = false;
      if (this.isOver) this.giveAll();
    }
  }

  /** A method, because the compiler takes a field for unchanged after an `await`. */
  private hasEnded(): boolean {
    return this.isOver;
  }

  /** The answer is sent, or the caller has disconnected. */
  readonly release = (): void => {
    if (this.isOver) return;
    this.isOver = true;
    this.call.response.off('close', this.release);
    this.waiting?.abort(ANSWERED);
    if (!this.isReading) this.giveAll();
  };

  private giveAll(): void {
    this.pool.give(this.call.tenantId, this.taken.splice(0));
  }
}

// One for all: an abort without a reason makes a DOMException with a stack.
const ANSWERED = new Error('the call has ended');

const busy = (): ProtocolError =>
  ProtocolError.unavailable(
    'Too many large tasks are being read at the moment: send the request again, or read less: fewer tasks of a list, or a task page by page with GET /v1/tasks/{id}/artifacts',
    RETRY_AFTER_SECONDS,
  );
