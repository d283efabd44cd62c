import { existsSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';

const LOCK_FILE = 'migration_lock.toml';

/**
 * `prisma/migrations` of the project this file belongs to: the nearest one upwards, from the sources as well
 * as from `dist`, on a developer's machine as well as in the image. Throws if there is none.
 */
export function migrationsFolder(): string {
  for (let folder = __dirname; ; folder = dirname(folder)) {
    const candidate = join(folder, 'prisma', 'migrations');
    if (existsSync(join(candidate, LOCK_FILE))) return candidate;
    if (folder === dirname(folder)) throw new Error(`No prisma/migrations above ${__dirname}`);
  }
}

/** Names of the migrations, in the order in which they are applied. */
export const migrationNames = (folder = migrationsFolder()): string[] =>
  readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort();

/** The folder of this project: that of its package.json. */
export const projectFolder = (): string => dirname(dirname(migrationsFolder()));
