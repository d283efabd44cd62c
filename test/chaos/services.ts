import { Redis } from 'ioredis';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type QueryResultRow } from 'pg';
import { findRedisBinary, startPostgres } from '../../apps/local/src/services/index.js';
import { findPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { type RedisCluster, startRedisCluster } from '../support/redis-cluster.js';
import { stockPostgres } from '../support/stock-postgres.js';
import { startStockRedis } from '../support/stock-redis.js';
import { TcpProxy } from './tcp-proxy.js';

/** What carries the queue and the signals. `cluster`: a Redis Cluster, which is reached without a proxy. */
export type Driver = 'redis' | 'postgres' | 'cluster';

/** Connections that a pooler opens to Postgres. */
const POOLED = 20;

/** A server that can be struck, and the proxy in front of it for all but the harness. */
interface Service {
  process: {
    readonly pid: number;
    readonly exited: Promise<string>;
    stop(timeoutMs?: number): Promise<void>;
  };
  /** Straight to the server. */
  url: string;
  proxy: TcpProxy;
}

/** Postgres and Redis of one run, with data of their own, as an operator runs them: everything durable. */
export class Services {
  private constructor(
    private readonly folder: string,
    private readonly postgres: Service,
    private readonly redis: Service | undefined,
    private readonly cluster: RedisCluster | undefined,
    private readonly pooler: PgBouncer | undefined,
  ) {}

  /** @param isPooled whether Baton reaches Postgres through PgBouncer */
  static async start(driver: Driver, isPooled = false): Promise<Services> {
    const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
    chmodSync(folder, 0o711); // As root, Postgres runs as another user, who must get in.
    const postgres = await proxied(await startPostgres(join(folder, 'postgres'), stockPostgres()));
    const binary = findRedisBinary();
    if (driver === 'redis' && !binary)
      throw new Error('There is no redis-server on PATH: use --driver postgres.');
    const redis =
      driver === 'redis' && binary
        ? await proxied(await startStockRedis(binary, join(folder, 'redis')))
        : undefined;
    const cluster = driver === 'cluster' ? await startRedisCluster() : undefined;
    const bouncer = isPooled ? findPgBouncer() : undefined;
    if (isPooled && !bouncer) throw new Error('There is no pgbouncer here: leave out --pooler.');
    const throughProxy = postgres.proxy.through(postgres.url);
    const pooler = bouncer ? await startPgBouncer(bouncer, throughProxy, POOLED) : undefined;
    return new Services(folder, postgres, redis, cluster, pooler);
  }

  /** The environment of a process that reaches them through the proxies. */
  get environment(): Record<string, string> {
    const { postgres, redis, cluster, pooler } = this;
    const direct = postgres.proxy.through(postgres.url);
    return {
      ...(pooler ? { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: direct } : { DATABASE_URL: direct }),
      REDIS_URL: cluster?.url ?? (redis ? redis.proxy.through(redis.url) : ''),
    };
  }

  get postgresProxy(): TcpProxy {
    return this.postgres.proxy;
  }

  get redisProxy(): TcpProxy {
    return this.theRedis.proxy;
  }

  /** Straight to Postgres, on a connection of its own, across tenants. */
  async query<Row extends QueryResultRow>(text: string, values: unknown[] = []): Promise<Row[]> {
    const client = new Client({ connectionString: this.postgres.url, application_name: 'chaos' });
    client.on('error', () => undefined);
    await client.connect();
    try {
      await client.query(`SET baton.tenant = 'system'`);
      return (await client.query<Row>(text, values)).rows;
    } finally {
      await client.end();
    }
  }

  /** Cut every connection but our own, at the server. @returns how many */
  async terminateConnections(): Promise<number> {
    const rows = await this.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user AND application_name <> 'chaos'`,
    );
    return rows.length;
  }

  /** Stop Postgres as if the machine had failed, and start it again on its data. */
  async restartPostgres(): Promise<void> {
    process.kill(this.postgres.process.pid, 'SIGQUIT');
    await this.postgres.process.exited;
    const { url } = this.postgres;
    const options = { ...stockPostgres(), at: url };
    this.postgres.process = (await startPostgres(join(this.folder, 'postgres'), options)).process;
  }

  /** `kill -9` and a start with the appendonly file. */
  async restartRedis(downMs: number, pause: (ms: number) => Promise<void>): Promise<void> {
    const redis = this.theRedis;
    process.kill(redis.process.pid, 'SIGKILL');
    await redis.process.exited;
    await pause(downMs);
    const started = await startStockRedis(findRedisBinary() ?? '', join(this.folder, 'redis'), {
      at: redis.url,
    });
    redis.process = started.process;
  }

  async flushRedis(): Promise<void> {
    if (this.cluster) return this.cluster.flush();
    const client = new Redis(this.theRedis.url);
    await client.flushall().finally(() => client.disconnect());
  }

  get redisCluster(): RedisCluster {
    if (!this.cluster) throw new Error('This run has no Redis Cluster.');
    return this.cluster;
  }

  /** Stop everything and remove the data. */
  async stop(): Promise<void> {
    await this.pooler?.remove();
    await this.cluster?.stop();
    for (const service of [this.postgres, this.redis]) {
      service?.proxy.close();
      await service?.process.stop(5000);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get theRedis(): Service {
    if (!this.redis) throw new Error('This run has no Redis.');
    return this.redis;
  }
}

async function proxied({ process, url }: Omit<Service, 'proxy'>): Promise<Service> {
  return { process, url, proxy: await TcpProxy.start(Number(new URL(url).port)) };
}
