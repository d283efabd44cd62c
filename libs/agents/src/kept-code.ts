import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type ArchivedFiles, readArchive } from './agent-archive.js';
import { LOCK_FILE } from './agent-code.js';
import { fileStamps, isSameFiles } from './file-stamps.js';
import { type InstalledAgent, type LoadFailure, readAgent } from './installed-agents.js';
import { temporaryFolder } from './runtimes/executor/agent-sandbox.js';

/** No slug of an agent. */
const KEPT = '.kept';
/** What the platform and Node.js find in the folders above an agent. */
const ABOVE = ['node_modules', 'package.json', 'tsconfig.json'];
/** How long a copy is used before its files are checked again, in ms. */
const TRUSTED_MS = 1_000;
/** Copies whose state is known. The archive of others is read once more. */
const MAX_COPIES = 100;

/** A copy of the code of an agent. */
export interface KeptAgent {
  /** Absolute path. */
  folder: string;
  /** The definition in its `agent.yaml`, or all errors of that file. */
  read: InstalledAgent | LoadFailure[];
}

/** A copy whose files are those of its archive. */
interface CheckedCopy extends KeptAgent {
  paths: readonly string[];
  stamps: ReadonlyMap<string, string>;
  /** When it was checked, in ms of `performance.now()`. */
  at: number;
}

/**
 * Copies of the kept code of agents, below the folder for temporary files: one folder for each hash. Workers of this machine share them.
 * A copy is used only if its files are those of the archive: a program that cleans temporary folders, and the agent itself, may change it.
 */
export class KeptCode {
  private readonly copies = new Map<string, Promise<CheckedCopy | undefined>>();

  /**
   * The code that `packAgent` has packed, with the packages that are installed now.
   *
   * @param archive reads what `packAgent` has returned. It is called for the first use, and when files have changed
   * @param directory absolute path of `BATON_AGENTS_DIR`, for the packages
   * @returns undefined if there is no archive
   * @throws Error if the files of the archive do not have that hash; errors of `archive` and of the file system
   */
  async unpack(
    archive: () => Promise<Buffer | undefined>,
    agent: { slug: string; code: string; directory: string },
  ): Promise<KeptAgent | undefined> {
    const name = `${agent.slug}-${agent.code}`;
    // Turns that begin at the same time wait for the same copy.
    const copy = (this.copies.get(name) ?? Promise.resolve(undefined)).then((known) =>
      isTrusted(known) ? known : this.check(known, archive, agent),
    );
    this.copies.delete(name);
    this.copies.set(
      name,
      copy.catch(() => undefined),
    );
    for (const [oldest] of this.copies) {
      if (this.copies.size <= MAX_COPIES) break;
      this.copies.delete(oldest);
    }
    return copy;
  }

  private async check(
    known: CheckedCopy | undefined,
    archive: () => Promise<Buffer | undefined>,
    { slug, code, directory }: { slug: string; code: string; directory: string },
  ): Promise<CheckedCopy | undefined> {
    const at = performance.now();
    if (known && isSameFiles(await fileStamps(known.folder, known.paths), known.stamps))
      return { ...known, at };
    const packed = await archive();
    if (!packed) return undefined;
    const archived = await readArchive(packed, { slug, code });
    const kept = join(temporaryFolder(KEPT), `${slug}-${code}`);
    const folder = join(kept, slug);
    if (!(await hasFiles(folder, archived))) await makeFolder(kept, archived, { slug, directory });
    const paths = archived.files.map(([path]) => path);
    return { folder, read: await readAgent(kept, slug), paths, stamps: await fileStamps(folder, paths), at };
  }
}

const isTrusted = (copy: CheckedCopy | undefined): boolean =>
  copy !== undefined && performance.now() - copy.at < TRUSTED_MS;

/** Whether a folder has these files. It may have others: agents may write into their folder. */
async function hasFiles(folder: string, { files }: ArchivedFiles): Promise<boolean> {
  for (const [path, content] of files) {
    const found = await readFile(join(folder, path)).catch(() => undefined);
    if (!found?.equals(content)) return false;
  }
  return true;
}

async function makeFolder(
  kept: string,
  { files, lock }: ArchivedFiles,
  { slug, directory }: { slug: string; directory: string },
): Promise<void> {
  // Another worker of this machine may make it at the same time. A rename is atomic.
  const begun = await mkdtemp(`${kept}.`);
  const old = `${begun}.old`;
  const folder = join(begun, slug);
  try {
    await mkdir(folder, { mode: 0o700 });
    for (const [path, content] of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), content);
    }
    if (lock) await writeFile(join(begun, LOCK_FILE), lock);
    await linkPackages(join(directory, slug), folder);
    await linkNeighbours(directory, begun, slug);
    for (const name of ABOVE) await link(await nearestAbove(directory, name), join(begun, name));
    await rename(begun, kept).catch(async () => {
      if (await hasFiles(join(kept, slug), { files, lock })) return;
      await rename(kept, old);
      await rename(begun, kept);
    });
  } finally {
    await rm(begun, { recursive: true, force: true });
    await rm(old, { recursive: true, force: true });
  }
}

/** Links to packages and hidden files, which are not kept. Not to hidden folders: the agent may write into its own ones. */
async function linkPackages(installed: string, folder: string): Promise<void> {
  for (const name of await namesIn(installed)) {
    const path = join(installed, name);
    const isHiddenFile = name.startsWith('.') && (await stat(path).catch(() => undefined))?.isFile();
    if (name === 'node_modules' || isHiddenFile) await link(path, join(folder, name));
  }
}

/** Links to what is beside the folder of the agent, as it is now: packages, and modules that agents share. */
async function linkNeighbours(directory: string, kept: string, slug: string): Promise<void> {
  for (const name of await namesIn(directory)) {
    if (name === slug || name === LOCK_FILE || name.startsWith('.')) continue;
    await link(join(directory, name), join(kept, name));
  }
}

/** The folder of an agent that is no longer installed is not there. */
const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

/** A file or folder with this name in the nearest folder above a directory. */
async function nearestAbove(directory: string, name: string): Promise<string | undefined> {
  const above = dirname(directory);
  if (above === directory) return undefined;
  const found = join(above, name);
  return (await stat(found).catch(() => undefined)) ? found : nearestAbove(above, name);
}

async function link(target: string | undefined, path: string): Promise<void> {
  if (target === undefined) return;
  await symlink(target, path).catch((error: unknown) => {
    // There is a nearer one.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  });
}
