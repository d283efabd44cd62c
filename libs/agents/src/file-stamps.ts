import { stat } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Metadata of files, without reading them. A file with the same stamp has the same content: each write changes its ctime, and no program
 * can set that back.
 *
 * @param folder absolute path
 * @param paths relative to it
 * @returns stamps by path; files that are not there are left out
 */
export async function fileStamps(folder: string, paths: readonly string[]): Promise<Map<string, string>> {
  const stamps = await Promise.all(
    paths.map((path) =>
      stat(join(folder, path)).then(
        ({ dev, ino, size, mtimeMs, ctimeMs }) =>
          [path, [dev, ino, size, mtimeMs, ctimeMs].join(' ')] as const,
        () => undefined,
      ),
    ),
  );
  return new Map(stamps.filter((stamp) => stamp !== undefined));
}

/** Whether the same files are there with the same stamps. */
export const isSameFiles = (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean =>
  a.size === b.size && [...a].every(([path, stamp]) => b.get(path) === stamp);
