import { readFileSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** A user of the system. */
export interface Account {
  name: string;
  uid: number;
  gid: number;
}

/**
 * Whom Postgres must run as: root may not, so root hands it to `postgres` or, where there is none, to `nobody`.
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
