import { randomUUID } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Account, canReach } from './account.js';

const PLACES = ['/var/lib/baton', '/var/tmp/baton'];

/**
 * The folder itself if `account` may enter it. Otherwise (say, it lies below /root) another one that it may; the
 * file `location` in the folder remembers which, so that the next start finds the same data.
 */
export function readableFolder(folder: string, account: Account | undefined): string {
  const location = join(folder, 'location');
  if (existsSync(location)) return readFileSync(location, 'utf8').trim();
  if (!account || canReach(join(folder, 'data'), account)) return folder;
  const place = PLACES.map(madeWritable).find((made) => made !== undefined);
  if (!place) {
    throw new Error(
      `Postgres runs as the user "${account.name}", who may not enter ${folder}, and neither ` +
        `${PLACES.join(' nor ')} can be written: set BATON_HOME to a folder that everybody may enter.`,
    );
  }
  const elsewhere = join(place, randomUUID());
  mkdirSync(elsewhere, { mode: 0o711 });
  writeFileSync(location, `${elsewhere}\n`);
  return elsewhere;
}

function madeWritable(place: string): string | undefined {
  try {
    mkdirSync(place, { recursive: true, mode: 0o711 });
    accessSync(place, constants.W_OK);
    return place;
  } catch {
    return undefined;
  }
}
