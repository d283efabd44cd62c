import { setTimeout as delay } from 'node:timers/promises';
import type { BatonProcess } from '../support/baton-process.js';
import type { Attacker } from './attacker.js';
import { now } from './caller.js';
import type { Cluster } from './cluster.js';
import type { Excuse, StruckRuns } from './observations.js';
import { pauseMachine } from './pause.js';
import type { Random } from './random.js';
import type { Driver, Services } from './services.js';

/** What a fault may lay its hands on. */
export interface Site {
  cluster: Cluster;
  services: Services;
  /** How long a claimed run belongs to a silent worker, in ms. */
  leaseMs: number;
  /** Notes what a worker had in hand when it was struck. */
  struck(runs: StruckRuns): void;
  /** Sends so many tasks at once and resolves when they have been accepted. */
  burst(tasks: number): Promise<void>;
  /** Runs that the workers can hold at once. */
  slots(): number;
  /** A tenant that means ill, whose tasks are none of those that are checked. */
  attacker: Attacker;
}

export interface Fault {
  drivers: readonly Driver[];
  /** What callers may see of it. */
  excuses: readonly Excuse[];
  /** Strike and repair. */
  strike(site: Site, random: Random): Promise<Blow>;
}

/** What exactly a fault did. */
export interface Blow {
  detail: string;
  /** The API process that was struck: callers of others have no excuse. */
  api?: number;
}

const NOBODY: Blow = { detail: 'nobody was there' };

const ALL: readonly Driver[] = ['redis', 'postgres', 'cluster'];
const REDIS: readonly Driver[] = ['redis'];
const CLUSTER: readonly Driver[] = ['cluster'];
const AWAY_MS = 10_000;

/** Every fault of what Baton runs on, by its name. A fault excuses only what it must: a killed worker, for one, nothing at all. */
export const FAULTS = {
  'kill-worker': {
    drivers: ALL,
    excuses: [],
    strike: async (site, random) => {
      const worker = site.cluster.victim('worker', (list) => random.pick(list));
      if (!worker) return NOBODY;
      await strikeWorker(site, worker, 'kill-worker');
      await site.cluster.replace(worker);
      return { detail: `worker ${worker.pid}` };
    },
  },
  'kill-api': {
    drivers: ALL,
    excuses: ['broken'],
    strike: async ({ cluster }, random) => {
      const api = cluster.victim('api', (list) => random.pick(list));
      if (!api) return NOBODY;
      await cluster.replace(api);
      return { detail: `api ${api.pid}`, api: api.pid };
    },
  },
  'stop-worker': {
    drivers: ALL,
    excuses: [],
    strike: async (site, random) => {
      const worker = site.cluster.victim('worker', (list) => random.pick(list));
      if (!worker) return NOBODY;
      await strikeWorker(site, worker, 'stop-worker');
      const ms = site.leaseMs + random.integer(1000, 5000);
      await delay(ms);
      worker.signal('SIGCONT');
      return { detail: `worker ${worker.pid} for ${ms} ms` };
    },
  },
  'stop-api': {
    drivers: ALL,
    excuses: ['silent'],
    strike: async ({ cluster }, random) => {
      const api = cluster.victim('api', (list) => random.pick(list));
      if (!api) return NOBODY;
      const ms = random.integer(1000, 8000);
      api.signal('SIGSTOP');
      await delay(ms);
      api.signal('SIGCONT');
      return { detail: `api ${api.pid} for ${ms} ms`, api: api.pid };
    },
  },
  'pause-machine': {
    drivers: ALL,
    excuses: ['unavailable', 'silent'],
    strike: async ({ leaseMs }, random) => {
      const ms = leaseMs + random.integer(1000, 12_000);
      return { detail: `${await pauseMachine(ms)} processes for ${ms} ms` };
    },
  },
  'restart-redis': {
    drivers: REDIS,
    excuses: [],
    strike: async ({ services }, random) => {
      const ms = random.integer(0, 2000);
      await services.restartRedis(ms, async (pause) => delay(pause));
      return { detail: `down for ${ms} ms` };
    },
  },
  'flush-redis': {
    drivers: [...REDIS, ...CLUSTER],
    excuses: [],
    strike: async ({ services }) => {
      await services.flushRedis();
      return { detail: 'FLUSHALL' };
    },
  },
  'lose-redis': {
    drivers: REDIS,
    excuses: [],
    strike: async ({ services }, random) => {
      const mode = random.pick(['blackhole', 'refuse'] as const);
      services.redisProxy.set({ mode });
      await delay(AWAY_MS);
      services.redisProxy.set({ mode: 'pass' });
      return { detail: `${mode} for ${AWAY_MS} ms` };
    },
  },
  'move-slot': {
    drivers: CLUSTER,
    excuses: [],
    strike: async ({ services }) => {
      await services.redisCluster.moveSlot();
      return { detail: 'to another primary' };
    },
  },
  'fail-over-redis': {
    drivers: CLUSTER,
    excuses: [],
    strike: async ({ services }) => {
      await services.redisCluster.failOver();
      return { detail: 'to its replica' };
    },
  },
  'restart-postgres': {
    drivers: ALL,
    excuses: ['unavailable'],
    strike: async ({ services }) => {
      await services.restartPostgres();
      return { detail: 'immediate stop and start' };
    },
  },
  'cut-postgres': {
    drivers: ALL,
    excuses: ['unavailable'],
    strike: async ({ services }) => ({ detail: `${await services.terminateConnections()} connections` }),
  },
  'lose-postgres': {
    drivers: ALL,
    excuses: ['unavailable', 'silent'],
    strike: async ({ services }, random) => {
      const mode = random.pick(['blackhole', 'refuse'] as const);
      const ms = random.integer(500, 6000);
      services.postgresProxy.set({ mode });
      await delay(ms);
      services.postgresProxy.set({ mode: 'pass' });
      return { detail: `${mode} for ${ms} ms` };
    },
  },
  'slow-postgres': {
    drivers: ALL,
    excuses: [],
    strike: async ({ services }, random) => {
      const [late, ms] = [random.integer(20, 150), random.integer(3000, 8000)];
      services.postgresProxy.set({ mode: 'delay', ms: late });
      await delay(ms);
      services.postgresProxy.set({ mode: 'pass' });
      return { detail: `${late} ms each way for ${ms} ms` };
    },
  },
  'full-queue': {
    drivers: ALL,
    excuses: [],
    strike: async (site) => {
      const tasks = site.slots() * 3;
      await site.burst(tasks);
      return { detail: `${tasks} tasks at once` };
    },
  },
} as const satisfies Record<string, Fault>;

/** Stop a worker and note what it had in hand: stopped, it cannot take or finish anything meanwhile. */
async function strikeWorker(site: Site, worker: BatonProcess, fault: keyof typeof FAULTS): Promise<void> {
  const at = now();
  worker.signal('SIGSTOP');
  const rows = await site.services
    .query<{ task_id: string; last_sequence: number }>(
      `SELECT t.id AS task_id, t.last_sequence FROM runs r
       JOIN tasks t ON t.tenant_id = r.tenant_id AND t.id = r.task_id
       WHERE r.state = 'running' AND r.worker_id LIKE $1`,
      [`${worker.pid}-%`],
    )
    .catch(() => []);
  site.struck({ fault, at, heads: new Map(rows.map((row) => [row.task_id, row.last_sequence])) });
}
