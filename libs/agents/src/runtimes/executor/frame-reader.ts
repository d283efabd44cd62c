import { HEADER_BYTES } from './protocol.js';

/** Reads frames from a stream of bytes. */
export class FrameReader {
  private chunks: Buffer[] = [];
  private size = 0;

  /** @param maxBytes maximum length of a frame's text */
  constructor(private readonly maxBytes: number) {}

  /** Adds bytes and returns the complete texts. Throws RangeError for a frame that is too long. */
  push(chunk: Buffer): string[] {
    this.chunks.push(chunk);
    this.size += chunk.length;
    const texts: string[] = [];
    for (let length = this.length(); length !== undefined; length = this.length()) {
      if (length > this.maxBytes) throw new RangeError(`a message of ${length} bytes`);
      if (this.size < HEADER_BYTES + length) break;
      const bytes = this.joined();
      texts.push(bytes.toString('utf8', HEADER_BYTES, HEADER_BYTES + length));
      this.chunks = [bytes.subarray(HEADER_BYTES + length)];
      this.size -= HEADER_BYTES + length;
    }
    return texts;
  }

  private length(): number | undefined {
    if (this.size < HEADER_BYTES) return undefined;
    if ((this.chunks[0]?.length ?? 0) < HEADER_BYTES) this.chunks = [this.joined()];
    return this.chunks[0]?.readUInt32BE(0);
  }

  private joined(): Buffer {
    const [first] = this.chunks;
    return first && this.chunks.length === 1 ? first : Buffer.concat(this.chunks);
  }
}
