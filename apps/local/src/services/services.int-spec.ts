import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
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

  it('a Postgres that was left over from an earlier start gives way to the new one', async () => {
    const leftOver = started.at(-1);
    const postgres = await start();
    expect(await leftOver?.process.exited).toBe('exit code 0');
    expect(await query(postgres.url, 'SELECT answer FROM kept')).toEqual([{ answer: 42 }]);
  });

  it('a server that can not start says why', async () => {
    await started.at(-1)?.process.stop();
    writeFileSync(join(folder, 'postgres', 'data', 'PG_VERSION'), '9.6\n');
    await expect(start()).rejects.toThrow(
      /Postgres ended while starting[^]*initialized by PostgreSQL version 9\.6/,
    );
  });

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

  const binary = findRedisBinary();
  (binary ? it : it.skip)('Redis comes back under the URL it had, for whoever has the password', async () => {
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
  });
});
