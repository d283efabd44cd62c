import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { z } from 'zod';
import { BackupError } from './backup-error.js';
import { countSchema, digestSchema, type Digest } from './row-digest.js';

/** Version of the file's layout. A reader refuses a higher number. */
export const FORMAT_VERSION = 1;
/** The writer begins another entry after 4 MB. One row is larger at most by the largest event. */
const MAX_ENTRY_BYTES = 64 * 1024 * 1024;
const manifestSchema = z.object({
  format: z.literal('baton-backup'),
  version: z.number().int(),
  /** Release of Baton. */
  release: z.string(),
  createdAt: z.string(),
  /** Version of the Postgres server. */
  postgres: z.string(),
  /** Migrations of the database, in the order in which they are applied. */
  migrations: z.array(z.string().regex(/^\w+$/)),
  /** A table comes after those that its foreign keys name. `rows` were counted in the snapshot of the backup. */
  tables: z.array(z.object({ name: z.string(), columns: z.array(z.string()), rows: countSchema })),
  sequences: z.array(z.object({ name: z.string(), lastValue: z.string(), isCalled: z.boolean() })),
  /** Tables without their rows. */
  leftOut: z.array(z.object({ name: z.string(), reason: z.string() })),
  /** Ids of the master keys that encrypt the secrets. A backup never contains the keys. */
  masterKeyIds: z.array(z.string()),
});
const checksumsSchema = z.record(z.string(), digestSchema);

/** The first entry of a backup. */
export type Manifest = z.output<typeof manifestSchema>;
/** The last entry of a backup: a file without it is truncated. */
export type Checksums = Readonly<Record<string, Digest>>;

/** The parts of a backup, in this order: the manifest, the rows of each table in chunks, the checksums. */
export type BackupPart =
  | { kind: 'manifest'; manifest: Manifest }
  | { kind: 'rows'; table: string; data: Buffer }
  | { kind: 'checksums'; checksums: Checksums };

/** The parts of a backup. Throws BackupError if the file is not a backup, was changed, or is truncated. */
export async function* readArchive(input: AsyncIterable<Uint8Array>): AsyncGenerator<BackupPart> {
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

export const isSame = (one: Digest, other: Digest | undefined): boolean =>
  one.rows === other?.rows && one.bytes === other.bytes && one.checksum === other.checksum;

async function contentOf(entry: AsyncIterable<Uint8Array>, size: number): Promise<Buffer> {
  if (size > MAX_ENTRY_BYTES) throw new BackupError('This is not a backup of Baton: an entry is too large.');
  const chunks: Uint8Array[] = [];
  for await (const chunk of entry) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function partOf(name: string, data: Buffer): BackupPart {
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
