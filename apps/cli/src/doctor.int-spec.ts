import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { DRIVERS, startPrivateRedis } from '../../../test/support/index.js';
import type { Check } from './doctor/checks.js';
import { MASTER_KEY as KEY } from '../../api/src/admin/admin-api.fixture.js';
import { baton, database, json, ownMachine } from './operator.fixture.js';

async function doctor(env: Record<string, string>) {
  const { code, out, err } = await baton('doctor --json', { DATABASE_URL: database.url, ...env });
  const { checks, faults } = JSON.parse(out) as { checks: Check[]; faults: number };
  const named = (name: string) => checks.filter((check) => check.name === name);
  return { code, out, err, faults, checks, named };
}

async function sql(text: string): Promise<void> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

/** Of `toMatchObject`, which takes a bare regular expression for any object. */
const matching = (pattern: RegExp): string => expect.stringMatching(pattern) as string;

describe('baton doctor', () => {
  it('finds no fault in a migrated database, and has a remedy for each warning', async () => {
    const { code, err, checks, named } = await doctor({ BATON_MASTER_KEY: KEY });
    // The Postgres of the tests does not wait for the disk.
    expect(checks.filter(({ status }) => status === 'fault')).toEqual([
      expect.objectContaining({ name: 'Durability', found: expect.stringMatching('^fsync') as string }),
    ]);
    expect({ code, err }).toEqual({ code: 1, err: 'There is 1 fault.' });
    expect(named('Migrations')).toEqual([{ name: 'Migrations', status: 'ok', found: 'all are applied' }]);
    expect(named('Row security')[0]?.status).toBe('ok');
    expect(named('Clock of Postgres')[0]?.status).toBe('ok');
    expect(named('Disk')).toHaveLength(1);
    // The tests have one role for everything.
    expect(named('Role')[0]).toMatchObject({ status: 'warning', remedy: expect.any(String) as string });
  });

  it('prints a line for each check, and the remedy below it', async () => {
    const { out } = await baton('doctor', { DATABASE_URL: database.url });
    expect(out).toMatch(/^ok {7}Node\.js {12}\d+\./);
    expect(out).toMatch(/\nwarning {2}Master key {9}is not set.*\n {28}→ Set BATON_MASTER_KEY to /);
  });

  it('finds migrations that are pending, halfway and of a later release', async () => {
    const set = (values: string) =>
      sql(`UPDATE _prisma_migrations SET ${values} WHERE migration_name LIKE '%sleeping_runs'`);
    const migrations = async () => (await doctor({})).named('Migrations')[0];
    await set(`migration_name = '29991231_sleeping_runs'`);
    expect(await migrations()).toMatchObject({
      status: 'fault',
      found: '1 is pending: 20261123210000_sleeping_runs',
    });
    await set(`migration_name = '20261123210000_sleeping_runs', finished_at = NULL`);
    expect(await migrations()).toMatchObject({ status: 'fault', found: matching(/has begun and not ended/) });
    await set('finished_at = now()');
    expect(await migrations()).toMatchObject({ status: 'ok' });
  });

  it('finds a table of tenants that row security leaves open', async () => {
    await sql('ALTER TABLE agents NO FORCE ROW LEVEL SECURITY');
    try {
      const { code, named } = await doctor({});
      expect(code).toBe(1);
      expect(named('Row security')[0]).toMatchObject({
        status: 'fault',
        remedy: matching(/^ENABLE and FORCE it/),
      });
    } finally {
      await sql('ALTER TABLE agents FORCE ROW LEVEL SECURITY');
    }
  });

  it('finds secrets that no key of this environment reads, and shows no key', async () => {
    await json('tenants create sealed');
    expect((await baton('secrets set openai --tenant sealed', ownMachine(), 'sk-1')).code).toBe(0);
    expect((await doctor({ BATON_MASTER_KEY: KEY })).named('Master key')[0]?.status).toBe('ok');
    const other = randomBytes(32).toString('base64');
    const { out, named } = await doctor({ BATON_MASTER_KEY: other });
    expect(named('Master key')[0]).toMatchObject({ status: 'fault', found: matching(/^1 stored values/) });
    expect(out).not.toContain(other);
    const rotated = await doctor({ BATON_MASTER_KEY: other, BATON_MASTER_KEY_PREVIOUS: KEY });
    expect(rotated.named('Master key')[0]).toMatchObject({
      status: 'warning',
      remedy: matching(/`node bin\/baton\.cjs secrets rotate`/),
    });
  });

  it('names settings that are wrong or unknown, and connects to no service then', async () => {
    const { code, faults, named } = await doctor({ LEASE_MS: 'long', BATON_MASTERKEY: 'x' });
    expect({ code, faults }).toEqual({ code: 1, faults: 2 });
    expect(named('Settings').map(({ status }) => status)).toEqual(['fault', 'warning']);
    expect(named('Settings')[1]?.found).toMatch(/^BATON_MASTERKEY is not a setting; did you mean/);
    expect(named('Postgres')[0]).toMatchObject({ status: 'fault', found: matching(/^could not be asked/) });
  });

  it('reports a server that does not answer, without the password', async () => {
    const { code, out, named } = await doctor({
      DATABASE_URL: 'postgres://baton:geheim@127.0.0.1:1/baton',
      REDIS_URL: 'redis://:geheim@127.0.0.1:1',
    });
    expect(code).toBe(1);
    expect(named('Postgres')[0]).toMatchObject({
      status: 'fault',
      found: matching(/^Postgres is not available/),
    });
    expect(named('Redis')[0]).toMatchObject({
      status: 'fault',
      found: matching(/^Redis at 127\.0\.0\.1:1 does not answer/),
    });
    expect(out).not.toContain('geheim');
  });

  it.each([
    ['a database that does not exist', { pathname: '/nowhere' }, /^Create it, then run npm run migrate/],
    ['a wrong password', { password: 'geheim' }, /^Correct them/],
  ])('names %s, and the remedy for it', async (_, part, remedy) => {
    const url = Object.assign(new URL(database.url), part).toString();
    const { code, out, named } = await doctor({ DATABASE_URL: url });
    expect(code).toBe(1);
    expect(named('Postgres')[0]).toMatchObject({ status: 'fault', remedy: matching(remedy) });
    expect(out).not.toMatch(/firewall|geheim/);
  });

  // A machine without Redis tests Postgres alone.
  (DRIVERS.includes('redis') ? it : it.skip)('looks at how Redis is set up', async () => {
    const redis = await startPrivateRedis();
    try {
      const { named } = await doctor({ REDIS_URL: redis.url });
      expect(named('Redis')[0]).toMatchObject({ status: 'ok', found: matching(/^\d+\.\d+/) });
      expect(named('Redis memory')[0]).toMatchObject({ status: 'ok', found: matching(/^noeviction/) });
      expect(named('Redis writes')[0]?.status).toBe('ok');
      expect(named('Clock of Redis')[0]?.status).toBe('ok');
    } finally {
      await redis.remove();
    }
  });
});
