import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { RunningPostgres } from '../../apps/local/src/services/index.js';
import { migrate } from '../../libs/database/src/migrations/migrate.js';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { startTestPostgres } from '../support/postgres.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';
import { textsOf } from '../support/streams.js';

// docs/operating/backup.md, "Going back to any minute", step by step: a base backup, an archive, a target.

const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
const [server, archive, base, hold] = ['server', 'archive', 'base', 'hold'].map((name) =>
  join(folder, name),
) as [...[string, string, string, string]];
const ARCHIVING = {
  shared_buffers: '64MB',
  wal_level: 'replica',
  archive_mode: 'on',
  archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f`,
};
const env = { BATON_AGENTS_DIR: join(__dirname, '../agents'), HOLD_FILE: hold, ...CRASH_SETTINGS };
const data = join(server, 'data');

let postgres: RunningPostgres;
let stack: Stack;

beforeAll(() => {
  chmodSync(folder, 0o711);
  mkdirSync(archive);
  chmodSync(archive, 0o777);
});

afterAll(async () => {
  await stack.stop();
  rmSync(folder, { recursive: true });
});

const database = (url: string) => ({ url, drop: () => postgres.process.stop(5000) });

async function onDatabase<T>(work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    return await work(client);
  } finally {
    await client.end();
  }
}

it('Postgres goes back to a minute before a disaster, and Baton goes on from there', async () => {
  postgres = await startTestPostgres(server, { settings: ARCHIVING });
  const { url } = postgres;
  await migrate(url);
  await postgres.process.stop();
  expect(existsSync(data)).toBe(true);
  execFileSync('cp', ['-a', data, base]);
  postgres = await startTestPostgres(server, { settings: ARCHIVING, at: url });

  stack = await Stack.start({ driver: DRIVERS[0]!, env, database: database(url) });
  const tenant: TestTenant = await stack.createTenant();
  const caller = (agent = 'echo'): RawCaller => new RawCaller(stack.url(0, agent), tenant.token);
  const send = async (text: string) =>
    (await caller().call('SendMessage', sendParams(text))).result?.task as { id: string };
  const early = await send('before');
  execFileSync('touch', [hold]);
  const atWork: Frame[] = [];
  for await (const frame of caller('pacer').stream('SendStreamingMessage', sendParams('count 3'))) {
    atWork.push(frame);
    if (frame.data.result?.artifactUpdate) break; // It stops behind its first chunk.
  }
  const time = await onDatabase(async (client) => {
    const { rows } = await client.query<{ now: string }>('SELECT clock_timestamp()::text AS now');
    return rows[0]?.now ?? '';
  });
  const late = await send('after');
  await onDatabase((client) => client.query('TRUNCATE tasks, task_events, task_messages, runs'));
  await Promise.all([...stack.apis, ...stack.workers].map((process) => process.kill()));
  await postgres.process.stop();

  rmSync(data, { recursive: true });
  execFileSync('cp', ['-a', base, data]);
  execFileSync('cp', ['-a', join(data, 'PG_VERSION'), join(data, 'recovery.signal')]);
  postgres = await startTestPostgres(server, {
    settings: {
      shared_buffers: '64MB',
      restore_command: `cp ${archive}/%f %p`,
      recovery_target_time: time,
      recovery_target_action: 'promote',
    },
    at: url,
  });
  rmSync(hold);
  await stack.redis?.remove();
  stack = await Stack.start({ driver: DRIVERS[0]!, env, database: database(url) });
  expect((await caller().call('GetTask', { id: early.id })).result).toEqual(early);
  expect((await caller().call('GetTask', { id: late.id })).error?.code).toBe(-32001);
  const id = atWork[0]?.data.result?.task.id as string;
  const rest: Frame[] = [];
  for await (const frame of caller('pacer').stream('SubscribeToTask', { id }, atWork.at(-1)?.id))
    rest.push(frame);
  expect(textsOf([...atWork, ...rest]).join('')).toBe('1 2 3 ');
  expect(await send('and on')).toMatchObject({ status: { state: 'TASK_STATE_COMPLETED' } });
});
