import type { AnswerTurns } from './answer-turns.js';
import { OutboundRefused } from './outbound-refused.js';

/** Interim answers (1xx) that a server may send before its answer. */
const MAX_INTERIM_ANSWERS = 16;
/** From here on a part of a body is not joined with the next one. A server may send each byte as a chunk of its own. */
const MAX_PART_BYTES = 65_536;
/** Chunks of a body that are joined to one part at most. */
const MAX_PART_CHUNKS = 512;
/** Values of `Content-Encoding` for a body as it is. */
const UNCHANGED = new Set(['', 'identity']);

/** A handler as undici's `fetch` gives it to `dispatch`. undici's own types call it deprecated. */
export interface Handler {
  onConnect(abort: (error?: Error) => void): void;
  onResponseStarted?(): void;
  onHeaders(status: number, headers: Buffer[], resume: () => void, statusText: string): boolean;
  /** @returns false: no more for now */
  onData(chunk: Buffer): boolean | undefined;
  onComplete(trailers: string[] | null): void;
  onError(error: Error): void;
}

/**
 * Passes an answer on to undici's `fetch`, and bounds what a server can make it cost.
 *
 * - More than `MAX_INTERIM_ANSWERS` interim answers end it with OutboundRefused. undici drops them, however many there are, and each of them restarts the time limit of the headers: a server could answer without end.
 * - A compressed answer ends it with OutboundRefused. Baton asks for none, and a kilobyte can stand for a megabyte.
 * - The body is joined to larger parts, and these are passed on in the turns of the tenant. Until then the connection is not read, which
 *   slows the server down.
 * - An error is passed on in a turn of its own, when the reader asks for more than was received before it. `fetch` drops what was not read
 *   by then, such as the last event of an answer whose server breaks the connection after it.
 */
export class GuardedAnswer implements Handler {
  private interimLeft = MAX_INTERIM_ANSWERS;
  private chunks: Buffer[] = [];
  private bytes = 0;
  /** undici does not parse on until `resume`. */
  private isPaused = false;
  /** The reader of `fetch` requests more data. */
  private isWanted = true;
  private isEnded = false;
  /** How the answer has ended, while a part of it was not passed on. */
  private error: Error | undefined;
  private resume: () => void = () => undefined;

  /**
   * @param handler of `fetch`, which keeps its state in it
   * @param host the host in the errors
   * @param onRefused called with the label of `baton_limit_exceeded_total` when the answer is refused
   */
  constructor(
    private readonly handler: Handler,
    private readonly host: string,
    private readonly turns: AnswerTurns,
    private readonly onRefused: (limit: string) => void,
  ) {}

  onConnect(abort: (error?: Error) => void): void {
    this.handler.onConnect(abort);
  }

  onResponseStarted(): void {
    this.handler.onResponseStarted?.();
  }

  onHeaders(status: number, headers: Buffer[], resume: () => void, statusText: string): boolean {
    if (status < 200 && this.interimLeft-- === 0)
      this.refuse('interimAnswers', `more than ${MAX_INTERIM_ANSWERS} interim answers (1xx)`);
    if (status >= 200 && isCompressed(headers))
      this.refuse('compressedAnswer', 'a compressed answer, which was not asked for');
    this.resume = resume;
    return this.handler.onHeaders(status, headers, () => this.want(), statusText);
  }

  onData(chunk: Buffer): boolean {
    this.chunks.push(chunk);
    this.bytes += chunk.length;
    if (this.chunks.length === 1 && this.isWanted) this.turns.take(() => this.passOn());
    this.isPaused = !this.isWanted || this.bytes >= MAX_PART_BYTES || this.chunks.length >= MAX_PART_CHUNKS;
    return !this.isPaused;
  }

  onComplete(trailers: string[] | null): void {
    this.isEnded = true;
    if (this.chunks.length > 0) this.handler.onData(this.takePart());
    this.handler.onComplete(trailers);
  }

  onError(error: Error): void {
    this.error = error;
    if (this.chunks.length === 0) this.fail();
  }

  /** `fetch` calls this for each read, also if it has not paused. */
  private want(): void {
    if (this.isWanted) return;
    this.isWanted = true;
    if (this.chunks.length > 0) this.turns.take(() => this.passOn());
    else this.readOn();
  }

  private passOn(): void {
    if (this.isEnded) return;
    this.isWanted = this.handler.onData(this.takePart()) !== false;
    if (this.isWanted) this.readOn();
  }

  private readOn(): void {
    if (this.error) return this.turns.take(() => this.fail());
    if (!this.isPaused) return;
    this.isPaused = false;
    this.resume();
  }

  private fail(): void {
    if (this.isEnded || !this.error) return;
    this.isEnded = true;
    this.handler.onError(this.error);
  }

  private takePart(): Buffer {
    const { chunks } = this;
    this.chunks = [];
    this.bytes = 0;
    const [first] = chunks;
    return first && chunks.length === 1 ? first : Buffer.concat(chunks);
  }

  private refuse(limit: string, what: string): never {
    this.onRefused(limit);
    throw new OutboundRefused(`"${this.host}" sent ${what}`);
  }
}

/** @param headers names and values in turn, as undici gives them */
function isCompressed(headers: readonly Buffer[]): boolean {
  return headers.some(
    (value, index) =>
      index % 2 === 1 &&
      headers[index - 1]?.toString('latin1').toLowerCase() === 'content-encoding' &&
      !UNCHANGED.has(value.toString('latin1').trim().toLowerCase()),
  );
}
