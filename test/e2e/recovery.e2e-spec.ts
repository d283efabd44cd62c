import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { TcpProxy } from '../chaos/tcp-proxy.js';
import type { BatonProcess } from '../support/baton-process.js';
import { Hold, times } from '../support/hold.js';
import { DRIVERS } from '../support/index.js';
import { driversOf, nightlyDescribe } from '../support/nightly.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { type PrivatePostgres, startPrivatePostgres } from '../support/postgres.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type StackOptions } from '../support/stack.js';
import { followToCompletion, increasing, textsOf } from '../support/streams.js';
import { LOG } from '../support/log-sql.js';
import { until } from '../support/until.js';

const LEASE_MS = Number(CRASH_SETTINGS.LEASE_MS);
const CHUNKS = 30;
const hold = new Hold();
const ENV = { ...hold.env, ...CRASH_SETTINGS };
afterAll(() => hold.remove());
/** SIGUSR2 makes a process stand still. */
const FREEZES = {
  NODE_OPTIONS: `--require ${join(__dirname, '../support/freeze.fixture.cjs')}`,
  LOOP_STALL_MS: String(LEASE_MS + 5_000),
};

let stack: Stack;
let token: string;

async function start(options: Partial<StackOptions>): Promise<void> {
  stack = await Stack.start({ driver: DRIVERS[0]!, workers: 2, env: ENV, ...options });
  ({ token } = await stack.createTenant());
}

/** Follows one task from its acceptance to its end. */
class Follower {
  readonly frames: Frame[] = [];
  readonly done: Promise<Frame[]>;

  constructor(agent: string, text: string, onFrame: () => void) {
    const url = stack.url(0, agent);
    this.done = followToCompletion(new RawCaller(url, token), sendParams(text), {
      again: () => url,
      frames: this.frames,
      onFrame,
    });
    // The test awaits it later, and gets the failure then.
    this.done.catch(() => undefined);
  }

  get taskId(): string {
    return this.frames[0]?.data.result?.task.id as string;
  }

  /** A second first chunk: another attempt speaks. */
  get spokeAgain(): boolean {
    const updates = this.frames.map(({ data }) => data.result?.artifactUpdate).filter(Boolean);
    return updates.filter((update) => !update?.append).length > 1;
  }
}

/** Some tasks; resolves when all have sent their first chunk. They send no more until `done`, or until the test releases them. */
async function followMany(count: number) {
  hold.hold();
  let look: () => void = () => undefined;
  const seen = (): void => look();
  const follow = (_: unknown, i: number) => new Follower('pacer', times(CHUNKS, `run ${i}`), seen);
  const tasks = Array.from({ length: count }, follow);
  const all = Promise.all(tasks.map((task) => task.done));
  all.catch(() => undefined);
  const done = () => {
    hold.release();
    return all;
  };
  /** Rejects when a task fails, or when all have completed and it still does not hold. */
  const reach = async (what: string, holds: () => boolean): Promise<void> => {
    const held = new Promise<void>((resolve) => {
      look = () => {
        if (holds()) resolve();
      };
      look();
    });
    const ended = all.then(() => {
      if (!holds()) throw new Error(`All tasks have completed before ${what}.`);
    });
    await Promise.race([held, ended]);
  };
  await reach('all spoke', () => tasks.every(({ frames }) => frames.length >= 3));
  return { echoes: tasks, reach, done };
}

function expectWhole(echoes: Follower[]): void {
  for (const [i, { frames }] of echoes.entries()) {
    expect(frames[0]?.id).toBe(1);
    expect(increasing(frames)).toBe(true);
    expect(textsOf(frames)).toEqual(Array(CHUNKS).fill(`run ${i}`));
  }
}

/** What the database says, whosever it is. */
async function select<Row>(text: string): Promise<Row[]> {
  const client = new Client({ connectionString: stack.database.url });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    return (await client.query(text)).rows as Row[];
  } finally {
    await client.end();
  }
}

/** Every attempt that one of these tasks has had. */
async function attempts(followers: Follower[]): Promise<number[]> {
  const ids = followers.map(({ taskId }) => `'${taskId}'`).join();
  const text = `SELECT DISTINCT attempt FROM runs WHERE task_id IN (${ids}) ORDER BY 1`;
  return (await select<{ attempt: number }>(text)).map(({ attempt }) => attempt);
}

/** The worker that has the most runs in hand, and their tasks. */
async function busiest(): Promise<{ worker: BatonProcess; tasks: Set<string> }> {
  type Row = { pid: string; tasks: string[] };
  const [most] = await select<Row>(`SELECT split_part(worker_id, '-', 1) AS pid, array_agg(task_id) AS tasks
    FROM runs WHERE state = 'running' GROUP BY 1 ORDER BY count(*) DESC LIMIT 1`);
  const worker = stack.workers.find(({ pid }) => String(pid) === most!.pid);
  return { worker: worker!, tasks: new Set(most!.tasks) };
}

/** The tasks that a worker executes, as Postgres has it. */
async function runningAt({ pid }: BatonProcess): Promise<string[]> {
  const text = `SELECT task_id FROM runs WHERE state = 'running' AND split_part(worker_id, '-', 1) = '${pid}'`;
  return (await select<{ task_id: string }>(text)).map(({ task_id }) => task_id);
}

/** Events that an attempt wrote after a later one had begun. */
const WRITTEN_LATE = `SELECT a.task_id, a.sequence FROM ${LOG} a JOIN ${LOG} b USING (tenant_id, task_id)
  WHERE a.attempt > 0 AND b.attempt > a.attempt AND b.sequence < a.sequence`;

// Postgres alone decides these: one driver is enough.
nightlyDescribe('with short leases', () => {
  beforeAll(() => start({ env: { ...ENV, ...FREEZES } }));
  afterAll(() => stack.stop());

  it('leaves a worker its runs while an agent keeps its event loop busy: their leases are extended', async () => {
    const { echoes, done } = await followMany(8);
    const computing = new Follower('busy', 'compute', () => undefined);
    const leases = async (): Promise<Date[]> => {
      const text = `SELECT lease_expires_at AS at FROM runs WHERE state = 'running' ORDER BY id`;
      return (await select<{ at: Date }>(text)).map(({ at }) => at);
    };
    await until(async () => (await leases()).length >= 9 && computing.frames.length >= 3);
    // The event loop stands still from here on.
    for (let beats = 0; beats < 3; beats++) {
      const before = await leases();
      await until(async () => (await leases()).every((end, i) => end > before[i]!));
    }
    await Promise.all([done(), computing.done]);
    expect(textsOf(computing.frames)).toEqual(['before ', 'after']);
    expectWhole(echoes);
    expect(await attempts([...echoes, computing])).toEqual([1]);
  });

  it('gives up a worker whose event loop stands still for too long', async () => {
    const { echoes, reach, done } = await followMany(8);
    const { worker, tasks } = await busiest();
    worker.signal('SIGUSR2');
    await reach('the lost runs spoke again', () =>
      echoes.every((echo) => echo.spokeAgain || !tasks.has(echo.taskId)),
    );
    await done();
    expectWhole(echoes);
    expect(echoes.filter((echo) => echo.spokeAgain)).toHaveLength(tasks.size);
    expect(await select(WRITTEN_LATE)).toEqual([]);
    // Nothing but a signal ends a process without a code.
    expect(await worker.exited).toBeNull();
    await stack.addWorker();
  });

  it('takes its runs from a worker that alone is cut off from Postgres', async () => {
    const proxy = await TcpProxy.start(Number(new URL(stack.database.url).port));
    const worker = await stack.addWorker({ DATABASE_URL: proxy.through(stack.database.url) });
    const batches: Awaited<ReturnType<typeof followMany>>[] = [];
    // Until it has something in hand. A connection that was cut off once does not come back soon.
    do batches.push(await followMany(4));
    while ((await runningAt(worker)).length === 0);
    proxy.set({ mode: 'blackhole' });
    const tasks = await runningAt(worker);
    expect(tasks).not.toEqual([]);
    await Promise.all(batches.map(({ done }) => done()));
    // It leaves new ones to the others.
    const later = await followMany(8);
    await later.done();
    for (const { echoes } of [...batches, later]) expectWhole(echoes);
    const spokeAgain = batches.flatMap(({ echoes }) => echoes.filter((echo) => echo.spokeAgain));
    expect(spokeAgain.map(({ taskId }) => taskId)).toEqual(expect.arrayContaining(tasks));
    expect(await select(WRITTEN_LATE)).toEqual([]);
    await worker.kill();
    proxy.close();
  });
});

/**
 * No pause of a busy machine is longer: a lease ends because a test ends it, or because the worker's connection has ended. New
 * workers reclaim nothing for half of it.
 */
const LONG_LEASE_MS = '45000';

describe.each(driversOf('redis'))('on %s, with long leases', (driver) => {
  beforeAll(() => start({ driver, env: { ...ENV, LEASE_MS: LONG_LEASE_MS } }));
  afterAll(() => stack.stop());

  // Postgres alone decides this: once is enough.
  if (driver === DRIVERS[0]) {
    it('refuses the late words of a worker that was stopped for longer than a lease', async () => {
      const { echoes, reach, done } = await followMany(8);
      const { worker, tasks } = await busiest();
      worker.signal('SIGSTOP');
      // Again until they are gone: its last heartbeat may still be on its way.
      while ((await runningAt(worker)).length > 0) {
        await stack.endLeases([worker]);
        await delay(50);
      }
      await reach('the lost runs spoke again', () =>
        echoes.every((echo) => echo.spokeAgain || !tasks.has(echo.taskId)),
      );
      // The agents' processes were not stopped: they say the rest to a worker that will read it too late.
      hold.release();
      worker.signal('SIGCONT');
      await done();
      expectWhole(echoes);
      expect(echoes.filter((echo) => echo.spokeAgain)).toHaveLength(tasks.size);
      expect(await attempts(echoes)).toEqual(tasks.size === echoes.length ? [2] : [1, 2]);
      expect(await select(WRITTEN_LATE)).toEqual([]);
      await until(() => worker.log().includes('lease-lost'));
    });
  }

  // How long it takes with the leases of production is measured by bench/recovery.mjs.
  it('continues the runs of a killed worker as soon as its connection has ended, and no others', async () => {
    const { echoes, reach, done } = await followMany(20);
    const { worker, tasks } = await busiest();
    await worker.kill();
    await reach('the lost runs spoke again', () =>
      echoes.every((echo) => echo.spokeAgain || !tasks.has(echo.taskId)),
    );
    const others = stack.workers.filter(({ pid }) => pid !== worker.pid);
    expect(others.map((other) => other.log()).join('')).toContain('their connections have ended');
    await done();
    expectWhole(echoes);
    const spokeAgain = echoes.filter((echo) => echo.spokeAgain);
    expect(spokeAgain.map(({ taskId }) => taskId).sort()).toEqual([...tasks].sort());
  });
});

nightlyDescribe('with a Postgres of its own', () => {
  let postgres: PrivatePostgres;
  beforeAll(async () => {
    postgres = await startPrivatePostgres();
    // A worker that shuts down does not wait for its runs.
    await start({ database: postgres, env: { ...ENV, WORKER_GRACE_MS: '1' } });
  });
  afterAll(() => stack.stop());

  it('leaves every live worker its runs when Postgres is away for longer than a lease', async () => {
    const { echoes, done } = await followMany(8);
    await postgres.stop();
    // They speak, and nothing of it can be written.
    hold.release();
    // Long enough for every lease to run out: that is what the time is about.
    await delay(LEASE_MS + 2_000);
    await postgres.restart();
    await done();
    expectWhole(echoes);
    expect(await attempts(echoes)).toEqual([1]);
  });

  it('ends a worker that shuts down while Postgres is away for good', async () => {
    const { echoes, done } = await followMany(8);
    const { worker } = await busiest();
    await postgres.stop();
    expect(await worker.stop()).toBe(0);
    expect(worker.log()).toContain('run left to the sweeper');
    await postgres.restart();
    await done();
    expectWhole(echoes);
  });
});
