import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CatalogClient, SecretStore } from '@baton/database';
import { Secrets } from '@baton/identity';
import { Client } from 'pg';
import { asAdministrator, databaseUrl, dropDatabase } from '../support/database.js';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';
import { increasing, textsOf } from '../support/streams.js';
import type { Wired } from '../support/wire.js';
import { LOG } from '../support/log-sql.js';

const CLI = join(__dirname, '../../dist/apps/cli/src/main.js');
const KEY = randomBytes(32).toString('base64');

// With Redis where there is one: then the restored tables meet an empty queue.
describe('a backup made under traffic, and restored elsewhere', () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-backup-'));
  const file = join(folder, 'baton.tar.gz');
  const hold = join(folder, 'hold');
  const env = {
    BATON_AGENTS_DIR: join(__dirname, '../agents'),
    BATON_MASTER_KEY: KEY,
    HOLD_FILE: hold,
    ...CRASH_SETTINGS,
  };
  let before: Stack;
  let after: Stack;
  let tenant: TestTenant;
  let url: string;

  /** What the first system said. */
  const seen = {
    log: [] as Frame[],
    done: undefined as Wired,
    atWork: [] as Frame[],
    asking: '',
    late: '',
    catalog: [] as Wired[],
  };

  const caller = (stack: Stack, agent = 'echo') => new RawCaller(stack.url(0, agent), tenant.token);
  const idOf = (frames: Frame[]): string => frames[0]?.data.result?.task.id as string;

  /** `baton`, with its exit code. */
  async function baton(source: Record<string, string>, ...args: string[]) {
    const options = { env: { ...process.env, REDIS_URL: '', BATON_MASTER_KEY: KEY, ...source } };
    try {
      return { code: 0, ...(await promisify(execFile)(process.execPath, [CLI, ...args], options)) };
    } catch (error) {
      return error as { code: number; stdout: string; stderr: string };
    }
  }

  async function native(stack: Stack, method: string, path: string, body?: object): Promise<Wired> {
    const { status, text, json } = await stack.rest(tenant.token).call(method, `/v1/${path}`, body);
    expect([path, status < 300, text]).toEqual([path, true, text]);
    return json;
  }

  const readCatalog = (stack: Stack): Promise<Wired[]> =>
    Promise.all(
      ['agents/twice', 'agents/twice/versions', 'schedules', 'secrets'].map((path) =>
        native(stack, 'GET', path),
      ),
    );

  /** What the restored database has, whosever it is. */
  async function select(text: string): Promise<Wired[]> {
    const client = new Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(`SET baton.tenant = 'system'`);
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  }

  beforeAll(async () => {
    writeFileSync(hold, '');
    before = await Stack.start({ driver: DRIVERS[0]!, env });
    tenant = await before.createTenant();
    const name = `test_${randomBytes(6).toString('hex')}`;
    await asAdministrator(`CREATE DATABASE ${name}`);
    url = databaseUrl(name);
  });

  afterAll(async () => {
    await before.stop();
    await after.stop();
    rmSync(folder, { recursive: true });
  });

  it('is made while tasks run', async () => {
    for (const description of ['Says it', 'Says it again']) {
      await native(before, 'PUT', 'agents/twice', { name: 'Twice', description, runtime: 'echo' });
    }
    await native(before, 'PUT', 'secrets/openai', { value: 'sk-hunter2' });
    const monthly = { name: 'monthly', agent: 'twice', text: 'report', cron: '0 0 1 1 *' };
    await native(before, 'POST', 'schedules', monthly);
    const awkward = 'nul \u0000 and \u2028 and ☃';
    const sent = sendParams(awkward, { metadata: { echo: { chunks: 12 } } });
    for await (const frame of caller(before, 'twice').stream('SendStreamingMessage', sent))
      seen.log.push(frame);
    seen.done = (await caller(before, 'twice').call('GetTask', { id: idOf(seen.log) })).result;
    const question = sendParams('what?', { metadata: { echo: { askInput: true } } });
    seen.asking = (await caller(before).call('SendMessage', question)).result?.task.id as string;
    for await (const frame of caller(before, 'pacer').stream('SendStreamingMessage', sendParams('count 4'))) {
      seen.atWork.push(frame);
      if (frame.data.result?.artifactUpdate) break; // It stops behind its first chunk.
    }
    seen.catalog = await readCatalog(before);

    let traffic = true;
    const busy = [1, 2, 3, 4].map(async () => {
      let count = 0;
      for (; traffic; count += 1) {
        const params = sendParams('busy', { metadata: { echo: { chunks: 30, delayMs: 5 } } });
        await caller(before).call('SendMessage', params);
      }
      return count;
    });
    await caller(before).call('SendMessage', sendParams('the traffic has begun'));
    const made = await baton({ DATABASE_URL: before.database.url }, 'backup', file);
    traffic = false;
    expect(Math.min(...(await Promise.all(busy)))).toBeGreaterThan(0);
    seen.late = (await caller(before).call('SendMessage', sendParams('too late'))).result?.task.id as string;

    expect(made).toMatchObject({ code: 0, stdout: '' });
    expect(made.stderr).toMatch(/^task_events: \d+ rows, /m);
    expect(made.stderr).toMatch(
      /^The backup is complete: \d+ rows of \d+ tables, as of .+ Left out: .*\bworkers\./m,
    );
    expect(made.stderr).toMatch(/encrypted with the master key [\da-f]{12}, which is not in the backup/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const again = await baton({ DATABASE_URL: before.database.url }, 'backup', file);
    expect(again).toMatchObject({ code: 1, stderr: `${file} already exists: name a new file.\n` });
  });

  it('is restored with every row, and no task has a hole in its log', async () => {
    await Promise.all([...before.apis, ...before.workers].map((process) => process.kill()));
    const checked = await baton({ DATABASE_URL: '' }, 'restore', '--check', file);
    expect(checked).toMatchObject({ code: 0, stdout: expect.stringMatching(/^The backup is complete\. /) });

    const other = randomBytes(32).toString('base64');
    const restored = await baton({ DATABASE_URL: url, BATON_MASTER_KEY: other }, 'restore', file);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Restored\. /) });
    expect(restored.stderr).toMatch(/^\d+ runs were running at the time of the backup/m);
    expect(restored.stderr).toMatch(
      /^Warning: secrets are encrypted with the master key [\da-f]{12}, which is/m,
    );
    const refused = await baton({ DATABASE_URL: url }, 'restore', file);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/is not empty.*--force/s) });

    const rows = await select(
      `SELECT t.id, t.last_sequence AS head, count(e.sequence)::int AS events, max(e.sequence) AS last
       FROM tasks t LEFT JOIN ${LOG} e ON e.tenant_id = t.tenant_id AND e.task_id = t.id GROUP BY t.id, 2`,
    );
    const tasks = rows as { head: number; events: number; last: number }[];
    expect(tasks.length).toBeGreaterThan(4);
    expect(tasks.filter(({ head, events, last }) => head !== events || head !== last)).toEqual([]);
  });

  it('goes on where it was: tokens, tasks, logs, agents, schedules and secrets', async () => {
    const database = { url, drop: () => dropDatabase(url) };
    after = await Stack.start({ driver: DRIVERS[0]!, env, database });
    expect(await readCatalog(after)).toEqual(seen.catalog);
    const done = caller(after, 'twice');
    expect((await done.call('GetTask', { id: idOf(seen.log) })).result).toEqual(seen.done);
    const rest: Frame[] = [];
    for await (const frame of done.stream('SubscribeToTask', { id: idOf(seen.log) }, 5)) rest.push(frame);
    expect(rest.map(({ id, data }) => [id, data.result])).toEqual(
      seen.log.slice(5).map(({ id, data }) => [id, data.result]),
    );
    expect((await caller(after).call('GetTask', { id: seen.late })).error?.code).toBe(-32001);

    const catalog = new CatalogClient(url);
    const [row] = await select(`SELECT id FROM tenants WHERE slug = '${tenant.slug}'`);
    const masterKey = Buffer.from(KEY, 'base64');
    const secrets = new Secrets(new SecretStore(catalog), { masterKey, previousMasterKeys: [] });
    expect(await secrets.get(row.id as string, 'openai', [])).toBe('sk-hunter2');
    await catalog.close();
  });

  it('continues the task that asked', async () => {
    const { result } = await caller(after).call('SendMessage', sendParams('this', { taskId: seen.asking }));
    expect(result?.task).toMatchObject({ id: seen.asking, status: { state: 'TASK_STATE_COMPLETED' } });
  });

  it('executes the run again that was at work, and its stream goes on after its last event', async () => {
    rmSync(hold);
    const last = seen.atWork.at(-1)?.id ?? 0;
    const frames: Frame[] = [];
    const id = idOf(seen.atWork);
    for await (const frame of caller(after, 'pacer').stream('SubscribeToTask', { id }, last))
      frames.push(frame);
    expect(frames[0]?.id).toBe(last + 1);
    expect(increasing(frames)).toBe(true);
    expect(textsOf([...seen.atWork, ...frames]).join('')).toBe('1 2 3 4 ');
    expect(frames.at(-1)?.data.result?.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
  });
});
