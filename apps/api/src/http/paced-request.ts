import { IncomingMessage } from 'node:http';
import { Chunks } from './chunks.js';
import { fineBodies } from './fine-bodies.js';

/** After this many chunks of less than this many bytes on average, the reading of a body is paused. */
const [MANY_CHUNKS, SMALL_CHUNK_BYTES] = [256, 256];

/**
 * A request whose body may come in small chunks. Node parses all chunks of a read at once, and libuv reads a connection up to 32 times before
 * it reads others. This request rests after many small chunks: it keeps those that the same read still brings, and its connection is
 * not read on until its turn (`FineBodies`). This holds for every reader of the body, and without one.
 *
 * For the option `IncomingMessage` of `http.createServer`.
 */
export class PacedRequest extends IncomingMessage {
  /** Whether the chunks of its body are small ones. */
  isFine = false;
  private chunks = 0;
  private bytes = 0;
  private hasEnded = false;
  /** Whether its reader has asked for more since it rests. */
  private isWanted = false;
  /** What has come since it rests. Undefined: it does not. */
  private kept: Chunks | undefined;

  /** The parser calls this with each chunk, and with null at the end. False makes Node stop reading the connection. */
  override push(chunk: Buffer | null): boolean {
    if (chunk !== null) this.count(chunk);
    if (!this.kept) return super.push(chunk);
    if (chunk !== null) this.kept.add(chunk);
    else this.hasEnded = true;
    return false;
  }

  /** Makes Node read the connection on. */
  override _read(size: number): void {
    if (this.kept) this.isWanted = true;
    else super._read(size);
  }

  private count({ length }: Buffer): void {
    this.chunks += 1;
    this.bytes += length;
    if (this.chunks % MANY_CHUNKS !== 0) return;
    this.isFine = this.bytes < this.chunks * SMALL_CHUNK_BYTES;
    if (!this.isFine || this.kept) return;
    this.kept = new Chunks();
    fineBodies.rest(() => this.takeRest());
  }

  /** Passes on what it has kept. @returns how many chunks that are */
  private takeRest(): number {
    const { kept } = this;
    this.kept = undefined;
    if (!kept || this.destroyed) return 0;
    if (this.isWanted) super._read(kept.length);
    this.isWanted = false;
    super.push(kept.whole());
    if (this.hasEnded) super.push(null);
    return kept.count;
  }
}

/** Whether the body of a request has come in small chunks so far. */
export const isFine = (request: IncomingMessage): boolean =>
  request instanceof PacedRequest && request.isFine;
