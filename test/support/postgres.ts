import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type PostgresOptions,
  type RunningPostgres,
  startPostgres,
} from '../../apps/local/src/services/index.js';
import { migrate } from '../../libs/database/src/migrations/migrate.js';
import type { TestDatabase } from './database.js';
import { composeTuning } from './stock-postgres.js';

/** Folder with the `bin` of a release that `npm run test:postgres` has fetched. */
export const programsOf = (release: string): string =>
  join(__dirname, '../../.baton/postgres-releases', release, 'native');

/** The release that the tests run on, and its programs. Default: the one that npm has installed. */
const release = process.env.TEST_POSTGRES;
export const programs = release === undefined ? undefined : programsOf(release);

/** Neither UTC nor the zone of the processes (jest.config.js): a time that is read or written in the wrong zone fails a test. */
const ZONE = { timezone: 'America/New_York' };

/** As `startPostgres`, with the release that the tests run on, set as docker-compose.yml sets it. */
export const startTestPostgres = (folder: string, options: PostgresOptions = {}): Promise<RunningPostgres> =>
  startPostgres(folder, {
    tuning: composeTuning(),
    ...(programs !== undefined && { programs }),
    ...options,
    settings: { ...ZONE, ...options.settings },
  });

/** The password is random, so nothing is gained by 4,096 rounds, which a client needs 5 ms for at each connection. */
export const CHEAP_LOGINS: Record<string, string> =
  release !== undefined && Number(release) < 16 ? {} : { scram_iterations: '1' };

/**
 * Keeps a copy of a Postgres that is stopped and whose database is migrated: each private Postgres starts from it. Not if
 * its data are elsewhere, because its user may not enter the folder.
 */
export function keepSeed(folder: string, seed: string): void {
  if (existsSync(join(folder, 'location'))) return;
  copyFolder(folder, seed);
  process.env.TEST_POSTGRES_SEED = seed;
}

/**
 * Has ext4 put the files of each new database into another part of the disk. It would put them beside those of dropped
 * databases, whose places stay reserved for minutes: for each new file it would look at all of these. Other file systems do not
 * know the flag.
 */
export function spreadDatabases(folder: string): void {
  spawnSync('chattr', ['+T', join(stateFolder(folder), 'data/base')], { stdio: 'ignore' });
}

/** Its user may not enter every folder: `readableFolder`. */
function stateFolder(folder: string): string {
  const location = join(folder, 'location');
  return existsSync(location) ? readFileSync(location, 'utf8').trim() : folder;
}

/** With owners and modes: Postgres refuses the data of another user. */
const copyFolder = (from: string, to: string): void => void execFileSync('cp', ['-a', `${from}/.`, to]);

/** A Postgres for one test alone, which it may stop and bring back; durable, as that of an operator. */
export interface PrivatePostgres extends TestDatabase {
  /** Ends it; every connection breaks. */
  stop(): Promise<void>;
  /** Starts it again under the same URL. */
  restart(): Promise<void>;
  /** All it has logged. */
  log(): string;
}

/** @param options.programs of another release than the tests run on */
export async function startPrivatePostgres(
  options: Pick<PostgresOptions, 'programs' | 'settings'> = {},
): Promise<PrivatePostgres> {
  const folder = mkdtempSync(join(process.env.TEST_DATA_FOLDER ?? tmpdir(), `baton-test-${process.pid}-`));
  const isOther = options.programs !== undefined && options.programs !== programs;
  const seed = isOther ? undefined : process.env.TEST_POSTGRES_SEED;
  if (seed) copyFolder(seed, folder);
  chmodSync(folder, 0o711);
  const settings = { shared_buffers: '64MB', ...options.settings };
  let running = await startTestPostgres(folder, { ...options, settings });
  const { url } = running;
  if (!seed) await migrate(url);
  return {
    url,
    log: () => readFileSync(join(stateFolder(folder), 'postgres.log'), 'utf8'),
    stop: () => running.process.stop(5000),
    restart: async () => {
      running = await startTestPostgres(folder, { ...options, settings, at: url });
    },
    drop: async () => {
      await running.process.stop(5000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
