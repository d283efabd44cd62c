import { createHash } from 'node:crypto';
import { readFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Files of which an agent is made. */
const SOURCE = /\.([cm]?[jt]s|json|ya?ml|wasm)$/;
const TEST = /\.(test|spec)\.[cm]?[jt]s$/;

/** Whether a file of an agent's folder is code. Others may be data: the working folder of an agent is its own folder. */
export const isSourceFile = (path: string): boolean => SOURCE.test(path) && !TEST.test(path);

/** Whether a source file is code of an agent, and not data that it may have written: a module, its settings, its packages. */
export const isModule = (path: string): boolean =>
  /\.([cm]?[jt]s|wasm)$/.test(path) || /(^|\/)(agent\.yaml|package(-lock)?\.json)$/.test(path);

/** The names of the versions of packages. Agents may share their packages. */
export const LOCK_FILE = 'package-lock.json';
const LOCK_FILE_ABOVE = `../${LOCK_FILE}`;
/** Maximum files that are read of the folder of an agent, which may hold anything. */
const MAX_FILES = 10_000;
/** Folders may link to each other in a circle. */
const MAX_DEPTH = 20;
/** Contents that are read. For further files, only the size is compared. */
const MAX_BYTES = 64 * 1024 * 1024;
/** Characters of a hash. */
const LENGTH = 16;

/**
 * A hash of the code of an agent: of the names and contents of the source files in its folder, without tests and hidden files. The lock
 * files of npm, its own and that of the directory, stand for the packages. The same files have the same hash in every worker.
 *
 * @param directory absolute path of `BATON_AGENTS_DIR`
 * @throws the error of the file system, for a folder that cannot be read
 */
export async function agentCode(directory: string, slug: string): Promise<string> {
  const folder = join(directory, slug);
  const hash = new CodeHash();
  for (const path of await agentFiles(folder, isSourceFile)) await hash.addFile(path, join(folder, path));
  await hash.addFile(LOCK_FILE_ABOVE, join(directory, LOCK_FILE)).catch(() => undefined);
  return hash.end();
}

/**
 * The same hash (`agentCode`) of files that are in memory.
 * @param files contents by path, in the order of `agentFiles`
 * @param lock content of the lock file of the directory; undefined: there is none
 */
export function codeOfFiles(files: readonly (readonly [string, Buffer])[], lock: Buffer | undefined): string {
  const hash = new CodeHash();
  for (const [path, content] of files) if (isSourceFile(path)) hash.add(path, content.length, content);
  if (lock) hash.add(LOCK_FILE_ABOVE, lock.length, lock);
  return hash.end();
}

class CodeHash {
  private readonly hash = createHash('sha256');
  private bytes = 0;

  async addFile(name: string, path: string): Promise<void> {
    const { size } = await stat(path);
    this.add(name, size, this.bytes + size <= MAX_BYTES ? await readFile(path) : undefined);
  }

  add(name: string, size: number, content: Buffer | undefined): void {
    this.bytes += size;
    this.hash.update(`${name}\0${size}\0`);
    if (content && this.bytes <= MAX_BYTES) this.hash.update(content);
  }

  end(): string {
    return this.hash.digest('hex').slice(0, LENGTH);
  }
}

/**
 * The files of an agent's folder without packages and hidden files, at most 10,000: relative paths in an order that is the same
 * everywhere. Follows symbolic links, as mounted folders consist of them.
 */
export async function agentFiles(folder: string, isWanted: (path: string) => boolean): Promise<string[]> {
  const found: string[] = [];
  const walk = async (path: string, depth: number): Promise<void> => {
    const names = (await readdir(join(folder, path))).filter((name) => !isSkipped(name)).sort();
    for (const name of names) {
      const below = path === '' ? name : `${path}/${name}`;
      const kind = await stat(join(folder, below)).catch(() => undefined);
      if (kind?.isDirectory() && depth < MAX_DEPTH) await walk(below, depth + 1);
      else if (kind?.isFile() && isWanted(below) && found.length < MAX_FILES) found.push(below);
    }
  };
  await walk('', 0);
  return found;
}

const isSkipped = (name: string): boolean => name === 'node_modules' || name.startsWith('.');
