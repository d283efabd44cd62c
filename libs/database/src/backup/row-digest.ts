import { createHash, hash, type Hash } from 'node:crypto';
import { z } from 'zod';

export const countSchema = z.number().int().nonnegative();
export const digestSchema = z.object({ rows: countSchema, bytes: countSchema, checksum: z.string() });

/** The digest of a table's rows, whatever their order. */
export type Digest = z.output<typeof digestSchema>;

/** Counts and sums up rows in COPY's text format: one line a row, in any order. */
export class RowDigest {
  private rows = 0;
  private bytes = 0;
  /** The sum of the SHA-256 of all rows, in eight words that overflow. */
  private readonly sum = new Uint32Array(8);
  /** The beginning of a row that is not complete yet. */
  private open: Hash | undefined;

  update(chunk: Buffer): void {
    this.bytes += chunk.length;
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.addRow(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start < chunk.length) (this.open ??= createHash('sha256')).update(chunk.subarray(start));
  }

  get result(): Digest {
    const checksum = Buffer.from(this.sum.buffer).toString('hex');
    return { rows: this.rows, bytes: this.bytes, checksum };
  }

  private addRow(rest: Buffer): void {
    const digest = this.open ? this.open.update(rest).digest() : hash('sha256', rest, 'buffer');
    this.open = undefined;
    this.rows += 1;
    for (let word = 0; word < 8; word += 1) {
      this.sum[word] = (this.sum[word] ?? 0) + digest.readUInt32LE(word * 4);
    }
  }
}
