import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { Database, DatabaseUnavailableError, isTransient, RunStore, TaskStore } from '../index.js';
import type { Statement, Values } from './database.js';
import { failedTenantOf } from './transient.js';
import { type Stores, newTask, openStores, sql, startTask } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores(2);
});
afterAll(async () => stores.close());

describe('row-level security', () => {
  it('binds the role of the processes, which is no superuser', async () => {
    const [role] = await sql(
      stores,
      'SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user',
    );
    expect(role).toEqual({ rolsuper: false, rolbypassrls: false });
  });

  it('shows a tenant its own rows only, whatever the query forgets', async () => {
    const [mine, theirs] = [await startTask(stores), await startTask(stores)];
    const seen = async (tenantId: string): Promise<unknown> =>
      stores.database.tenantQuery(tenantId, { text: 'SELECT DISTINCT tenant_id FROM task_events' }, []);
    expect(await seen(mine.tenantId)).toEqual([{ tenant_id: mine.tenantId }]);
    expect(await seen(theirs.tenantId)).toEqual([{ tenant_id: theirs.tenantId }]);
    expect(await seen(randomUUID())).toEqual([]);
    const steal = { text: 'UPDATE tasks SET agent_id = agent_id RETURNING tenant_id' };
    expect(await stores.database.tenantQuery(mine.tenantId, steal, [])).toEqual([
      { tenant_id: mine.tenantId },
    ]);
  });

  it('shows each tenant of one transaction its own rows only', async () => {
    const runs = [await startTask(stores), await startTask(stores)];
    const [one, other] = runs.map(({ tenantId }) => tenantId).toSorted() as [string, string];
    const seen: [Statement, Values] = [
      {
        name: 'test-tenants-seen',
        text: 'UPDATE tasks SET agent_id = agent_id RETURNING tenant_id, xmin::text',
      },
      [],
    ];
    const inserted: [Statement, Values] = [
      { text: `INSERT INTO task_messages VALUES ('${one}', '${randomUUID()}', 1, '{}')` },
      [],
    ];
    // The connections prepare the statements first, and then know them.
    for (let i = 0; i < 3; i++) {
      const answers = await stores.database.tenantsQueries([
        [one, [seen]],
        [other, [seen, seen]],
      ]);
      expect(answers).toMatchObject([
        [[{ tenant_id: one }]],
        [[{ tenant_id: other }], [{ tenant_id: other }]],
      ]);
      const transactions = answers.flat(2).map(({ xmin }) => xmin as string);
      expect(new Set(transactions).size).toBe(1);
      const forged = stores.database.tenantsQueries([
        [one, [seen]],
        [other, [seen, inserted]],
      ]);
      await expect(forged).rejects.toThrow('row-level security');
    }
  });

  it('names the tenant whose statement has failed a transaction of several tenants', async () => {
    const [one, other, third] = [randomUUID(), randomUUID(), randomUUID()].toSorted() as [
      string,
      string,
      string,
    ];
    const divide = { name: 'test-tenants-divide', text: 'SELECT 6 / $1::int AS result' };
    const failedOf = (...by: number[]): Promise<string | undefined> =>
      stores.database
        .tenantsQueries(
          [one, other, third].map((tenantId, i) => [
            tenantId,
            [
              [divide, [1]],
              [divide, [by[i]]],
            ],
          ]),
        )
        .then(
          () => 'nobody',
          (error: unknown) => failedTenantOf(error),
        );
    // The connections prepare the statements first, and then know them.
    for (let i = 0; i < 3; i++) {
      expect(await failedOf(1, 1, 1)).toBe('nobody');
      expect(await failedOf(1, 0, 1)).toBe(other);
      expect(await failedOf(1, 0, 0)).toBe(other);
      expect(await failedOf(0, 1, 1)).toBe(one);
      expect(await failedOf(1, 1, 0)).toBe(third);
    }
    const alone = stores.database.tenantQuery(one, divide, [0]);
    expect(failedTenantOf(await alone.catch((error: unknown) => error))).toBeUndefined();
  });

  it('refuses rows of another tenant', async () => {
    const insert = {
      text: `INSERT INTO task_messages VALUES ('${randomUUID()}', '${randomUUID()}', 1, '{}')`,
    };
    await expect(stores.database.tenantQuery(randomUUID(), insert, [])).rejects.toThrow('row-level security');
  });

  it('takes nothing but a uuid for a tenant', async () => {
    const attempt = stores.database.tenantQuery(`system`, { text: 'SELECT 1' }, []);
    await expect(attempt).rejects.toThrow(TypeError);
    await expect(stores.database.inTenant(`' OR true --`, async () => 1)).rejects.toThrow(TypeError);
  });
});

describe('a transaction', () => {
  const tenantId = randomUUID();
  const count = async (): Promise<number> =>
    (await sql(stores, `SELECT 1 FROM task_messages WHERE tenant_id = '${tenantId}'`)).length;
  const insert = (): { text: string } => ({
    text: `INSERT INTO task_messages VALUES ('${tenantId}', '${randomUUID()}', 1, '{}')`,
  });

  it('leaves nothing behind when one of its pipelined statements fails, nor does the connection', async () => {
    for (let i = 0; i < 5; i++) {
      const calls = [insert(), { text: 'SELECT 1/0' }, insert()].map(
        (statement) => [statement, []] as [typeof statement, []],
      );
      await expect(stores.database.tenantQueries(tenantId, calls)).rejects.toThrow('division by zero');
    }
    expect(await count()).toBe(0);
    await stores.database.tenantQuery(tenantId, insert(), []);
    expect(await count()).toBe(1);
  });

  it('of prepared statements leaves nothing behind either, and no tenant to the next one', async () => {
    const database = new Database({ url: stores.url, poolSize: 1 });
    const put = {
      name: 'put',
      text: `INSERT INTO task_messages VALUES ($1::uuid, gen_random_uuid(), 1, '{}') RETURNING tenant_id`,
    };
    const divide = { name: 'divide', text: 'SELECT 6 / $1::int AS result' };
    const all = { name: 'all', text: 'SELECT DISTINCT tenant_id FROM task_messages' };
    const before = await count();
    try {
      for (const by of [1, 2, 0, 3, 0]) {
        const done = database.tenantQueries(tenantId, [
          [put, [tenantId]],
          [divide, [by]],
          [all, []],
        ]);
        if (by === 0) await expect(done).rejects.toThrow('division by zero');
        else {
          const mine = { tenant_id: tenantId };
          expect(await done).toEqual([[mine], [{ result: 6 / by }], [mine]]);
        }
        expect(await database.tenantQuery(randomUUID(), all, [])).toEqual([]);
        await expect(database.tenantQuery(randomUUID(), put, [tenantId])).rejects.toThrow(
          'row-level security',
        );
      }
      expect(await count()).toBe(before + 3);
    } finally {
      await database.close();
    }
  });

  it('gets arrays as they are', async () => {
    const statement = {
      name: 'arrays',
      text: 'SELECT $1::text[] AS texts, $2::float8[] AS numbers, $3::bool[] AS bools',
    };
    const texts = ['', 'NULL', null, 'a,b', '{"x": 1}', '\\', '"', "'", '\n\t ', 'é😀', '\\"'];
    const numbers = [1, -2.5, 1e21, null];
    const [row] = await stores.database.systemQuery(statement, [texts, numbers, [true, null, false]]);
    expect(row).toEqual({ texts, numbers, bools: [true, null, false] });
    const [empty] = await stores.database.systemQuery(statement, [[], undefined, []]);
    expect(empty).toEqual({ texts: [], numbers: null, bools: [] });
  });

  it('of prepared statements reads the columns of each, on every call', async () => {
    const calls = [
      { name: 'test-texts', text: `SELECT 'a' AS text, NULL::text AS none, 7 AS number` },
      { name: 'test-nothing', text: 'DELETE FROM task_messages WHERE false' },
      { name: 'test-rows', text: `SELECT n, '{"n": 1}'::json AS object FROM generate_series(1, 2) AS n` },
    ].map((statement) => [statement, []] as [typeof statement, []]);
    const answers = [];
    for (let i = 0; i < 4; i++) answers.push(await stores.database.tenantQueries(tenantId, calls));
    const expected = [
      [{ text: 'a', none: null, number: 7 }],
      [],
      [
        { n: 1, object: { n: 1 } },
        { n: 2, object: { n: 1 } },
      ],
    ];
    expect(answers).toEqual([expected, expected, expected, expected]);
  });

  it('prepares a named statement again that failed the first time', async () => {
    const statement = { name: 'fragile', text: 'SELECT 1 / $1::int AS result' };
    await expect(stores.database.systemQuery(statement, [0])).rejects.toThrow('division by zero');
    await expect(stores.database.systemQuery(statement, ['no number'])).rejects.toThrow('invalid input');
    expect(await stores.database.systemQuery(statement, [1])).toEqual([{ result: 1 }]);
  });

  it('is rolled back when its work throws or swallows an error', async () => {
    const before = await count();
    const thrown = stores.database.inTenant(tenantId, async (transaction) => {
      await transaction.query(insert(), []);
      throw new Error('changed my mind');
    });
    await expect(thrown).rejects.toThrow('changed my mind');
    const swallowed = stores.database.inTenant(tenantId, async (transaction) => {
      await transaction.query(insert(), []);
      await transaction.query({ text: 'SELECT 1/0' }, []).catch(() => undefined);
    });
    await expect(swallowed).rejects.toThrow('rolled back');
    expect(await count()).toBe(before);
  });
});

describe('the connections of a process', () => {
  it('are not all taken by one tenant, whose statements wait', async () => {
    const database = new Database({ url: stores.url, poolSize: 4 });
    const [busy, other] = [randomUUID(), randomUUID()];
    const lock = new Client(stores.url);
    await lock.connect();
    try {
      await lock.query('SELECT pg_advisory_lock(90)');
      const wait = { text: 'SELECT pg_advisory_xact_lock_shared(90)' };
      const slow = Array.from({ length: 20 }, (_, i) =>
        i % 2
          ? database.tenantQuery(busy, wait, [])
          : database.inTenant(busy, (session) => session.query(wait, [])),
      );
      const quick = { text: 'SELECT 1 AS one' };
      expect(await database.tenantQuery(other, quick, [])).toEqual([{ one: 1 }]);
      expect(await database.inTenant(other, (session) => session.query(quick, []))).toEqual([{ one: 1 }]);
      expect(await database.systemQuery(quick, [])).toEqual([{ one: 1 }]);
      expect(database.connections).toMatchObject({ awaited: 0, 'over-share': 18 });
      await lock.query('SELECT pg_advisory_unlock(90)');
      await Promise.all(slow);
      expect(database.connections).toMatchObject({ busy: 0, 'over-share': 0 });
    } finally {
      await lock.end();
      await database.close();
    }
  });
});

describe('a lost connection', () => {
  const cut = async (): Promise<void> => {
    const client = new Client({ connectionString: stores.url });
    await client.connect();
    await client.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid()`,
    );
    await client.end();
  };

  it('is an error to try again after, and the next call has a new connection', async () => {
    const waiting = stores.database.systemQuery({ text: 'SELECT pg_sleep(60)' }, []);
    const failure = waiting.then(
      () => undefined,
      (error: unknown) => error,
    );
    await sleeping();
    await cut();
    const error = await failure;
    expect(error).toBeInstanceOf(DatabaseUnavailableError);
    expect(isTransient(error)).toBe(true);
    const input = newTask();
    await stores.tasks.create(input).catch(async () => stores.tasks.create(input));
    expect(await stores.tasks.get(input.tenantId, input.task.id)).toBeDefined();
  });

  it('is not given to the next caller after prepared statements', async () => {
    const database = new Database({ url: stores.url, poolSize: 1 });
    const sleep = { name: 'sleep', text: 'SELECT pg_sleep($1::int)' };
    try {
      await database.systemQuery(sleep, [0]);
      for (let i = 0; i < 3; i++) {
        const failure = database.systemQuery(sleep, [60]).catch((error: unknown) => error);
        await sleeping();
        await cut();
        expect(await failure).toBeInstanceOf(DatabaseUnavailableError);
        await database.systemQuery(sleep, [0]);
        await database.systemQuery(sleep, [0]);
      }
    } finally {
      await database.close();
    }
  });

  it('is noticed in the middle of a transaction', async () => {
    const error: unknown = await stores.database
      .inSystem(async (transaction) => {
        await transaction.query({ text: 'SELECT 1' }, []);
        await cut();
        await transaction.query({ text: 'SELECT 1' }, []);
      })
      .catch((reason: unknown) => reason);
    expect(isTransient(error)).toBe(true);
    await stores.database.ping();
    expect(stores.database.isReadOnly).toBe(false);
  });

  it('is closed when it leads to a standby: the next one may lead to the primary', async () => {
    const url = new URL(stores.url);
    url.searchParams.set('options', '-c default_transaction_read_only=on');
    const database = new Database({ url: url.toString(), poolSize: 1 });
    const process = async (): Promise<unknown> =>
      database.systemQuery({ text: 'SELECT pg_backend_pid() AS pid' }, []);
    const write = { text: `DELETE FROM task_messages` };
    try {
      await database.ping();
      expect(database.isReadOnly).toBe(true);
      for (const refused of [
        async () => database.systemQuery(write, []),
        async () => database.inSystem(async (transaction) => transaction.query(write, [])),
      ]) {
        const before = await process();
        await expect(refused()).rejects.toThrow(/^Postgres is not available: .*read-only transaction/);
        expect(await process()).not.toEqual(before);
      }
    } finally {
      await database.close();
    }
  });

  it('a server that is not there is one plain sentence', async () => {
    const database = new Database({ url: 'postgres://nobody@127.0.0.1:1/none', poolSize: 1 });
    await expect(database.ping()).rejects.toThrow(/^Postgres is not available: .*ECONNREFUSED/);
    await expect(database.systemQuery({ text: 'SELECT 1' }, [])).rejects.toThrow(DatabaseUnavailableError);
    await database.close();
  });

  /** Resolves when Postgres executes the statement that is to be cut off. */
  async function sleeping(): Promise<void> {
    const active = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND query LIKE 'SELECT pg_sleep%' AND state = 'active'`;
    // The cut before has ended the connections of those who look as well. They may hear of it with their next query.
    const look = () => sql(stores, active).catch(() => []);
    while ((await look()).length === 0);
  }
});

it('answers the platform while two tenants wait for all the connections that they can have', async () => {
  const database = new Database({ url: stores.url, poolSize: 8 });
  const barrier = new Client({ connectionString: stores.url });
  await barrier.connect();
  try {
    await barrier.query('SELECT pg_advisory_lock(4711)');
    const blocked = { text: 'SELECT pg_advisory_xact_lock(4711)' };
    const slow = [randomUUID(), randomUUID()].flatMap((tenantId) =>
      Array.from({ length: 4 }, () => database.tenantQuery(tenantId, blocked, [])),
    );
    const atTheLock = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4711 AND NOT granted`;
    while ((await sql(stores, atTheLock)).length < 7);
    await database.ping();
    await database.logPosition();
    expect(await database.systemQuery({ text: 'SELECT 1 AS one' }, [])).toEqual([{ one: 1 }]);
    expect(database.connections).toMatchObject({ busy: 7, awaited: 1 });
    await barrier.query('SELECT pg_advisory_unlock(4711)');
    await Promise.all(slow);
  } finally {
    await barrier.end();
    await database.close();
  }
});

it.each(['lists', 'currentLists'] as const)(
  'leaves connections for everything else while %s of a tenant are slow',
  async (lists) => {
    const database = new Database({ url: stores.url, poolSize: 8 });
    const barrier = new Client({ connectionString: stores.url });
    await barrier.connect();
    try {
      await barrier.query('SELECT pg_advisory_lock(4712)');
      const blocked = { text: 'SELECT pg_advisory_xact_lock(4712)' };
      const [tenant, other] = [randomUUID(), randomUUID()];
      const slow = Array.from({ length: 4 }, () => database[lists].tenantQuery(tenant, blocked, []));
      const atTheLock = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 4712 AND NOT granted`;
      while ((await sql(stores, atTheLock)).length < 1);
      const one = { text: 'SELECT 1 AS one' };
      expect(await database[lists].tenantQuery(other, one, [])).toEqual([{ one: 1 }]);
      expect(await database.tenantQuery(tenant, one, [])).toEqual([{ one: 1 }]);
      expect(database.connections).toMatchObject({ busy: 1, awaited: 0, 'over-share': 3 });
      await barrier.query('SELECT pg_advisory_unlock(4712)');
      await Promise.all(slow);
    } finally {
      await barrier.end();
      await database.close();
    }
  },
);

it.each([
  { of: 'tasks', store: TaskStore, statements: ['task-create-group-2'] },
  { of: 'runs', store: RunStore, statements: ['runs-append-3', 'runs-claim-2'] },
])(
  'is ready for the first $of: two connections have planned their statements',
  async ({ store, statements }) => {
    const database = new Database({ url: stores.url, poolSize: 4 });
    try {
      await new store(database).prepare();
      expect(database.connections).toEqual({ busy: 0, idle: 2, closing: 0, awaited: 0, 'over-share': 0 });
      type Row = { names: string[]; process: number };
      const planned = {
        text: `SELECT (SELECT array_agg(name ORDER BY name) FROM pg_prepared_statements WHERE name = ANY($1::text[]) AND generic_plans > 0)
        AS names, pg_backend_pid() AS process`,
      };
      const ask = (): Promise<Row[]> => database.tenantQuery<Row>(randomUUID(), planned, [statements]);
      const [[one], [other]] = await Promise.all([ask(), ask()]);
      expect([one, other]).toMatchObject([{ names: statements }, { names: statements }]);
      expect(one?.process).not.toBe(other?.process);
      expect(
        await sql(stores, `SELECT 1 FROM tasks WHERE tenant_id = '00000000-0000-0000-0000-000000000000'`),
      ).toEqual([]);
    } finally {
      await database.close();
    }
  },
);

it('names the missing migrations', async () => {
  expect(await stores.database.pendingMigrations()).toEqual([]);
  await sql(stores, 'ALTER TABLE _prisma_migrations RENAME TO away');
  const folders = readdirSync(join(__dirname, '../../../../prisma/migrations')).filter((name) =>
    /^\d/.test(name),
  );
  expect(await stores.database.pendingMigrations()).toEqual(folders.sort());
  await sql(stores, 'ALTER TABLE away RENAME TO _prisma_migrations');
});

it('keeps its own settings beside those of the URL', async () => {
  const url = new URL(stores.url);
  url.searchParams.set('options', '-c work_mem=5MB -c enable_seqscan=on');
  const database = new Database({ url: url.toString(), poolSize: 1 });
  const text = `SELECT current_setting('work_mem') AS memory, current_setting('enable_seqscan') AS scans`;
  try {
    expect(await database.systemQuery({ text }, [])).toEqual([{ memory: '5MB', scans: 'off' }]);
  } finally {
    await database.close();
  }
});

it('distinguishes deadlocks and restarts from permanent errors', () => {
  const withCode = (code: string): Error => Object.assign(new Error('refused'), { code });
  expect(
    [
      '40P01',
      '40001',
      '25006',
      '25P03',
      '25P04',
      'CERT_HAS_EXPIRED',
      '57P01',
      '57P03',
      '08006',
      '53300',
      'ECONNRESET',
    ]
      .map(withCode)
      .every(isTransient),
  ).toBe(true);
  expect(['23505', '22P02', '42601'].map(withCode).some(isTransient)).toBe(false);
  expect(isTransient(new Error('outer', { cause: withCode('57P01') }))).toBe(true);
  const throughPrisma = (originalCode: string): Error =>
    Object.assign(withCode('P2039'), { meta: { driverAdapterError: { cause: { originalCode } } } });
  expect(isTransient(throughPrisma('57P03'))).toBe(true);
  expect(isTransient(throughPrisma('25P03'))).toBe(true);
  expect(isTransient(throughPrisma('23505'))).toBe(false);
  const ofDriver = (cause: object): Error =>
    Object.assign(new Error('terminating connection', { cause }), { name: 'DriverAdapterError' });
  expect(isTransient(ofDriver({ originalCode: '57P01', kind: 'postgres' }))).toBe(true);
  expect(isTransient(ofDriver({ kind: 'ConnectionClosed' }))).toBe(true);
  expect(isTransient(ofDriver({ kind: 'UniqueConstraintViolation' }))).toBe(false);
  expect(isTransient('text')).toBe(false);
});
