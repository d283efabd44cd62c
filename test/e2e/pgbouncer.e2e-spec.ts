import { Client } from 'pg';
import { Hold, times } from '../support/hold.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { findPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { startPrivatePostgres } from '../support/postgres.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { completes, followToCompletion, increasing, textsOf } from '../support/streams.js';
import { LOG } from '../support/log-sql.js';

/** Of PgBouncer to Postgres. Baton uses more at the same time, so its transactions share them. */
const CONNECTIONS = 3;
const TASKS = 12;
const CHUNKS = 20;

const binary = findPgBouncer();
const title = binary
  ? 'Through PgBouncer in transaction mode'
  : 'Through PgBouncer in transaction mode, left out: pgbouncer is not installed';

(binary ? describe : describe.skip)(title, () => {
  let bouncer: PgBouncer;
  let stack: Stack;
  let token: string;
  const hold = new Hold();

  beforeAll(async () => {
    const database = await startPrivatePostgres();
    bouncer = await startPgBouncer(binary!, database.url, CONNECTIONS);
    const env = {
      ...hold.env,
      DATABASE_URL: bouncer.url,
      DATABASE_DIRECT_URL: database.url,
      ...CRASH_SETTINGS,
    };
    stack = await Stack.start({ driver: 'postgres', workers: 2, database, env });
    ({ token } = await stack.createTenant());
  });
  afterAll(async () => {
    await stack.stop();
    await bouncer.remove();
    hold.remove();
  });

  const url = () => stack.url(0);

  /** Streams of tasks that stop behind their first chunk, and a promise of when all have begun. */
  function follow(count: number) {
    let begun = 0;
    let all: () => void;
    const everybodySpeaks = new Promise<void>((resolve) => (all = resolve));
    hold.hold();
    const again = () => stack.url(0, 'pacer');
    const reading = Array.from({ length: count }, async (_, n): Promise<Frame[]> => {
      let seen = 0;
      const onFrame = (): void => {
        if (++seen === 3 && ++begun === count) all();
      };
      const params = sendParams(times(CHUNKS, `task ${n}`));
      return followToCompletion(new RawCaller(again(), token), params, { again, onFrame });
    });
    const done = Promise.all(reading);
    // A stream that fails early ends the wait with its error.
    return { done, speaking: Promise.race([everybodySpeaks, done]) };
  }

  function expectWhole(streams: Frame[][]): void {
    for (const [n, frames] of streams.entries()) {
      expect([frames[0]?.id, increasing(frames), completes(frames.at(-1))]).toEqual([1, true, true]);
      expect(textsOf(frames)).toEqual(Array(CHUNKS).fill(`task ${n}`));
    }
  }

  /** What Postgres says, past the pooler. */
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

  it('loses, doubles and reorders nothing when the pooler and a worker are killed', async () => {
    const { done, speaking } = follow(TASKS);
    await speaking;
    await bouncer.crash();
    await stack.killWorkers([stack.workers[0]!]);
    hold.release();
    await bouncer.restart();
    expectWhole(await done);
    const ends = await select(`SELECT count(*)::int AS count FROM ${LOG} e GROUP BY tenant_id, task_id
      HAVING max(sequence) <> count(*)`);
    expect(ends).toEqual([]);
  });

  it('cancels a task that runs, answers sends, and lists tasks', async () => {
    const caller = new RawCaller(url(), token);
    const configuration = { returnImmediately: true };
    const slow = {
      ...sendParams('slow', { metadata: { echo: { delayMs: 600_000 } } }),
      configuration,
    };
    const { id } = (await caller.call('SendMessage', slow)).result!.task;
    const canceled = await caller.call('CancelTask', { id });
    expect(canceled.result).toMatchObject({ id, status: { state: 'TASK_STATE_CANCELED' } });
    const sent = await Promise.all(
      Array.from({ length: TASKS }, (_, n) => caller.call('SendMessage', sendParams(`sent ${n}`))),
    );
    expect(sent.map(({ result }) => result?.task.status.state)).toEqual(
      Array(TASKS).fill('TASK_STATE_COMPLETED'),
    );
    const { result } = await caller.call('ListTasks', { pageSize: 100 });
    const listed = new Set(result!.tasks.map((task: { id: string }) => task.id));
    expect(sent.every((answer) => listed.has(answer.result?.task.id))).toBe(true);
  });

  it('leaves nothing of a transaction to the next one on the connection', async () => {
    const client = new Client({ connectionString: bouncer.url });
    await client.connect();
    try {
      const names = ['baton.tenant', 'baton.system_key', 'enable_seqscan', 'statement_timeout'];
      const settings = names
        .map((name) => `coalesce(current_setting('${name}', true), '')`)
        .join(` || ' ' || `);
      // Each takes one of the connections that Baton has had before.
      for (let i = 0; i < 2 * CONNECTIONS; i++) {
        const { rows } = await client.query(`SELECT ${settings} AS found,
          (SELECT count(*)::int FROM pg_prepared_statements) AS prepared`);
        expect(rows).toEqual([{ found: '  on 0', prepared: 0 }]);
      }
    } finally {
      await client.end();
    }
    const [pooled] = await select<{ count: number }>(
      `SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'baton'`,
    );
    expect(pooled!.count).toBeGreaterThan(0);
  });
});
