import { parseJsonBody } from '@baton/a2a';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import { agentFiles, codeOfFiles, LOCK_FILE } from './agent-code.js';
import { TooLargeToKeep } from './too-large-to-keep.js';

/** Maximum number of files of an agent, without packages. */
const MAX_FILES = 2_000;
/** Maximum size of these files together. They are in memory, and in one row. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Maximum size of a file as JSON with Base64. */
const MAX_JSON_BYTES = 2 * MAX_BYTES;

/** Contents as Base64 by their paths below `BATON_AGENTS_DIR/<slug>`, and the lock file beside that folder. */
const archived = z.strictObject({
  files: z.array(z.tuple([z.string(), z.string()])).max(MAX_FILES),
  lock: z.string().optional(),
});

const tooLarge = (): TooLargeToKeep =>
  new TooLargeToKeep(
    `its folder has more than ${MAX_FILES} files or ${MAX_BYTES / 1024 / 1024} MiB without node_modules`,
  );

/**
 * The files of an agent's folder, without packages and hidden files, so that they can be made again elsewhere. The lock file of the
 * directory belongs to the hash of the code (`agentCode`).
 *
 * @param directory absolute path of `BATON_AGENTS_DIR`
 * @returns the archive, and the hash of the code in it: files may have changed since another hash was made
 * @throws TooLargeToKeep for more than 2,000 files or 16 MiB; the error of the file system
 */
export async function packAgent(directory: string, slug: string): Promise<{ archive: Buffer; code: string }> {
  const folder = join(directory, slug);
  const files: [string, Buffer][] = [];
  const paths = await agentFiles(folder, () => true);
  if (paths.length > MAX_FILES) throw tooLarge();
  let bytes = 0;
  for (const path of paths) {
    bytes += (await stat(join(folder, path))).size;
    if (bytes > MAX_BYTES) throw tooLarge();
    files.push([path, await readFile(join(folder, path))]);
  }
  const lock = await readFile(join(directory, LOCK_FILE)).catch(() => undefined);
  const texts = files.map(([path, content]) => [path, content.toString('base64')]);
  const json = JSON.stringify({ files: texts, ...(lock && { lock: lock.toString('base64') }) });
  return { archive: await promisify(gzip)(json), code: codeOfFiles(files, lock) };
}

/** The files in what `packAgent` has made: contents by path, in its order. */
export interface ArchivedFiles {
  files: [string, Buffer][];
  lock: Buffer | undefined;
}

/**
 * Reads what `packAgent` has made.
 * @throws Error if it is no such archive, is too large, or the files do not have the hash `code`
 */
export async function readArchive(
  archive: Buffer,
  { slug, code }: { slug: string; code: string },
): Promise<ArchivedFiles> {
  const text = (await promisify(gunzip)(archive, { maxOutputLength: MAX_JSON_BYTES })).toString();
  const read = archived.parse(parseJsonBody(text));
  const files = read.files.map(([path, content]): [string, Buffer] => [path, Buffer.from(content, 'base64')]);
  for (const [path] of files) {
    // A path in the database must not lead outside of the folder.
    if (path.split('/').some((name) => name === '' || name.startsWith('.') || name.includes('\0'))) {
      throw new Error(`the kept code of the agent "${slug}" has a file ${JSON.stringify(path)}`);
    }
  }
  const lock = read.lock === undefined ? undefined : Buffer.from(read.lock, 'base64');
  const found = codeOfFiles(files, lock);
  if (found !== code) throw new Error(`the kept code of the agent "${slug}" is not ${code}, but ${found}`);
  return { files, lock };
}
