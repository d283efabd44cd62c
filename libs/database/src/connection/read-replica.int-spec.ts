import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { type ReplicatedPostgres, startReplicatedPostgres } from '../../../../test/support/standby.js';
import { newTask } from '../stores.fixture.js';
import { TaskStore } from '../tasks/task.store.js';
import { Database } from './database.js';
import { ReadReplica } from './read-replica.js';

describe('lists with a standby', () => {
  /** What was committed longer ago is in every list. */
  const MAX_LAG_MS = 500;
  /** By so much the standby is always behind. */
  const APPLY_DELAY_MS = 50;
  let postgres: ReplicatedPostgres;
  let database: Database;
  let tasks: TaskStore;
  /** Who has answered, and why not the replica. */
  let servers: string[];
  let reasons: (string | undefined)[];

  const open = (replicaUrl: string): Database =>
    new Database({
      url: postgres.url,
      poolSize: 4,
      replica: (primary) =>
        new ReadReplica({
          primary,
          maxLagMs: MAX_LAG_MS,
          standby: new Database({ url: replicaUrl, poolSize: 4 }),
          onRead: (server) => servers.push(server),
          onChange: (reason) => reasons.push(reason),
        }),
    });

  beforeAll(async () => {
    postgres = await startReplicatedPostgres({ isSynchronous: false, applyDelayMs: APPLY_DELAY_MS });
  });
  beforeEach(() => {
    [servers, reasons] = [[], []];
    database = open(postgres.standbyUrl);
    tasks = new TaskStore(database);
  });
  afterEach(() => database.close());
  afterAll(() => postgres.drop());

  const create = async (tenantId: string): Promise<string> => {
    const input = newTask({ tenantId });
    await tasks.create(input);
    return input.task.id;
  };
  const list = async (tenantId: string, store = tasks): Promise<string[]> => {
    const shown = { pageSize: 10, includeArtifacts: false, mayLag: true };
    return (await store.list({ tenantId, ...shown })).tasks.map(({ task }) => task.id);
  };
  /** Lists again and again until one of them is right. Others write all the while, so the standby never has everything. */
  const until = async (tenantId: string, isRight: (ids: string[]) => boolean): Promise<void> => {
    do await create(randomUUID());
    while (!isRight(await list(tenantId)));
  };
  const byReplica = (): boolean => servers.at(-1) === 'replica';
  const onStandby = async (statement: string): Promise<void> => {
    const client = new Client({ connectionString: postgres.standbyUrl });
    await client.connect();
    await client.query(statement);
    await client.end();
  };

  it('are read there, under the row-level security of their tenant', async () => {
    const [mine, theirs] = [randomUUID(), randomUUID()];
    const id = await create(mine);
    await create(theirs);
    await until(mine, (ids) => ids.length === 1 && byReplica());
    expect(await list(mine)).toEqual([id]);

    const all = { text: 'SELECT id, pg_is_in_recovery() AS "isStandby" FROM tasks' };
    expect(await database.lists.tenantQuery(mine, all, [])).toEqual([{ id, isStandby: true }]);
    await expect(
      database.lists.tenantQuery(mine, { text: 'DELETE FROM tasks RETURNING pg_is_in_recovery() AS r' }, []),
    ).resolves.toEqual([{ r: false }]); // The standby refuses it, so the primary has done it.
  });

  it('show what was committed before the lag that is allowed, and every other read shows it at once', async () => {
    const tenantId = randomUUID();
    const first = await create(tenantId);
    await until(tenantId, (ids) => ids.includes(first) && byReplica());
    await onStandby('SELECT pg_wal_replay_pause()');
    const second = await create(tenantId);
    expect(await tasks.get(tenantId, second)).toBeDefined();

    await until(tenantId, (ids) => ids.includes(second));
    expect(servers.at(-1)).toBe('primary');
    await until(tenantId, () => reasons.length > 0);
    expect(servers.at(-1)).toBe('primary');
    expect(reasons).toEqual(['it is further behind than DATABASE_REPLICA_MAX_LAG_MS']);

    await onStandby('SELECT pg_wal_replay_resume()');
    await until(tenantId, byReplica);
    expect(await list(tenantId)).toEqual([second, first]);
    expect(reasons.at(-1)).toBeUndefined();
  });

  it('come from the primary while there is no standby', async () => {
    const tenantId = randomUUID();
    const id = await create(tenantId);
    await until(tenantId, byReplica);
    await postgres.stopStandby();
    expect(await list(tenantId)).toEqual([id]);
    expect([servers.at(-1), reasons.length]).toEqual(['primary', 1]);

    await postgres.restartStandby();
    await until(tenantId, byReplica);
    expect(await list(tenantId)).toEqual([id]);
  });

  it('come from the primary if the URL leads to no standby', async () => {
    const tenantId = randomUUID();
    const id = await create(tenantId);
    const misled = open(postgres.url);
    expect(await list(tenantId, new TaskStore(misled))).toEqual([id]);
    expect(servers).toEqual(['primary']);
    expect(reasons).toEqual(['DATABASE_REPLICA_URL leads to no standby of the database of DATABASE_URL']);
    await misled.close();
  });
});
