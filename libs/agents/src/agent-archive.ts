import { parseJsonBody } from '@baton/a2a';
import { mkdir, mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import { agentCode, agentFiles } from './agent-code.js';
import { temporaryFolder } from './runtimes/executor/agent-sandbox.js';
import { TooLargeToKeep } from './too-large-to-keep.js';

/** Of the files of an agent, without packages. */
const MAX_FILES = 2_000;
const MAX_BYTES = 16 * 1024 * 1024;
/** Of a file as JSON with Base64. */
const MAX_JSON_BYTES = 2 * MAX_BYTES;
const LOCK_FILE = 'package-lock.json';
const PACKAGES = 'node_modules';
/** No slug of an agent. */
const KEPT = '.kept';

/** Contents as Base64 by their paths below `BATON_AGENTS_DIR/<slug>`, and the lock file beside that folder. */
const archived = z.strictObject({
  files: z.array(z.tuple([z.string(), z.string()])).max(MAX_FILES),
  lock: z.string().optional(),
});

const tooLarge = (): TooLargeToKeep =>
  new TooLargeToKeep(
    `its folder has more than ${MAX_FILES} files or ${MAX_BYTES / 1024 / 1024} MiB without ${PACKAGES}`,
  );

/**
 * The files of an agent's folder, without packages and hidden files, so that they can be made again elsewhere. The lock file of the
 * directory belongs to the hash of the code (`agentCode`).
 *
 * @param directory absolute path of `BATON_AGENTS_DIR`
 * @throws TooLargeToKeep for more than 2,000 files or 16 MiB; the error of the file system
 */
export async function packAgent(directory: string, slug: string): Promise<Buffer> {
  const folder = join(directory, slug);
  const files: [string, string][] = [];
  const paths = await agentFiles(folder, () => true);
  if (paths.length > MAX_FILES) throw tooLarge();
  let bytes = 0;
  for (const path of paths) {
    bytes += (await stat(join(folder, path))).size;
    if (bytes > MAX_BYTES) throw tooLarge();
    files.push([path, (await readFile(join(folder, path))).toString('base64')]);
  }
  const lock = await readFile(join(directory, LOCK_FILE)).catch(() => undefined);
  const archive = { files, ...(lock && { lock: lock.toString('base64') }) };
  return promisify(gzip)(JSON.stringify(archive));
}

/**
 * Makes the folder of an agent from what `packAgent` has returned, with the packages that are installed now. Once it is there, it is
 * used again.
 *
 * @param directory absolute path of `BATON_AGENTS_DIR`, for the packages
 * @returns absolute path of the folder
 * @throws Error if the files do not have that hash
 */
export async function unpackAgent(
  archive: () => Promise<Buffer | undefined>,
  { slug, code, directory }: { slug: string; code: string; directory: string },
): Promise<string | undefined> {
  const kept = join(temporaryFolder(KEPT), `${slug}-${code}`);
  const folder = join(kept, slug);
  if (await stat(folder).catch(() => undefined)) return folder;
  const packed = await archive();
  if (!packed) return undefined;
  // Another turn of this worker, or another worker of this machine, may make it at the same time. A rename is atomic.
  const begun = await mkdtemp(`${kept}.`);
  try {
    await write(packed, begun, slug);
    const found = await agentCode(begun, slug);
    if (found !== code) throw new Error(`the kept code of the agent "${slug}" is not ${code}, but ${found}`);
    await link(join(directory, slug, PACKAGES), join(begun, slug, PACKAGES));
    await link(await packagesAbove(directory), join(begun, PACKAGES));
    await rename(begun, kept).catch(async (error: unknown) => {
      if (!(await stat(folder).catch(() => undefined))) throw error;
    });
  } finally {
    await rm(begun, { recursive: true, force: true });
  }
  return folder;
}

async function write(packed: Buffer, into: string, slug: string): Promise<void> {
  const text = (await promisify(gunzip)(packed, { maxOutputLength: MAX_JSON_BYTES })).toString();
  const { files, lock } = archived.parse(parseJsonBody(text));
  await mkdir(join(into, slug), { recursive: true, mode: 0o700 });
  if (lock !== undefined) await writeFile(join(into, LOCK_FILE), Buffer.from(lock, 'base64'));
  for (const [path, content] of files) {
    // What is in the database is no reason to write elsewhere.
    if (path.split('/').some((name) => name === '' || name.startsWith('.') || name.includes('\0'))) {
      throw new Error(`the kept code of the agent "${slug}" has a file ${JSON.stringify(path)}`);
    }
    const file = join(into, slug, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, Buffer.from(content, 'base64'));
  }
}

/** The packages next to a directory: in it, or in the nearest folder above. */
async function packagesAbove(directory: string): Promise<string | undefined> {
  const found = join(directory, PACKAGES);
  if (await stat(found).catch(() => undefined)) return found;
  return dirname(directory) === directory || basename(directory) === ''
    ? undefined
    : packagesAbove(dirname(directory));
}

async function link(target: string | undefined, path: string): Promise<void> {
  if (target === undefined || !(await stat(target).catch(() => undefined))) return;
  await symlink(target, path, 'dir');
}
