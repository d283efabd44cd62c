import { createHash, hash, type Hash } from 'node:crypto';
import type { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { extract, pack } from 'tar-stream';
import { z } from 'zod';

/** A backup cannot be made, read or restored. The message is one plain sentence or more, shown as it is. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

/** Of the file's layout. A reader refuses a higher number. */
export const FORMAT_VERSION = 1;

/** Size of one entry of the archive in bytes. One entry is held in memory. */
const CHUNK_BYTES = 4 * 1024 * 1024;
const MAX_ENTRY_BYTES = 64 * 1024 * 1024;

const count = z.number().int().nonnegative();

const manifestSchema = z.object({
  format: z.literal('baton-backup'),
  version: z.number().int(),
  /** Of Baton. */
  release: z.string(),
  createdAt: z.string(),
  /** Version of the Postgres server. */
  postgres: z.string(),
  /** Migrations of the database, in the order in which they are applied. */
  migrations: z.array(z.string().regex(/^\w+$/)),
  /** A table stands behind those that its foreign keys name. `rows` were counted in the snapshot of the backup. */
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()), rows: count })),
  sequences: z.array(z.object({ name: z.string(), lastValue: z.string(), isCalled: z.boolean() })),
  /** Tables without their rows. */
  leftOut: z.array(z.object({ name: z.string(), reason: z.string() })),
  /** Ids of the master keys that encrypt the secrets. A backup never contains the keys. */
  masterKeyIds: z.array(z.string()),
});

const digestSchema = z.object({ rows: count, bytes: count, checksum: z.string() });
const checksumsSchema = z.record(z.string(), digestSchema);

/** The first entry of a backup. */
export type Manifest = z.output<typeof manifestSchema>;
/** The digest of a table's rows, whatever their order. */
export type Digest = z.output<typeof digestSchema>;
/** The last entry of a backup: a file without it is truncated. */
export type Checksums = Readonly<Record<string, Digest>>;

/** The parts of a backup, in this order: the manifest, the rows of each table in chunks, the checksums. */
export type Part =
  | { kind: 'manifest'; manifest: Manifest }
  | { kind: 'rows'; table: string; data: Buffer }
  | { kind: 'checksums'; checksums: Checksums };

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
    // The error of the output has the reason; the archive's error only says that it was destroyed.
    await Promise.race([taken, this.written]).catch(async (error: unknown) => {
      await this.written;
      throw error;
    });
  }
}

/** The parts of a backup. Throws BackupError if the file is not a backup, was changed, or is truncated. */
export async function* readArchive(input: AsyncIterable<Uint8Array>): AsyncGenerator<Part> {
  const archive = extract();
  const fed = pipeline(input, createGunzip(), archive);
  fed.catch(() => undefined);
  try {
    for await (const entry of archive) {
      const content = entry as AsyncIterable<unknown> as AsyncIterable<Uint8Array>;
      yield partOf(entry.header.name, await contentOf(content, entry.header.size));
    }
    await fed;
  } catch (error) {
    throw explain(error);
  } finally {
    archive.destroy();
  }
}

/**
 * Reads a backup to its end and compares everything with its checksums.
 * @returns its manifest
 * @throws BackupError that names the incomplete table
 */
export async function verifyBackup(input: AsyncIterable<Uint8Array>): Promise<Manifest> {
  const check = new ArchiveCheck();
  for await (const part of readArchive(input)) check.take(part);
  check.finish();
  return check.manifest;
}

/** Checks the parts of a backup as they pass. Throws BackupError if one is missing, or does not match the checksums. */
export class ArchiveCheck {
  private found: Manifest | undefined;
  private checksums: Checksums | undefined;
  private readonly digests = new Map<string, RowDigest>();

  take(part: Part): void {
    if (this.checksums) throw new BackupError('The backup has data after its end.');
    if (part.kind === 'manifest') this.found = part.manifest;
    else if (part.kind === 'checksums') this.checksums = part.checksums;
    else this.digestOf(part.table).update(part.data);
  }

  /** Call it after the last part. @returns the digests that the restored tables must have */
  finish(): Checksums {
    const { tables } = this.manifest;
    if (!this.checksums) throw new BackupError('The backup is incomplete: its end is missing.');
    for (const { name, rows } of tables) {
      const digest = this.digestOf(name).result;
      if (digest.rows !== rows) {
        throw new BackupError(
          `The backup is incomplete: ${name} has ${digest.rows} rows instead of ${rows}.`,
        );
      }
      if (!isSame(digest, this.checksums[name])) {
        throw new BackupError(`The backup was changed: the rows of ${name} do not match their checksum.`);
      }
    }
    return this.checksums;
  }

  get manifest(): Manifest {
    if (!this.found)
      throw new BackupError('This is not a backup of Baton: it does not begin with a manifest.');
    return this.found;
  }

  private digestOf(table: string): RowDigest {
    if (!this.manifest.tables.some(({ name }) => name === table)) {
      throw new BackupError(`The backup has rows of a table ${table}, which its manifest does not name.`);
    }
    const digest = this.digests.get(table) ?? new RowDigest();
    this.digests.set(table, digest);
    return digest;
  }
}

export const isSame = (one: Digest, other: Digest | undefined): boolean =>
  one.rows === other?.rows && one.bytes === other.bytes && one.checksum === other.checksum;

async function contentOf(entry: AsyncIterable<Uint8Array>, size: number): Promise<Buffer> {
  if (size > MAX_ENTRY_BYTES) throw new BackupError('This is not a backup of Baton: an entry is too large.');
  const chunks: Uint8Array[] = [];
  for await (const chunk of entry) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function partOf(name: string, data: Buffer): Part {
  const [, table] = /^tables\/([^/]+)\/\d+$/.exec(name) ?? [];
  if (table !== undefined) return { kind: 'rows', table, data };
  if (name === 'manifest.json') return { kind: 'manifest', manifest: readManifest(data) };
  if (name === 'checksums.json') {
    return { kind: 'checksums', checksums: checksumsSchema.parse(JSON.parse(data.toString())) };
  }
  throw new BackupError(
    `This is not a backup of Baton: it has an entry ${JSON.stringify(name.slice(0, 100))}.`,
  );
}

function readManifest(data: Buffer): Manifest {
  const manifest = manifestSchema.parse(JSON.parse(data.toString()));
  if (manifest.version > FORMAT_VERSION) {
    throw new BackupError(
      `The backup was made by release ${manifest.release} in a newer format: restore it with that release.`,
    );
  }
  return manifest;
}

/** The errors of gzip, tar and JSON for a file that is not a backup. */
function explain(error: unknown): unknown {
  if (error instanceof BackupError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'Z_BUF_ERROR' || message === 'Unexpected end of data') {
    return new BackupError('The backup is incomplete: its end is missing.', { cause: error });
  }
  if (code !== undefined && !code.startsWith('Z_')) return error;
  return new BackupError(`The file cannot be read as a backup of Baton: ${message.split('\n')[0]}.`, {
    cause: error,
  });
}
