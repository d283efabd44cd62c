import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { freePort } from './ports.js';
import { CERTIFICATE, KEY, OTHER_CERTIFICATE } from './certificates.js';
import { findRedisBinary, type RunningRedis } from '../../apps/local/src/services/index.js';
import { startStockRedis } from './stock-redis.js';

/** The messaging drivers that can be tested here: Redis only where there is one. */
export const DRIVERS: readonly ('redis' | 'postgres')[] = process.env.TEST_REDIS_URL
  ? ['redis', 'postgres']
  : ['postgres'];

/** The URL of a logical database of the test Redis that no other test file uses. */
export async function createRedisUrl(): Promise<string> {
  const base = process.env.TEST_REDIS_URL;
  if (!base) throw new Error('There is no Redis here: ask DRIVERS first.');
  const redis = new Redis(base);
  try {
    return `${base}/${await redis.incr('databases-taken')}`;
  } finally {
    redis.disconnect();
  }
}

/** A Redis for one test alone, which it may flush, kill and bring back. */
export interface PrivateRedis extends RunningRedis {
  /** Ends it without a goodbye. */
  crash(): Promise<void>;
  /** Forgets everything. */
  flush(): Promise<void>;
  /** Starts it again under the same URL. */
  restart(): Promise<void>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

/**
 * As docker-compose.yml sets it.
 * @param settings further lines of its configuration
 */
export async function startPrivateRedis(settings: readonly string[] = []): Promise<PrivateRedis> {
  const binary = findRedisBinary();
  if (!binary) throw new Error('There is no Redis here: ask DRIVERS first.');
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  let running = await startStockRedis(binary, folder, { settings });
  const { url } = running;
  return {
    url,
    get process() {
      return running.process;
    },
    crash: async () => {
      running.process.kill();
      await running.process.exited;
    },
    flush: async () => {
      const redis = new Redis(url);
      await redis.flushall().finally(() => redis.disconnect());
    },
    restart: async () => {
      running = await startStockRedis(binary, folder, { at: url, settings });
    },
    remove: async () => {
      await running.process.stop(5000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A private Redis behind TLS. */
export interface TlsRedis extends PrivateRedis {
  /** `rediss://`, without the CA. */
  tlsUrl: string;
  caFile: string;
  /** A CA that has not signed the certificate of this server. */
  otherCaFile: string;
}

export async function startTlsRedis(): Promise<TlsRedis> {
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  const [caFile, keyFile, otherCaFile] = ['server.crt', 'server.key', 'other.crt'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  writeFileSync(caFile, CERTIFICATE);
  writeFileSync(keyFile, KEY, { mode: 0o600 });
  writeFileSync(otherCaFile, OTHER_CERTIFICATE);
  const port = await freePort();
  const redis = await startPrivateRedis([
    `tls-port ${port}`,
    `tls-cert-file "${caFile}"`,
    `tls-key-file "${keyFile}"`,
    `tls-ca-cert-file "${caFile}"`,
    'tls-auth-clients no',
  ]);
  const { password } = new URL(redis.url);
  const { remove } = redis;
  return Object.assign(redis, {
    tlsUrl: `rediss://:${password}@127.0.0.1:${port}`,
    caFile,
    otherCaFile,
    remove: async () => {
      await remove();
      rmSync(folder, { recursive: true, force: true });
    },
  });
}
