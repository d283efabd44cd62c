import { Redis } from 'ioredis';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './ports.js';
import { findRedisBinary } from '../../apps/local/src/services/index.js';
import { type ServiceProcess, startService } from '../../apps/local/src/services/service-process.js';
import { startStockRedis } from './stock-redis.js';
import { untilReady } from './until.js';

const NAME = 'main';
const SENTINEL_PASSWORD = 'of-the-sentinels';
/** A primary of Redis, a replica, and three Sentinels that watch both. */
export interface SentinelRedis {
  /** As REDIS_URL has it. */
  url: string;
  /** From now on the replica misses what is written. */
  cutReplication(): Promise<void>;
  /** `kill -9`. Resolves when the replica is the primary. */
  crashPrimary(): Promise<void>;
  stop(): Promise<void>;
}

export async function startSentinelRedis(): Promise<SentinelRedis> {
  const binary = findRedisBinary();
  if (!binary) throw new Error('There is no Redis here: ask DRIVERS first.');
  const root = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  const first = await startStockRedis(binary, join(root, 'first'));
  const { password, port } = new URL(first.url);
  const secondPort = await freePort();
  const second = await startStockRedis(binary, join(root, 'second'), {
    at: `redis://:${password}@127.0.0.1:${secondPort}`,
    settings: [`replicaof 127.0.0.1 ${port}`, `masterauth ${password}`],
  });
  const ports = await Promise.all([0, 1, 2].map(() => freePort()));
  const sentinels = ports.map((own, n) =>
    startSentinel(binary, join(root, `sentinel-${n}`), own, { port, password }),
  );
  const [primary, replica, asked] = [
    new Redis(first.url, { retryStrategy: () => null }),
    new Redis(second.url),
    ports.map((own) => new Redis({ host: '127.0.0.1', port: own, password: SENTINEL_PASSWORD })),
  ];
  for (const client of [primary, replica, ...asked]) client.on('error', () => undefined);
  const isKnown = async (sentinel: Redis): Promise<boolean> => {
    const [others, replicas] = (await Promise.all([
      sentinel.call('SENTINEL', 'SENTINELS', NAME),
      sentinel.call('SENTINEL', 'REPLICAS', NAME),
    ])) as [unknown[], string[][]];
    return (
      others.length === 2 && replicas.length === 1 && String(replicas[0]).includes('master-link-status,ok')
    );
  };
  await Promise.all(asked.map((sentinel) => untilReady(() => isKnown(sentinel))));
  return {
    url:
      `redis://:${password}@127.0.0.1:${ports[0]}/0?sentinel=${NAME}&sentinelPassword=${SENTINEL_PASSWORD}` +
      `&hosts=127.0.0.1:${ports[1]},127.0.0.1:${ports[2]}`,
    cutReplication: async () => {
      await replica.config('SET', 'masterauth', 'wrong');
      await primary.call('CLIENT', 'KILL', 'TYPE', 'replica');
    },
    crashPrimary: async () => {
      first.process.kill();
      await first.process.exited;
      await untilReady(async () => ((await replica.call('ROLE')) as string[])[0] === 'master');
    },
    stop: async () => {
      for (const client of [primary, replica, ...asked]) client.disconnect();
      await Promise.all([...sentinels, first.process, second.process].map((each) => each.stop(5000)));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

function startSentinel(
  binary: string,
  folder: string,
  port: number,
  primary: { port: string; password: string },
): ServiceProcess {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, 'sentinel.conf');
  const lines = [
    'bind 127.0.0.1',
    `port ${port}`,
    `dir "${folder}"`,
    `requirepass ${SENTINEL_PASSWORD}`,
    `sentinel sentinel-pass ${SENTINEL_PASSWORD}`,
    `sentinel monitor ${NAME} 127.0.0.1 ${primary.port} 2`,
    `sentinel auth-pass ${NAME} ${primary.password}`,
    `sentinel down-after-milliseconds ${NAME} 2000`,
    `sentinel failover-timeout ${NAME} 10000`,
  ];
  writeFileSync(file, lines.join('\n'), { mode: 0o600 });
  return startService({
    name: 'sentinel',
    command: binary,
    args: [file, '--sentinel'],
    logFile: join(folder, 'sentinel.log'),
    pidFile: join(folder, 'process.json'),
    stopSignal: 'SIGTERM',
  });
}
