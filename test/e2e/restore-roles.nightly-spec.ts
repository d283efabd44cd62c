import { execFile } from 'node:child_process';
import { appendFileSync, chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from 'pg';
import type { RunningPostgres } from '../../apps/local/src/services/index.js';
import { migrate } from '../../libs/database/src/migrations/migrate.js';
import { startTestPostgres } from '../support/postgres.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';

const CLI = join(__dirname, '../../dist/apps/cli/src/main.js');
const MIGRATE = join(__dirname, '../../dist/libs/database/src/migrate-main.js');
const PASSWORD = 'of-the-drill';
const DATABASE = 'baton_restored';

// The drill of docs/operating/backup.md with the two roles of docs/operating/security.md.
describe('a backup restored into a database of two roles', () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-drill-'));
  const file = join(folder, 'baton.tar.gz');
  const options = { roleAttributes: 'CREATEDB CREATEROLE' };
  let postgres: RunningPostgres;
  let urls: Record<'app' | 'owner', string>;
  let tenant: TestTenant;
  let taskId: string;

  async function sql(url: string, ...statements: string[]): Promise<void> {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      for (const statement of statements) await client.query(statement);
    } finally {
      await client.end();
    }
  }

  /** `baton`, with its exit code. */
  async function baton(source: Record<string, string>, ...args: string[]) {
    const env = { ...process.env, REDIS_URL: '', BATON_HOME: folder, ...source };
    try {
      return { code: 0, ...(await promisify(execFile)(process.execPath, [CLI, ...args], { env })) };
    } catch (error) {
      return error as { code: number; stdout: string; stderr: string };
    }
  }

  /** What doctor says of the role, and of the migrations. */
  async function diagnosis(
    url = urls.app,
  ): Promise<{ role: string | undefined; remedy: string; migrations: unknown }> {
    const { stdout } = await baton({ DATABASE_URL: url }, 'doctor', '--json');
    const { checks } = JSON.parse(stdout) as {
      checks: { name: string; status: string; found: string; remedy?: string }[];
    };
    const of = (name: string) => checks.find((check) => check.name === name);
    return {
      role: of('Role')?.status,
      remedy: of('Role')?.remedy ?? '',
      migrations: of('Migrations')?.status,
    };
  }

  const withStack = async <T>(url: string, work: (stack: Stack) => Promise<T>): Promise<T> => {
    const stack = await Stack.start({
      driver: 'postgres',
      database: { url, drop: async () => undefined },
    });
    try {
      return await work(stack);
    } finally {
      await stack.stop();
    }
  };

  beforeAll(async () => {
    chmodSync(folder, 0o711);
    const home = join(folder, 'postgres');
    postgres = await startTestPostgres(home, options);
    // Lets the two roles sign in.
    await postgres.process.stop(5_000);
    const location = join(home, 'location');
    const state = existsSync(location) ? readFileSync(location, 'utf8').trim() : home;
    appendFileSync(join(state, 'data/pg_hba.conf'), 'host all app,owner 127.0.0.1/32 scram-sha-256\n');
    postgres = await startTestPostgres(home, options);
    const urlOf = (role: string): string => {
      const url = new URL(postgres.url);
      [url.username, url.password, url.pathname] = [role, PASSWORD, `/${DATABASE}`];
      return url.toString();
    };
    urls = { app: urlOf('app'), owner: urlOf('owner') };
    await migrate(postgres.url);
  });

  afterAll(async () => {
    await postgres.process.stop(5_000);
    rmSync(folder, { recursive: true, force: true });
  });

  it('has every right that the processes need, and the tasks are there', async () => {
    const before = await withStack(postgres.url, async (stack) => {
      tenant = await stack.createTenant();
      const caller = new RawCaller(stack.url(0), tenant.token);
      taskId = (await caller.call('SendMessage', sendParams('remember'))).result?.task.id as string;
      return (await caller.call('GetTask', { id: taskId })).result;
    });
    expect((await baton({ DATABASE_URL: postgres.url }, 'backup', file)).code).toBe(0);
    await sql(
      postgres.url,
      `CREATE ROLE app LOGIN PASSWORD '${PASSWORD}'`,
      `CREATE ROLE owner LOGIN PASSWORD '${PASSWORD}'`,
      'GRANT app TO owner',
      'GRANT owner TO CURRENT_USER',
      `CREATE DATABASE ${DATABASE} OWNER owner`,
    );
    const source = { DATABASE_URL: urls.app, MIGRATE_DATABASE_URL: urls.owner };
    const restored = await baton(source, 'restore', file);
    expect([restored.code, restored.stdout]).toEqual([0, expect.stringMatching(/^Restored\. /)]);
    // It is recorded by the role of the processes.
    expect(restored.stderr).not.toContain('no record');
    expect(await diagnosis()).toEqual({ role: 'ok', remedy: '', migrations: 'ok' });
    await withStack(urls.app, async (stack) => {
      const caller = new RawCaller(stack.url(0), tenant.token);
      expect((await caller.call('GetTask', { id: taskId })).result).toEqual(before);
      const { result } = await caller.call('SendMessage', sendParams('go on'));
      expect(result?.task.status.state).toBe('TASK_STATE_COMPLETED');
    });
    await expect(sql(urls.app, 'ALTER TABLE tasks DISABLE ROW LEVEL SECURITY')).rejects.toThrow(
      'must be owner',
    );
  });

  it('without these rights: doctor has the statement that gives them', async () => {
    await sql(urls.owner, 'REVOKE ALL ON ALL TABLES IN SCHEMA public FROM app');
    const { role, remedy } = await diagnosis();
    expect([role, remedy]).toEqual(['fault', expect.stringMatching(/^As the owner of the tables/)]);
    const [grant = ''] = /GRANT .* TO "app"/.exec(remedy) ?? [];
    await sql(urls.owner, grant);
    expect(await diagnosis()).toEqual({ role: 'ok', remedy: '', migrations: 'ok' });
  });

  it('needs no more rights in a new database that the owner migrates', async () => {
    await sql(postgres.url, 'CREATE DATABASE baton_new OWNER owner');
    const [app, owner] = [urls.app, urls.owner].map((url) => url.replace(DATABASE, 'baton_new'));
    const env = { ...process.env, DATABASE_URL: app, MIGRATE_DATABASE_URL: owner };
    await promisify(execFile)(process.execPath, [MIGRATE], { env });
    expect(await diagnosis(app)).toEqual({ role: 'ok', remedy: '', migrations: 'ok' });
  });
});
