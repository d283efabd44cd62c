import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findRedisBinary } from '../../apps/local/src/services/index.js';
import { migrate } from '../../libs/database/src/migrations/migrate.js';
import { asAdministrator, TEMPLATE } from './database.js';
import { CHEAP_LOGINS, keepSeed, spreadDatabases, startTestPostgres } from './postgres.js';
import { startStockRedis } from './stock-redis.js';

const PREFIX = 'baton-test-';
const MEMORY = '/dev/shm';
/** The data of a run take less than a fifth of this. */
const MIN_FREE_BYTES = 8 * 1024 ** 3;

// A test database is thrown away, so it need not survive a power cut.
const NOT_DURABLE = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  shared_buffers: '64MB',
  ...CHEAP_LOGINS,
};

/**
 * Starts a Postgres and, if there is a binary, a Redis for one run of the tests, on free ports with data of their
 * own, and puts their URLs into TEST_DATABASE_URL and TEST_REDIS_URL. Returns how to stop them and remove all.
 */
export async function startServices(): Promise<() => Promise<void>> {
  for (const parent of [tmpdir(), MEMORY]) removeLeftovers(parent);
  const folder = mkdtempSync(join(parentOfData(), `${PREFIX}${process.pid}-`));
  chmodSync(folder, 0o711);
  const running: { stop(timeoutMs?: number): Promise<void> }[] = [];
  const stop = async () => {
    await Promise.all(running.map((service) => service.stop(5000)));
    rmSync(folder, { recursive: true, force: true });
  };
  process.env.TEST_DATA_FOLDER = folder;
  // optimize-later.fixture.cjs
  process.env.TEST_CODE_CACHE = join(folder, 'code');
  mkdirSync(process.env.TEST_CODE_CACHE);
  try {
    const options = { settings: NOT_DURABLE, roleAttributes: 'CREATEDB' };
    const first = await startTestPostgres(join(folder, 'postgres'), options);
    running.push(first.process);
    await migrate(first.url);
    await first.process.stop(5000);
    keepSeed(join(folder, 'postgres'), join(folder, 'seed'));
    spreadDatabases(join(folder, 'postgres'));
    const postgres = await startTestPostgres(join(folder, 'postgres'), { ...options, at: first.url });
    running.push(postgres.process);
    process.env.TEST_DATABASE_URL = postgres.url;
    await asAdministrator(`CREATE DATABASE ${TEMPLATE} TEMPLATE baton`);
    const binary = findRedisBinary();
    if (binary) {
      const redis = await startStockRedis(binary, join(folder, 'redis'), { databases: 1024 });
      running.push(redis.process);
      process.env.TEST_REDIS_URL = redis.url;
    } else {
      console.log('\nNo redis-server or valkey-server on PATH: the tests on the Redis driver are left out.');
    }
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Memory, where there is much. A run creates some 300,000 files of databases: on ext4 that takes 4 % of its CPU time.
 */
function parentOfData(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= MIN_FREE_BYTES ? MEMORY : tmpdir();
}

/** Folders of runs that were killed; their servers ended with them. */
function removeLeftovers(parent: string): void {
  if (!existsSync(parent)) return;
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith(PREFIX))) {
    const pid = Number(name.slice(PREFIX.length).split('-')[0]);
    if (!isAlive(pid)) rmSync(join(parent, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
