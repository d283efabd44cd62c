/** Number of small chunks that are joined into one. */
const SMALL_CHUNKS = 256;

/** Chunks of a body. A chunk costs some hundred bytes besides its content, so small ones are joined on the way. */
export class Chunks {
  length = 0;
  count = 0;
  private readonly parts: Buffer[] = [];
  private small: Buffer[] = [];

  add(chunk: Buffer): void {
    this.length += chunk.length;
    this.count += 1;
    this.small.push(chunk);
    if (this.small.length === SMALL_CHUNKS) this.join();
  }

  whole(): Buffer {
    this.join();
    return Buffer.concat(this.parts);
  }

  clear(): void {
    this.parts.length = 0;
    this.small = [];
  }

  private join(): void {
    this.parts.push(Buffer.concat(this.small));
    this.small = [];
  }
}
