import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { backUp, Database, migrate, restoreBackup } from '@baton/database';
import { createMessaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Client } from 'pg';
import { findRedisBinary, type RunningPostgres, startPostgres, startRedis } from './index.js';

const query = async (url: string, statement: string): Promise<unknown[]> => {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
};

/** What a Redis answers to these commands. */
async function saidByRedis(url: string, ...commands: string[]): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.end([...commands, 'QUIT', ''].join('\r\n'));
  return (await text(socket)).replace(/\+OK\r\n$/, '');
}

describe('services of our own', () => {
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  chmodSync(folder, 0o711); // As root, Postgres runs as another user, who must get in.
  const started: RunningPostgres[] = [];
  const start = async () => {
    const postgres = await startPostgres(join(folder, 'postgres'));
    started.push(postgres);
    return postgres;
  };

  afterAll(async () => {
    await Promise.all(started.map(({ process: service }) => service.stop(5000)));
    rmSync(folder, { recursive: true, force: true });
  });

  it('Postgres keeps its data from start to start, durably, under a role that is no superuser', async () => {
    const first = await start();
    await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
    await first.process.stop();
    const second = await start();
    expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
    expect(await query(second.url, 'SHOW fsync')).toEqual([{ fsync: 'on' }]);
    const role = 'SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user';
    expect(await query(second.url, role)).toEqual([{ rolsuper: false, rolbypassrls: false }]);
  });

  it('Postgres gives the tables of an earlier release to an owner that the processes are not', async () => {
    const before = await start();
    await query(
      before.url,
      'CREATE TABLE rows_of_old (id int GENERATED ALWAYS AS IDENTITY, number serial, text text)',
    );
    await query(before.url, 'CREATE FUNCTION guard() RETURNS boolean LANGUAGE sql RETURN true');
    await query(before.url, 'CREATE SCHEMA queue; CREATE TABLE queue.jobs (id int)');
    await before.process.stop();
    const {
      url,
      ownerUrl,
      process: service,
    } = await startPostgres(join(folder, 'postgres'), { separateOwner: true });
    await query(url, `INSERT INTO rows_of_old (text) VALUES ('new'); INSERT INTO queue.jobs VALUES (1)`);
    expect(await query(url, 'SELECT * FROM rows_of_old')).toEqual([{ id: 1, number: 1, text: 'new' }]);
    await expect(query(url, 'ALTER TABLE rows_of_old DISABLE ROW LEVEL SECURITY')).rejects.toThrow(
      'must be owner',
    );
    await expect(
      query(url, 'CREATE OR REPLACE FUNCTION guard() RETURNS boolean LANGUAGE sql RETURN false'),
    ).rejects.toThrow(/permission denied|must be owner/);
    await query(ownerUrl, 'ALTER TABLE rows_of_old ADD COLUMN more int; CREATE TABLE later (id int)');
    await query(ownerUrl, 'DROP SCHEMA queue CASCADE');
    await query(url, 'INSERT INTO later VALUES (1); CREATE SCHEMA queue; DROP SCHEMA queue');
    await service.stop();
    const again = await startPostgres(join(folder, 'postgres'), { separateOwner: true });
    started.push(again);
    expect(await query(again.ownerUrl, 'SELECT id FROM later')).toEqual([{ id: 1 }]);
  });

  it('a Postgres that was left over from an earlier start gives way to the new one', async () => {
    const leftOver = started.at(-1);
    const postgres = await start();
    expect(await leftOver?.process.exited).toBe('exit code 0');
    expect(await query(postgres.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  });

  // Only Linux shows the environment of a process as a file.
  const onLinux = process.platform === 'linux' ? it : it.skip;
  onLinux('no server has secrets in its environment, which other programs of its user can read', async () => {
    process.env.BATON_TOKEN = 'of an operator';
    const { process: server } = await start().finally(() => delete process.env.BATON_TOKEN);
    const environment = readFileSync(`/proc/${server.pid}/environ`, 'utf8');
    expect(environment).toContain('PATH=');
    expect(environment).not.toContain('of an operator');
    await server.stop();
  });

  it('the owner migrates and restores, and the processes have all they need', async () => {
    const running = await startPostgres(join(folder, 'postgres'), { separateOwner: true });
    started.push(running);
    const { url, ownerUrl } = running;
    await query(ownerUrl, 'DROP TABLE kept, rows_of_old, later; DROP FUNCTION guard');
    await migrate(ownerUrl);
    const tenant = randomUUID();
    const insert = `SET baton.tenant = '${tenant}'; INSERT INTO tenants (id, slug) VALUES ('${tenant}', 'acme')`;
    await query(url, insert);
    const out = new PassThrough();
    const file = buffer(out);
    await backUp({ databaseUrl: url }, out, () => undefined);
    const bytes = await file;
    await query(url, 'CREATE SCHEMA bullmq; CREATE TABLE bullmq.jobs (id int)');
    await restoreBackup(
      { databaseUrl: ownerUrl },
      { open: () => Readable.from([bytes]), canBeReadTwice: true, force: true, report: () => undefined },
    );
    await expect(query(url, insert)).rejects.toThrow('duplicate key');
    const database = new Database({ url, poolSize: 1 });
    const messaging = createMessaging({ databaseUrl: url, log: Logger.silent() });
    try {
      expect(await database.pendingMigrations()).toEqual([]);
      await messaging.start(60_000);
    } finally {
      await messaging.close();
      await database.close();
    }
    await expect(query(url, 'ALTER TABLE tasks DISABLE ROW LEVEL SECURITY')).rejects.toThrow('must be owner');
  });

  it('a server that cannot start says why', async () => {
    await started.at(-1)?.process.stop();
    writeFileSync(join(folder, 'postgres', 'data', 'PG_VERSION'), '9.6\n');
    await expect(start()).rejects.toThrow(
      /Postgres ended while starting[^]*initialized by PostgreSQL version 9\.6/,
    );
  });

  // Only root can make a folder that the account of Postgres may not enter.
  const asRoot = process.getuid?.() === 0 ? it : it.skip;
  asRoot(
    'below a folder that only root may enter, Postgres keeps its data elsewhere and finds it again',
    async () => {
      const closed = join(folder, 'closed');
      mkdirSync(closed, { mode: 0o700 });
      const first = await startPostgres(join(closed, 'postgres'));
      started.push(first);
      await query(first.url, 'CREATE TABLE kept AS SELECT 42 AS answer');
      await first.process.stop();
      const second = await startPostgres(join(closed, 'postgres'));
      started.push(second);
      expect(await query(second.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
      await second.process.stop();
      rmSync(readFileSync(join(closed, 'postgres', 'location'), 'utf8').trim(), { recursive: true });
    },
  );

  // There may be no redis-server on this machine.
  const binary = findRedisBinary();
  (binary ? it : it.skip)(
    'Redis comes back under its URL, and refuses callers without the password',
    async () => {
      const data = join(folder, 'redis');
      const first = await startRedis(binary ?? '', data);
      await first.process.stop();
      const second = await startRedis(binary ?? '', data, { at: first.url });
      expect(second.url).toBe(first.url);
      const { password } = new URL(second.url);
      expect(await saidByRedis(second.url, 'PING')).toMatch(/^-NOAUTH/);
      expect(await saidByRedis(second.url, `AUTH ${password.slice(1)}`, 'PING')).toMatch(
        /^-WRONGPASS.*\r\n-NOAUTH/,
      );
      expect(await saidByRedis(second.url, `AUTH ${password}`, 'PING')).toBe('+OK\r\n+PONG\r\n');
      await second.process.stop();
    },
  );
});
