import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { type BatonProcess, startProcess } from '../support/baton-process.js';
import { MachineClock } from '../support/machine-clock.js';
import { startTestPostgres } from '../support/postgres.js';
import { type PrivateRedis, startPrivateRedis } from '../support/redis.js';
import { SmallDisk } from '../support/small-disk.js';
import { insertTenant, insertToken } from '../support/tenants.js';
import { migrate } from '../../libs/database/src/migrations/migrate.js';
import { areReady, type Probed, startProbed, untilReady } from './probed.js';

/** What is wrong with a machine. */
export const MACHINE_FAULTS = ['disk', 'clocks', 'key', 'eviction'] as const;

export interface MachineOptions {
  /**
   * - `disk`: the disk of Postgres is full
   * - `clocks`: the clock of Baton's machines jumps two hours ahead, then two hours behind that of Postgres
   * - `key`: processes with another master key try to join
   * - `eviction`: Redis has little memory and deletes keys of the queue
   */
  fault: (typeof MACHINE_FAULTS)[number];
  seconds: number;
  driver: 'redis' | 'postgres';
  workers: number;
}

/** What callers and operators saw while a machine was at fault. */
export interface MachineReport {
  tasks: { accepted: number; completed: number };
  /** Refused calls: the HTTP status, and how many got it. */
  refused: Record<string, number>;
  slowestCallSeconds: number;
  /** Time from the beginning of the fault until `/readyz` of a process named it. Undefined: never. */
  namedAfterSeconds: number | undefined;
  /** Time from the end of the fault until every process was ready and a new task ended. Undefined: not within 60 s. */
  recoverySeconds: number | undefined;
  /** Further data about this fault, for the report. */
  notes: string[];
  faults: string[];
}

const HOUR_MS = 3_600_000;
const SEND_EVERY_MS = 100;
const LOOK_EVERY_MS = 250;
/** Each call is answered by then: no caller hangs. */
const MAX_CALL_MS = 20_000;
const MAX_RECOVERY_MS = 30_000;
/** A status time may differ from the clock of Postgres by so much. */
const ACCURACY_MS = 5_000;
const WARM_UP_MS = 3_000;
/** Room for Postgres, its WAL, and the tasks of the run. */
const DISK = '300m';
const MIB = 2 ** 20;

/** The servers and processes of a run. */
interface Site {
  env: Record<string, string>;
  disk: SmallDisk | undefined;
  redis: PrivateRedis | undefined;
  clock: MachineClock;
  processes: Probed[];
  tokens: { good: string; expired: string };
  /** Data about this fault, for the report. */
  notes: string[];
  /** What must not happen. */
  faults: string[];
}

/** How a fault begins, continues and ends, and the sign by which an operator recognizes it. */
interface MachineFault {
  begin(site: Site): Promise<void> | void;
  /** Called again and again while the fault lasts. @param share of its time that has passed, from 0 to 1 */
  go?(site: Site, share: number): Promise<void> | void;
  end(site: Site): Promise<void> | void;
  /** A warning of `/readyz`; undefined: the processes that run are all right. */
  warning: RegExp | undefined;
}

const FAULTS: Record<MachineOptions['fault'], MachineFault> = {
  disk: {
    begin: ({ disk }) => disk?.fill(),
    end: ({ disk }) => disk?.free(),
    warning: /its disk is full/,
  },
  clocks: {
    begin: ({ clock }) => clock.set(2 * HOUR_MS),
    go: ({ clock }, share) => clock.set(share < 0.5 ? 2 * HOUR_MS : -2 * HOUR_MS),
    end: ({ clock }) => clock.set(0),
    warning: /the clock of this machine is/,
  },
  key: {
    begin: () => undefined,
    go: tryToJoin,
    end: () => undefined,
    warning: undefined,
  },
  eviction: {
    begin: async ({ redis }) =>
      onRedis(redis, async (client) => {
        const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
        await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
        await client.config('SET', 'maxmemory', String(used + 2 * MIB));
      }),
    go: ({ redis }) =>
      onRedis(redis, async (client) => {
        // What a cache on the same Redis does.
        for (let i = 0; i < 8; i++)
          await client.set(`cache:${randomBytes(6).toString('hex')}`, randomBytes(MIB / 8));
      }),
    end: ({ redis, notes }) =>
      onRedis(redis, async (client) => {
        notes.push(`keys evicted: ${/evicted_keys:(\d+)/.exec(await client.info('stats'))?.[1]}`);
        await client.config('SET', 'maxmemory', '0');
        await client.config('SET', 'maxmemory-policy', 'noeviction');
      }),
    warning: /maxmemory-policy is allkeys-lru/,
  },
};

async function onRedis(
  redis: PrivateRedis | undefined,
  work: (client: Redis) => Promise<void>,
): Promise<void> {
  if (!redis) throw new Error('eviction needs Redis: leave out --driver postgres.');
  const client = new Redis(redis.url);
  await work(client).finally(() => client.disconnect());
}

/** An API and a worker with another master key must not start. */
async function tryToJoin({ env, faults, notes }: Site): Promise<void> {
  const stray = { ...env, BATON_MASTER_KEY: randomBytes(32).toString('base64') };
  for (const kind of ['api', 'worker'] as const) {
    const started = await startProcess(kind, stray).catch((error: unknown) => String(error));
    if (typeof started === 'string') {
      const reason = /could not start: [^\n"]*/.exec(started)?.[0] ?? started.slice(-300);
      if (!/BATON_MASTER_KEY/.test(reason))
        faults.push(`a ${kind} with another key has not started, and does not say why: ${reason}`);
      else if (!notes.some((note) => note.startsWith(kind)))
        notes.push(`${kind} with another key: ${reason}`);
    } else {
      faults.push(`a ${kind} with another master key has joined`);
      await started.kill();
    }
  }
}

/** Starts an API and workers, sends tasks, has a machine at fault for a while, and looks at what comes of it. */
export async function runMachine(
  options: MachineOptions,
  tell: (line: string) => void = () => undefined,
): Promise<MachineReport> {
  const disk = options.fault === 'disk' ? SmallDisk.mount(DISK) : undefined;
  if (typeof disk === 'string')
    throw new Error(`There is no small disk here (${disk}): only root may mount one.`);
  const folder = disk?.folder ?? mkdtempSync(join(tmpdir(), 'baton-machine-'));
  chmodSync(folder, 0o711);
  const settings: Record<string, string> = disk
    ? { shared_buffers: '32MB', min_wal_size: '32MB', max_wal_size: '64MB' }
    : {};
  const postgres = await startTestPostgres(join(folder, 'postgres'), {
    settings,
    ...(disk && { tuning: {} }),
  });
  const redis = options.driver === 'redis' ? await startPrivateRedis() : undefined;
  const processes: Probed[] = [];
  try {
    await migrate(postgres.url);
    await insertTenant(postgres.url, 'machine');
    const token = (endsInMs: number): Promise<string> =>
      insertToken(postgres.url, 'machine', [], new Date(Date.now() + endsInMs));
    const tokens = { good: await token(HOUR_MS), expired: await token(-HOUR_MS) };
    const clock = new MachineClock();
    const env = {
      DATABASE_URL: postgres.url,
      REDIS_URL: redis?.url ?? '',
      BATON_MASTER_KEY: randomBytes(32).toString('base64'),
      ...clock.env,
    };
    const kinds: BatonProcess['kind'][] = [
      'api',
      ...Array.from({ length: options.workers }, () => 'worker' as const),
    ];
    // The first one gives the database its key.
    for (const kind of kinds) processes.push(await startProbed(kind, env));
    await untilReady(processes);
    const site = { env, disk, redis, clock, processes, tokens, notes: [], faults: [] };
    return await atFault(options, site, tell);
  } finally {
    disk?.free();
    await Promise.all(processes.map(({ process }) => process.kill()));
    await redis?.remove();
    await postgres.process.stop(10_000);
    disk?.unmount();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function atFault(
  options: MachineOptions,
  site: Site,
  tell: (line: string) => void,
): Promise<MachineReport> {
  const { processes, faults, notes } = site;
  const fault = FAULTS[options.fault];
  const ended: string[] = [];
  for (const { process } of processes) {
    void process.exited.then((code) => ended.push(`${process.kind} ${process.pid} (${String(code)})`));
  }
  const load = new Load(site);
  const sending = setInterval(() => void load.send(), SEND_EVERY_MS);
  await delay(WARM_UP_MS);

  const begun = performance.now();
  let namedAfterSeconds: number | undefined;
  const look = async (): Promise<void> => {
    if (fault.warning?.test(await warningsOf(processes))) namedAfterSeconds ??= secondsSince(begun);
  };
  await fault.begin(site);
  tell(`${options.fault}: begins`);
  while (performance.now() < begun + options.seconds * 1000) {
    await fault.go?.(site, (performance.now() - begun) / (options.seconds * 1000));
    await look();
    await load.checkTimes();
    await delay(LOOK_EVERY_MS);
  }
  await fault.end(site);
  const endedAt = performance.now();
  tell(`${options.fault}: has ended`);

  let recoverySeconds: number | undefined;
  while (recoverySeconds === undefined && performance.now() < endedAt + 2 * MAX_RECOVERY_MS) {
    const isServing = await load.probe();
    if ((await areReady(processes)) && isServing) recoverySeconds = secondsSince(endedAt);
    else await delay(LOOK_EVERY_MS);
  }
  clearInterval(sending);
  const completed = await load.completed();
  // What has ended by itself, before the run ends the rest.
  const measured = {
    tasks: { accepted: load.accepted.size, completed },
    refused: Object.fromEntries(load.refused),
    slowestCallSeconds: Math.round(load.slowestMs / 100) / 10,
    namedAfterSeconds,
    recoverySeconds,
    notes,
  };
  const more = [
    completed < load.accepted.size && `${load.accepted.size - completed} accepted tasks have not completed`,
    fault.warning !== undefined &&
      namedAfterSeconds === undefined &&
      'no process has named the fault on /readyz',
    (recoverySeconds === undefined || recoverySeconds > MAX_RECOVERY_MS / 1000) &&
      `no recovery within ${MAX_RECOVERY_MS / 1000} s`,
    [...load.refused.keys()].some((status) => status !== '503') &&
      'callers were refused with another status than 503',
    ended.length > 0 && `processes have ended: ${ended.join(', ')}`,
  ];
  return { ...measured, faults: [...new Set(faults), ...more.filter((each) => each !== false)] };
}

const secondsSince = (then: number): number => Math.round((performance.now() - then) / 100) / 10;

async function warningsOf(processes: readonly Probed[]): Promise<string> {
  const texts = processes.map(({ metricsUrl }) =>
    fetch(`${metricsUrl}/readyz`, { signal: AbortSignal.timeout(MAX_CALL_MS) }).then(
      (answer) => answer.text(),
      () => '',
    ),
  );
  return (await Promise.all(texts)).join('\n');
}

/** Callers who send tasks to the API, and look for each later. */
class Load {
  readonly accepted = new Set<string>();
  readonly refused = new Map<string, number>();
  slowestMs = 0;

  constructor(private readonly site: Site) {}

  /** Sends a task of some size. @returns its id if it was accepted */
  async send(): Promise<string | undefined> {
    const message = {
      messageId: randomBytes(12).toString('hex'),
      role: 'ROLE_USER',
      parts: [{ text: randomBytes(16_384).toString('hex') }],
    };
    const begun = performance.now();
    const answer = await this.call('POST', '/agents/echo/message:send', {
      message,
      configuration: { returnImmediately: true },
    });
    this.slowestMs = Math.max(this.slowestMs, performance.now() - begun);
    const id = (answer.json as { task?: { id?: string } }).task?.id;
    if (id !== undefined) this.accepted.add(id);
    else this.refused.set(answer.status, (this.refused.get(answer.status) ?? 0) + 1);
    return id;
  }

  /** Whether a new task is accepted and completes at once. */
  async probe(): Promise<boolean> {
    const id = await this.send();
    if (id === undefined) return false;
    const until = performance.now() + 2_000;
    while (performance.now() < until) {
      if ((await this.stateOf(id)) === 'completed') return true;
      await delay(50);
    }
    return false;
  }

  /** An expired token is refused, a good one is not, and status times are those of the true clock. */
  async checkTimes(): Promise<void> {
    const { faults, tokens } = this.site;
    const expired = await this.call('GET', '/v1/whoami', undefined, tokens.expired);
    if (expired.status === '200') faults.push('an expired token was accepted');
    const good = await this.call('GET', '/v1/whoami');
    if (!['200', '503'].includes(good.status)) faults.push(`a good token was refused with ${good.status}`);
    const id = [...this.accepted].at(-1);
    if (id === undefined) return;
    const { json } = await this.call('GET', `/agents/echo/tasks/${id}`);
    const time = (json as { status?: { timestamp?: string } }).status?.timestamp;
    if (time !== undefined && Date.parse(time) > Date.now() + ACCURACY_MS)
      faults.push(`a task has a status time in the future: ${time}`);
  }

  /** How many of the accepted tasks have completed, a minute later at most. */
  async completed(): Promise<number> {
    const until = performance.now() + 60_000;
    const open = new Set(this.accepted);
    while (open.size > 0 && performance.now() < until) {
      for (const id of open) if ((await this.stateOf(id)) === 'completed') open.delete(id);
      if (open.size > 0) await delay(LOOK_EVERY_MS);
    }
    return this.accepted.size - open.size;
  }

  private async stateOf(id: string): Promise<unknown> {
    const { json } = await this.call('GET', `/v1/tasks/${id}`);
    return (json as { state?: unknown }).state;
  }

  /** @returns the HTTP status, or why there is none */
  private async call(
    method: string,
    path: string,
    body?: object,
    token = this.site.tokens.good,
  ): Promise<{ status: string; json: unknown }> {
    try {
      const answer = await fetch(`${this.site.processes[0]!.process.url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/a2a+json',
          'a2a-version': '1.0',
        },
        ...(body && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(MAX_CALL_MS),
      });
      return { status: String(answer.status), json: await answer.json().catch(() => ({})) };
    } catch (error) {
      return {
        status: error instanceof Error && error.name === 'TimeoutError' ? 'no answer' : 'no connection',
        json: {},
      };
    }
  }
}

/** The report as a person reads it. */
export function renderMachine(report: MachineReport): string {
  const { tasks, refused, slowestCallSeconds, namedAfterSeconds, recoverySeconds, notes, faults } = report;
  const counts = Object.entries(refused).map(([status, count]) => `${count} with ${status}`);
  return [
    `tasks                      ${tasks.accepted} accepted, ${tasks.completed} completed`,
    `calls refused              ${counts.join(', ') || 'none'}`,
    `slowest call               ${slowestCallSeconds} s`,
    ...(namedAfterSeconds === undefined ? [] : [`named on /readyz           after ${namedAfterSeconds} s`]),
    `recovered                  ${recoverySeconds === undefined ? 'no' : `after ${recoverySeconds} s`}`,
    ...notes,
    ...(faults.length > 0 ? faults.map((fault) => `FAULT ${fault}`) : ['no fault']),
  ].join('\n');
}
