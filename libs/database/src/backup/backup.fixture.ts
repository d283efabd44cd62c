import { randomBytes } from 'node:crypto';
import { PassThrough, Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { Client } from 'pg';
import {
  asAdministrator,
  createDatabase,
  databaseUrl,
  dropDatabase,
  type TestDatabase,
} from '../../../../test/support/database.js';
import { type Manifest, readArchive } from './archive.js';
import { ArchiveWriter } from './archive-writer.js';
import { backUp } from './backup.js';
import { restoreBackup } from './restore.js';

const SCOPE = `SET baton.tenant = 'system'`;
/** Tables whose rows are in no backup. */
export const LEFT_OUT = ['_prisma_migrations', 'rate_counters', 'stream_counts', 'workers'];

/** A database to be backed up. */
export let source: TestDatabase;
/** Connected to it, in the scope of all tenants. */
export let client: Client;
const targets: string[] = [];

beforeAll(async () => {
  source = await createDatabase();
  client = await connect(source.url);
});

afterAll(async () => {
  await client.end();
  await source.drop();
  for (const url of targets) await dropDatabase(url);
});

export async function connect(url: string): Promise<Client> {
  const connected = new Client({ connectionString: url });
  await connected.connect();
  await connected.query(SCOPE);
  return connected;
}

/** A database without any table. */
export async function emptyDatabase(): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await asAdministrator(`CREATE DATABASE ${name}`);
  const url = databaseUrl(name);
  targets.push(url);
  return url;
}

/** A backup and its file. */
export async function collect(url = source.url, databaseSystemKey?: string) {
  const out = new PassThrough();
  const written = buffer(out);
  written.catch(() => undefined);
  const backup = await backUp({ databaseUrl: url, databaseSystemKey }, out, () => undefined);
  return { ...backup, file: await written };
}

export const streamOf = (file: Buffer) =>
  async function* () {
    for (let at = 0; at < file.length; at += 65_536) yield file.subarray(at, at + 65_536);
    await Promise.resolve();
  };

export const restore = (url: string, file: Buffer, force = false, databaseSystemKey?: string) =>
  restoreBackup(
    { databaseUrl: url, databaseSystemKey },
    { open: streamOf(file), canBeReadTwice: true, force, report: () => undefined },
  );

export const tableNames = async (of: Client): Promise<string[]> =>
  (
    await of.query<{ name: string }>(
      `SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1`,
    )
  ).rows.map(({ name }) => name);

/** The backup with another manifest. */
export async function withManifest(file: Buffer, change: (manifest: Manifest) => Manifest): Promise<Buffer> {
  const out = new PassThrough();
  const written = buffer(out);
  written.catch(() => undefined);
  const writer = new ArchiveWriter(out);
  for await (const part of readArchive(streamOf(file)())) {
    if (part.kind === 'manifest') await writer.manifest(change(part.manifest));
    else if (part.kind === 'checksums') await writer.finish(part.checksums);
    else await writer.rows(part.table, Readable.from([part.data]));
  }
  return written;
}
