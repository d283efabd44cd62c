import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import type { BatonProcess } from '../support/baton-process.js';
import { findPgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { startPrivatePostgres } from '../support/postgres.js';
import { startPrivateRedis } from '../support/redis.js';
import { debianPostgres } from '../support/stock-postgres.js';
import { areReady, type Probed, startProbed, untilReady } from './probed.js';

/** As the release has them, other than those of `npm start`. */
const STOCK = { jit: 'on', max_connections: '100', shared_buffers: '128MB', random_page_cost: '4' };
const SAMPLE_MS = 250;
const FREEZE_MS = 50;
const PROBE_MS = 1_000;
/** A statement of an idle Baton takes milliseconds. */
const OLD_SECONDS = 5;
/** It must have recovered after this time. */
const RECOVERY_MS = 30_000;
/** Connections to Postgres behind a pooler. */
const POOLED = 20;

/** What keeps Postgres from answering. */
export const PRESSURES = ['burners', 'freeze', 'locks'] as const;

export interface PressureOptions {
  /**
   * - `burners`: endless loops take the CPU
   * - `freeze`: all sessions of Baton, also new ones, are stopped (SIGSTOP)
   * - `locks`: every statement waits for a lock
   */
  pressure: (typeof PRESSURES)[number];
  seconds: number;
  driver: 'redis' | 'postgres';
  /** Whether Baton reaches Postgres through PgBouncer. */
  pooler?: boolean;
  workers: number;
  /** Number of endless loops. */
  loops?: number;
}

/** What an idle Baton did while Postgres was slow. All of it as the server sees it. */
export interface PressureReport {
  /** Sessions before, and the most at any time. */
  sessions: { before: number; most: number };
  /** Statements that were executed at the same time, and the age of the oldest, in seconds. */
  active: { most: number; oldestSeconds: number };
  /** The statement that was executed most often at the same time. */
  mostOften: { count: number; statement: string };
  /** From the end of the pressure until every process is ready and no statement is old. Undefined: not within 60 s. */
  recoverySeconds: number | undefined;
  /** Processes that have ended by themselves. */
  ended: string[];
  faults: string[];
}

/** Starts an API and workers without any tasks, takes the CPU from Postgres for a while, and reads what comes of it. */
export async function runPressure(
  options: PressureOptions,
  tell: (line: string) => void = () => undefined,
): Promise<PressureReport> {
  const programs = debianPostgres();
  const postgres = await startPrivatePostgres({ ...(programs && { programs }), settings: STOCK });
  const redis = options.driver === 'redis' ? await startPrivateRedis() : undefined;
  const binary = options.pooler ? findPgBouncer() : undefined;
  if (options.pooler && !binary) throw new Error('There is no pgbouncer here: leave out --pooler.');
  const pooler = binary ? await startPgBouncer(binary, postgres.url, POOLED) : undefined;
  const server = await Server.watch(postgres.url);
  const processes: Probed[] = [];
  try {
    const env = {
      ...(pooler
        ? { DATABASE_URL: pooler.url, DATABASE_DIRECT_URL: postgres.url }
        : { DATABASE_URL: postgres.url }),
      REDIS_URL: redis?.url ?? '',
    };
    const kinds = ['api', ...Array.from({ length: options.workers }, () => 'worker')] as const;
    processes.push(
      ...(await Promise.all(kinds.map((kind) => startProbed(kind as BatonProcess['kind'], env)))),
    );
    await untilReady(processes);
    return await underPressure(options, server, processes, tell);
  } finally {
    server.thaw();
    await Promise.all(processes.map(({ process }) => process.kill()));
    await server.close();
    await pooler?.remove();
    await redis?.remove();
    await postgres.drop();
  }
}

async function underPressure(
  options: PressureOptions,
  server: Server,
  processes: Probed[],
  tell: (line: string) => void,
): Promise<PressureReport> {
  const { pressure, seconds, loops = 16 } = options;
  const before = server.sessions().length;
  tell(`${before} sessions; pressure begins: ${pressure}`);
  const ended: string[] = [];
  for (const { process } of processes) {
    void process.exited.then((code) => ended.push(`${process.kind} ${process.pid} (${String(code)})`));
  }
  const burners = pressure === 'burners' ? burn(loops) : [];
  const freezing = pressure === 'freeze' ? setInterval(() => server.freeze(), FREEZE_MS) : undefined;
  if (pressure === 'locks') await server.lock();
  // As a supervisor and Prometheus do. They do not wait for each other's answers.
  const probing = setInterval(() => void probe(processes), PROBE_MS);
  const begun = performance.now();
  const most = { sessions: before, active: 0, oldestSeconds: 0, often: { count: 0, statement: '' } };
  let endedAt: number | undefined;
  let recoveredAt: number | undefined;
  for (;;) {
    const now = performance.now();
    if (endedAt === undefined && now >= begun + seconds * 1000) {
      for (const burner of burners) burner.kill('SIGKILL');
      clearInterval(freezing);
      server.thaw();
      await server.unlock();
      endedAt = performance.now();
      tell('pressure has ended');
    }
    most.sessions = Math.max(most.sessions, server.sessions().length);
    const statements = await server.statements();
    most.active = Math.max(most.active, statements.length);
    const oldest = Math.max(0, ...statements.map(({ age }) => age));
    most.oldestSeconds = Math.max(most.oldestSeconds, oldest);
    for (const { count, statement } of counted(statements)) {
      if (count > most.often.count) most.often = { count, statement };
    }
    if (endedAt !== undefined) {
      const isReady = await areReady(processes);
      if (!isReady || oldest > OLD_SECONDS) recoveredAt = undefined;
      else recoveredAt ??= performance.now();
      // It must stay so.
      if (recoveredAt !== undefined && performance.now() > recoveredAt + 5_000) break;
      if (performance.now() > endedAt + 2 * RECOVERY_MS) break;
    }
    await delay(SAMPLE_MS);
  }
  clearInterval(probing);
  const recoverySeconds =
    recoveredAt === undefined ? undefined : Math.round((recoveredAt - endedAt) / 100) / 10;
  const measured = {
    sessions: { before, most: most.sessions },
    active: { most: most.active, oldestSeconds: Math.round(most.oldestSeconds * 10) / 10 },
    mostOften: most.often,
    recoverySeconds,
    ended: [...ended],
  };
  return { ...measured, faults: faultsOf(measured, options) };
}

/** The hard limit of docs/operating/postgres.md, with default pools, and one session of the harness. */
function maxSessionsOf({ driver, workers, pooler }: PressureOptions): number {
  const [pool, catalog] = [16, 4];
  const api = (pooler ? 0 : pool) + catalog + (driver === 'postgres' ? 6 : 0);
  const worker = api + 1 + (driver === 'postgres' ? 3 : 0);
  return api + workers * worker + (pooler ? POOLED : 0) + 1;
}

function faultsOf(measured: Omit<PressureReport, 'faults'>, options: PressureOptions): string[] {
  const { sessions, mostOften, recoverySeconds, ended } = measured;
  const processes = options.workers + 1;
  const maxSessions = maxSessionsOf(options);
  return [
    sessions.most > maxSessions &&
      `${sessions.most} sessions, from ${sessions.before}: at most ${maxSessions} may be`,
    mostOften.count > processes &&
      `${processes} processes executed this ${mostOften.count} times at once: ${mostOften.statement}`,
    (recoverySeconds === undefined || recoverySeconds > RECOVERY_MS / 1000) &&
      `no recovery within ${RECOVERY_MS / 1000} s`,
    ended.length > 0 && `processes have ended: ${ended.join(', ')}`,
  ].filter((fault) => fault !== false);
}

/** The report as a person reads it. */
export function renderPressure({
  sessions,
  active,
  mostOften,
  recoverySeconds,
  faults,
}: PressureReport): string {
  return [
    `sessions of Postgres       ${sessions.before} before, ${sessions.most} at most`,
    `statements at once         ${active.most} at most, the oldest ${active.oldestSeconds} s`,
    `the same at once           ${mostOften.count}: ${mostOften.statement}`,
    `recovered                  ${recoverySeconds === undefined ? 'no' : `after ${recoverySeconds} s`}`,
    ...(faults.length > 0 ? faults.map((fault) => `FAULT ${fault}`) : ['no fault']),
  ].join('\n');
}

interface Statement {
  query: string;
  age: number;
}

function counted(statements: readonly Statement[]): { count: number; statement: string }[] {
  const counts = new Map<string, number>();
  for (const { query } of statements) {
    // These begin the transaction of each statement.
    if (/baton\.tenant|^(BEGIN|COMMIT)|set_config/.test(query)) continue;
    const statement = query.replaceAll(/\s+/g, ' ').trim().slice(0, 80);
    counts.set(statement, (counts.get(statement) ?? 0) + 1);
  }
  return [...counts].map(([statement, count]) => ({ count, statement }));
}

async function probe(processes: readonly Probed[]): Promise<void> {
  const paths = processes.flatMap(({ url, metricsUrl }) => [`${url}/readyz`, `${metricsUrl}/metrics`]);
  await Promise.all(
    paths.map((path) =>
      fetch(path, { signal: AbortSignal.timeout(5_000) })
        .then((response) => response.text())
        .catch(() => undefined),
    ),
  );
}

const burn = (loops: number): ChildProcess[] =>
  Array.from({ length: loops }, () => spawn('/bin/sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }));

/** Postgres from the outside: its processes, and on a session that nothing disturbs, what it executes. */
class Server {
  private readonly frozen = new Set<number>();
  private isAsking = false;

  private constructor(
    private readonly client: Client,
    private readonly locks: Client,
    private readonly postmaster: number,
    /** Its processes that are not of Baton. */
    private readonly others: ReadonlySet<number>,
  ) {}

  /** Before Baton has a session. */
  static async watch(url: string): Promise<Server> {
    const [client, locks] = await Promise.all([connected(url), connected(url)]);
    const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
    const postmaster = parentOf(rows[0]!.pid) ?? 0;
    return new Server(client, locks, postmaster, new Set(childrenOf(postmaster)));
  }

  /** Processes of sessions, those that begin and end as well. */
  sessions(): number[] {
    return childrenOf(this.postmaster).filter((pid) => !this.others.has(pid) && !isHelper(pid));
  }

  /** The statements of Baton that are executed. Empty while the server cannot say. */
  async statements(): Promise<Statement[]> {
    // Its own question may wait for a frozen process.
    if (this.isAsking) return [];
    this.isAsking = true;
    const asked = this.client
      .query<Statement>(
        `SELECT query, extract(epoch FROM clock_timestamp() - query_start)::float8 AS age FROM pg_stat_activity
         WHERE state <> 'idle' AND backend_type = 'client backend' AND application_name <> 'pressure'
           AND datname = current_database()`,
      )
      .then(({ rows }) => rows)
      .finally(() => (this.isAsking = false));
    const late = delay(2_000, [], { ref: false });
    return Promise.race([asked.catch(() => []), late]);
  }

  /** Stops all sessions of Baton. */
  freeze(): void {
    for (const pid of this.sessions()) {
      if (this.frozen.has(pid)) continue;
      this.frozen.add(pid);
      signal(pid, 'SIGSTOP');
    }
  }

  thaw(): void {
    for (const pid of this.frozen) signal(pid, 'SIGCONT');
    this.frozen.clear();
  }

  /** Locks what periodic work reads and writes. */
  async lock(): Promise<void> {
    await this.locks.query(`BEGIN; LOCK TABLE workers, runs, schedules, _prisma_migrations`);
  }

  async unlock(): Promise<void> {
    await this.locks.query('ROLLBACK');
  }

  async close(): Promise<void> {
    await this.locks.end();
    await this.client.end();
  }
}

async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: 'pressure' });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}

/** Not a search through all processes: it is asked 20 times a second. */
const childrenOf = (parent: number): number[] =>
  read(`/proc/${parent}/task/${parent}/children`).trim().split(' ').filter(Boolean).map(Number);

function parentOf(pid: number): number | undefined {
  // "pid (name) state parent": the name may have blanks.
  const parent = /\) \w (\d+) /.exec(read(`/proc/${pid}/stat`))?.[1];
  return parent === undefined ? undefined : Number(parent);
}

/** Whether it is a process that Postgres has started for itself. */
const isHelper = (pid: number): boolean =>
  /^postgres: (autovacuum|parallel|logical|walwriter|checkpointer|background|archiver)/.test(
    read(`/proc/${pid}/cmdline`),
  );

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
