import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { type BatonProcess, startProcess } from '../support/baton-process.js';
import { asAdministrator, databaseUrl, dropDatabase } from '../support/database.js';
import { DRIVERS, type PrivateRedis, startPrivateRedis } from '../support/index.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { RELEASED, releasedBuild } from '../support/released-build.js';
import { completes, increasing, textsOf } from '../support/streams.js';
import { insertTenant, insertToken } from '../support/tenants.js';
import { LOG } from '../support/log-sql.js';

const ROOT = join(__dirname, '../..');
const PRESENT = join(ROOT, 'dist');
const CHUNKS = 4;
const STREAMS = 3;
/** The traffic continues while processes start: it must leave them time for that. */
const SEND_PAUSE_MS = 250;
const FINISHED_TASKS = 2_000;
/** The database does not ask for it until the old processes are gone. */
const SYSTEM_KEY = randomBytes(32).toString('base64');

/** What a later release may bring for the tables with the most traffic: a column that is filled, and an index. */
const LATER_MIGRATION = `ALTER TABLE "tasks" ADD COLUMN "upgrade_test" INTEGER;
ALTER TABLE "task_events" ADD COLUMN "upgrade_test" INTEGER NOT NULL DEFAULT 0;
SELECT set_config('baton.tenant', 'system', true);
-- baton: backfill table=tasks key=tenant_id,id rows=100
UPDATE "tasks" t SET "upgrade_test" = 1 WHERE /* slice of t */ true;
-- baton: concurrently
CREATE INDEX "tasks_upgrade_test_idx" ON "tasks"("tenant_id", "upgrade_test");`;

/** Rows of tasks that ended long ago, for the migration to work on. */
const FILL = `INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence,
    artifacts, artifacts_sequence, attempt)
  SELECT t.id, gen_random_uuid(), 'echo', 'old', md5('old')::uuid, 3, '{"state":"TASK_STATE_COMPLETED"}', now(), 0, '[]', 0, 1
  FROM tenants t, generate_series(1, ${FINISHED_TASKS})`;

/** Every task whose id a caller has got has ended as completed, and its log is 1..n. */
const NOT_WHOLE = `SELECT t.id, t.state, t.last_sequence, count(e.sequence)::int AS events FROM tasks t
  LEFT JOIN ${LOG} e ON e.tenant_id = t.tenant_id AND e.task_id = t.id WHERE t.context_id <> 'old'
  GROUP BY t.tenant_id, t.id HAVING t.state <> 3 OR count(*) <> t.last_sequence OR max(e.sequence) <> t.last_sequence`;

/** So long that a worker that gets no CPU for some seconds keeps its runs: only a stop that hands none back costs them an attempt. */
const LEASE_MS = '60000';

/**
 * Callers that send and stream through whichever APIs are in the list, one after the other, as behind a load
 * balancer. A stream that ends before its task is resumed at the next API.
 */
class Traffic {
  readonly apis: BatonProcess[];
  readonly failures: string[] = [];
  done = 0;
  private readonly loops: Promise<void>[];
  private ended = false;
  private turn = 0;
  private look: () => void = () => undefined;

  constructor(
    private readonly token: string,
    ...apis: BatonProcess[]
  ) {
    this.apis = apis;
    const kinds = [...Array.from({ length: STREAMS }, () => () => this.stream()), () => this.send()];
    this.loops = kinds.map((kind) => this.repeat(kind));
  }

  /** Resolves when so many more tasks were begun and have ended. */
  async more(count: number): Promise<void> {
    // Those under way may have been begun before.
    const goal = this.done + count + STREAMS + 1;
    while (this.done < goal && this.failures.length === 0)
      await new Promise<void>((resolve) => (this.look = resolve));
    expect(this.failures).toEqual([]);
  }

  async end(): Promise<void> {
    this.ended = true;
    await Promise.all(this.loops);
  }

  private async repeat(once: () => Promise<void>): Promise<void> {
    while (!this.ended) {
      await once().catch((error: unknown) => this.failures.push(String(error)));
      this.done += 1;
      this.look();
    }
  }

  /** An API that is stopped while it is called has left the list: then the same is done at the next one. */
  private async atSomeApi(act: (caller: RawCaller) => Promise<void>): Promise<void> {
    for (;;) {
      const api = this.apis[this.turn++ % this.apis.length];
      if (!api) throw new Error('There is no API to call.');
      try {
        await act(new RawCaller(`${api.url}/agents/echo`, this.token));
        return;
      } catch (error) {
        if (this.apis.includes(api)) throw error;
      }
    }
  }

  private async send(): Promise<void> {
    const params = sendParams('blocking');
    await this.atSomeApi(async (caller) => {
      const { result, error } = await caller.call('SendMessage', params);
      const state: unknown = result?.task.status.state;
      if (state !== 'TASK_STATE_COMPLETED') throw new Error(JSON.stringify(error ?? result));
    });
    await delay(SEND_PAUSE_MS);
  }

  private async stream(): Promise<void> {
    const params = sendParams('stream', { metadata: { echo: { chunks: CHUNKS, delayMs: 150 } } });
    const frames: Frame[] = [];
    let sent = 0;
    while (!completes(frames.at(-1))) {
      await this.atSomeApi(async (caller) => {
        const id = frames[0]?.data.result?.task.id as string | undefined;
        if (!id) sent += 1;
        const events = id
          ? caller.stream('SubscribeToTask', { id }, frames.at(-1)?.id)
          : caller.stream('SendStreamingMessage', params);
        for await (const frame of events) frames.push(frame);
      });
    }
    const texts = textsOf(frames).join();
    // Who sends again joins a task that has begun.
    const isWhole = sent > 1 || (frames[0]?.id === 1 && texts === Array(CHUNKS).fill('stream').join());
    if (!isWhole || !increasing(frames)) throw new Error(`a hole in the log: ${JSON.stringify(frames)}`);
  }
}

async function migrate(dist: string, url: string, key: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, DATABASE_URL: url, DATABASE_SYSTEM_KEY: key };
  const script = join(dist, 'libs/database/src/migrate-main.js');
  return (await promisify(execFile)(process.execPath, [script, ...args], { env })).stdout;
}

// Both releases share the jobs of Redis or those of Postgres, and always the rows of tasks and runs.
describe.each(DRIVERS)('the release before this one on %s', (driver) => {
  const url = databaseUrl(`test_${randomBytes(6).toString('hex')}`);
  const migrations = mkdtempSync(join(tmpdir(), 'baton-upgrade-'));
  const running = new Set<BatonProcess>();
  let released: string | undefined;
  let redis: PrivateRedis | undefined;
  let client: Client;
  let traffic: Traffic | undefined;

  beforeAll(async () => {
    released = await releasedBuild();
    if (!released) {
      const { commit, version } = RELEASED;
      process.stderr.write(
        `\nNo commit ${commit} here (a shallow clone?): no tests beside release ${version}.\n`,
      );
      return;
    }
    cpSync(join(ROOT, 'prisma/migrations'), migrations, { recursive: true });
    mkdirSync(join(migrations, '99990101000000_later'));
    writeFileSync(join(migrations, '99990101000000_later/migration.sql'), LATER_MIGRATION);
    await asAdministrator(`CREATE DATABASE ${new URL(url).pathname.slice(1)}`);
    await migrate(released, url, '');
    redis = driver === 'redis' ? await startPrivateRedis() : undefined;
    client = new Client({ connectionString: url });
    await client.connect();
    await client.query(`SET baton.tenant = 'system'`);
    await insertTenant(url, 'acme');
    await client.query(FILL);
  });

  afterAll(async () => {
    rmSync(migrations, { recursive: true });
    if (!released) return;
    await traffic?.end();
    await Promise.all([...running].map((process) => process.kill()));
    await client.end();
    await redis?.remove();
    await dropDatabase(url);
  });

  async function start(kind: 'api' | 'worker', dist: string): Promise<BatonProcess> {
    const env = {
      DATABASE_URL: url,
      DATABASE_SYSTEM_KEY: SYSTEM_KEY,
      REDIS_URL: redis?.url ?? '',
      LEASE_MS,
    };
    const process = await startProcess(kind, env, undefined, dist);
    running.add(process);
    return process;
  }

  async function stop(process: BatonProcess): Promise<void> {
    if (traffic?.apis.includes(process)) traffic.apis.splice(traffic.apis.indexOf(process), 1);
    expect(await process.stop()).toBe(0);
    running.delete(process);
  }

  it('serves while the migration runs, then beside this one, and again after this one is taken back', async () => {
    if (!released) return;
    const oldApi = await start('api', released);
    const oldWorker = await start('worker', released);
    traffic = new Traffic(await insertToken(url, 'acme', []), oldApi);
    await traffic.more(5);

    const before = traffic.done;
    const printed = await migrate(PRESENT, url, SYSTEM_KEY, '--folder', migrations);
    expect(printed).toMatch(/backfill tasks: 2\d slices/);
    expect(printed).toContain('The database is up to date.');
    expect(printed).toContain('DATABASE_SYSTEM_KEY is set, but the database does not ask for it yet.');
    expect(traffic.done).toBeGreaterThan(before);
    await traffic.more(5);

    const newApi = await start('api', PRESENT);
    const newWorker = await start('worker', PRESENT);
    traffic.apis.push(newApi);
    await traffic.more(20);
    // What the old API accepts is executed by the new worker.
    await stop(oldWorker);
    await traffic.more(10);
    await stop(oldApi);
    await traffic.more(5);

    // No process of the old release is left: the database may ask for the key, and no longer before they come back.
    await migrate(PRESENT, url, SYSTEM_KEY, '--folder', migrations, '--system-key', 'enforce');
    await expect(client.query('SELECT FROM tasks')).rejects.toThrow('needs the key of this database');
    await traffic.more(10);
    await migrate(PRESENT, url, SYSTEM_KEY, '--folder', migrations, '--system-key', 'release');

    // Back again: the old release starts on the migrated schema.
    const apiAgain = await start('api', released);
    const workerAgain = await start('worker', released);
    expect((await fetch(`${apiAgain.url}/readyz`)).status).toBe(200);
    traffic.apis.push(apiAgain);
    await traffic.more(20);
    // What the new API accepts is executed by the old worker.
    await stop(newWorker);
    await traffic.more(10);
    await stop(newApi);
    await traffic.more(5);

    await traffic.end();
    expect(traffic.failures).toEqual([]);
    expect((await client.query(NOT_WHOLE)).rows).toEqual([]);
    // A worker that is replaced costs its runs nothing.
    expect((await client.query('SELECT id FROM runs WHERE deaths > 0')).rows).toEqual([]);
    await stop(workerAgain);
    await stop(apiAgain);
  });
});
