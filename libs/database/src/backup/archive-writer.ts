import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';
import { type Digest, RowDigest } from './row-digest.js';
import { type Manifest, type Checksums } from './archive.js';

/** Size of one entry of the archive in bytes. One entry is held in memory. */
const CHUNK_BYTES = 4 * 1024 * 1024;

/** Writes a backup: a tar archive, compressed with gzip. Holds one chunk of a table in memory. */
export class ArchiveWriter {
  private readonly archive = pack();
  private readonly written: Promise<void>;

  constructor(out: Writable) {
    this.written = pipeline(this.archive, createGzip(), out);
    // The caller that waits for an entry or for the end gets the error.
    this.written.catch(() => undefined);
  }

  async manifest(manifest: Manifest): Promise<void> {
    await this.entry('manifest.json', Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`));
  }

  /** The rows of a table. @returns their digest */
  async rows(table: string, data: AsyncIterable<Buffer>): Promise<Digest> {
    const digest = new RowDigest();
    let chunks: Buffer[] = [];
    let size = 0;
    let number = 0;
    const flush = async (): Promise<void> => {
      number += 1;
      await this.entry(`tables/${table}/${String(number).padStart(6, '0')}`, Buffer.concat(chunks, size));
      chunks = [];
      size = 0;
    };
    for await (const chunk of data) {
      digest.update(chunk);
      chunks.push(chunk);
      size += chunk.length;
      if (size >= CHUNK_BYTES) await flush();
    }
    if (size > 0) await flush();
    return digest.result;
  }

  /** Resolves when everything has reached the output. */
  async finish(checksums: Checksums): Promise<void> {
    await this.entry('checksums.json', Buffer.from(`${JSON.stringify(checksums, null, 2)}\n`));
    this.archive.finalize();
    await this.written;
  }

  /** Ends the output with an error. */
  abort(error: Error): void {
    this.archive.destroy(error);
  }

  private async entry(name: string, data: Buffer): Promise<void> {
    const taken = new Promise<void>((resolve, reject) => {
      this.archive.entry({ name, size: data.length, mode: 0o600 }, data, (error) =>
        error ? reject(error) : resolve(),
      );
    });
    // The error of the output has the reason; the archive's error only reports that it was destroyed.
    await Promise.race([taken, this.written]).catch(async (error: unknown) => {
      await this.written;
      throw error;
    });
  }
}
