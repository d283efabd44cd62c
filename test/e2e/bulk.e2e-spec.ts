import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asSystem } from '../support/tenants.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';
import { until } from '../support/until.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

/** Pays, and fails for each text that the file `broken` names. Each payment is a line of the file `effects`. */
const payerIn = (folder: string): string => `
import { defineAgent } from '@baton/agent';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const file = (name) => join(${JSON.stringify(folder)}, name);
export default defineAgent(async ({ text, step, ask }) => {
  await step('pay', () => appendFileSync(file('effects'), text + '\\n'));
  if (text.startsWith('ask')) await ask('seat', 'Which seat?');
  const broken = existsSync(file('broken')) ? readFileSync(file('broken'), 'utf8').split(' ') : [];
  if (broken.includes(text)) throw new Error('The door of ' + text + ' is locked');
  return 'done ' + text;
});
`;

const MANIFEST = `
name: Payer
description: Pays.
version: 1.0.0
runtime: executor
`;

let folder: string;
let stack: Stack;
let tenant: TestTenant;
let other: TestTenant;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'baton-bulk-'));
  mkdirSync(join(folder, 'agents/payer'), { recursive: true });
  writeFileSync(join(folder, 'agents/payer/index.mjs'), payerIn(folder));
  writeFileSync(join(folder, 'agents/payer/agent.yaml'), MANIFEST);
  const env = {
    ...CRASH_SETTINGS,
    BATON_AGENTS_DIR: join(folder, 'agents'),
    EXECUTOR_WRITE: folder,
    LIMIT_TASKS_WAITING: '40',
  };
  stack = await Stack.start({ driver: 'postgres', env });
  [tenant, other] = [await stack.createTenant('admin'), await stack.createTenant()];
});
afterAll(async () => {
  await stack.stop();
  rmSync(folder, { recursive: true });
});
beforeEach(() => {
  for (const name of ['effects', 'broken']) rmSync(join(folder, name), { force: true });
});

describe('an operation on many tasks', () => {
  it('cancels the tasks that match, and no others: after a dry run that changes nothing', async () => {
    const mine = await Promise.all(['ask 1', 'ask 2', 'ask 3'].map((text) => send('payer', text)));
    const echo = await send('echo', 'hello', { echo: { askInput: true } });
    const theirs = await send('payer', 'ask 4', {}, other);
    const args = ['bulk', 'begin', 'cancel', '--agent', 'payer', ...stack.cliOptions(tenant.token)];
    const preview = JSON.parse(await stack.baton(...args, '--dry-run', '--json'));
    expect([preview.found, preview.complete]).toEqual([3, true]);
    expect(preview.tasks.map((task: any) => task.task_id).sort()).toEqual(mine.map(({ id }) => id).sort());
    expect(await statesOf(mine)).toEqual(Array(3).fill('input-required'));
    const done = JSON.parse(await stack.baton(...args, '--watch', '--json'));
    expect(done).toMatchObject({ state: 'done', found: 3, done: 3, skipped: 0, failed: 0, failures: [] });
    expect(await statesOf(mine)).toEqual(Array(3).fill('canceled'));
    expect(await statesOf([echo])).toEqual(['input-required']);
    expect(await statesOf([theirs], other)).toEqual(['input-required']);
    // For the other tenant, the operation does not exist.
    expect((await ask(`/v1/bulk-operations/${done.id as string}`, undefined, other)).status).toBe(404);
    await expect(stack.baton('bulk', 'begin', 'cancel', ...stack.cliOptions(tenant.token))).rejects.toThrow(
      'Say which tasks',
    );
  });

  it('continues the failed tasks with an error: what was paid is not paid again, and failures are listed', async () => {
    writeFileSync(join(folder, 'broken'), 'a b c');
    const failed = await Promise.all(['a', 'b', 'c'].map((text) => send('payer', text)));
    expect(await statesOf(failed)).toEqual(Array(3).fill('failed'));
    writeFileSync(join(folder, 'broken'), 'c');
    const done = await operate({ action: 'continue', filter: { agent: 'payer', error: 'DOOR OF' } });
    expect(done).toMatchObject({ state: 'done', found: 3, done: 3, failed: 0 });
    await until(async () => (await all('completed')).filter(isOfPayer).length === 2);
    await until(async () => (await all('failed')).filter(isOfPayer).length === 4);
    expect(effects().sort()).toEqual(['a', 'b', 'c']);
    const one = await operate({ action: 'continue', filter: { agent: 'payer', error: 'door of c' } });
    expect(one).toMatchObject({ state: 'done', found: 2, done: 2 });
    await stack.baton('agents', 'create', '--tenant', tenant.slug, '--file', echoFile(), '--slug', 'short');
    const lost = await send('short', 'x', { echo: { fail: true } });
    await stack.baton('agents', 'remove', 'short', '--tenant', tenant.slug);
    const refused = await operate({ action: 'send-again', filter: { error: 'metadata.echo.fail' } });
    expect(refused.failures).toEqual([
      { task_id: lost.id, reason: expect.stringContaining('no longer exists') },
    ]);
    expect(refused).toMatchObject({ state: 'done', done: 0, failed: 1 });
  });

  nightlyIt('sends each task again once, also when a worker dies under way', async () => {
    const texts = Array.from({ length: 60 }, (_, i) => `bulk-${i}`);
    for (let i = 0; i < 60; i += 20) {
      await Promise.all(texts.slice(i, i + 20).map((text) => send('payer', text)));
    }
    rmSync(join(folder, 'effects'));
    const since = new Date(Date.now() - 600_000).toISOString();
    const filter = { agent: 'payer', state: 'completed', since };
    const expected = (await all('completed')).filter(isOfPayer).length;
    const { body } = await ask('/v1/bulk-operations', { action: 'send-again', filter });
    const path = `/v1/bulk-operations/${body.id as string}`;
    await until(async () => effects().length > 0);
    await stack.killWorkers();
    const { done } = (await ask(path)).body;
    expect(done).toBeLessThan(expected);
    await stack.addWorker();
    // Another worker may take it when the lease of the dead one ends.
    await asSystem(
      stack.database.url,
      `UPDATE bulk_operations SET due_at = now() - interval '1 second' WHERE due_at IS NOT NULL`,
    );
    await until(async () => (await ask(path)).body.state === 'done');
    expect((await ask(path)).body).toMatchObject({ found: expected, done: expected, failed: 0 });
    for (const state of ['submitted', 'working']) await until(async () => (await all(state)).length === 0);
    expect((await all('completed')).filter(isOfPayer)).toHaveLength(2 * expected);
  });

  it('deletes ended tasks for those with admin alone, and ends when it is canceled', async () => {
    const gone = await send('echo', 'gone', { echo: { fail: true } });
    const kept = await send('echo', 'kept');
    const caller = await stack.createToken(tenant.slug, 'agents:call', 'tasks:read', 'tasks:write');
    const request = { action: 'delete', filter: { agent: 'echo', state: 'failed' } };
    expect((await ask('/v1/bulk-operations', request, { ...tenant, token: caller })).status).toBe(403);
    expect(await operate(request)).toMatchObject({ state: 'done', found: 1, done: 1 });
    const { status, body } = await ask(`/v1/tasks/${gone.id as string}`);
    expect([status, body.error.message]).toEqual([404, expect.stringContaining('was deleted at')]);
    expect(await statesOf([kept])).toEqual(['completed']);
    const { body: wrong } = await ask('/v1/bulk-operations', {
      action: 'delete',
      filter: { state: 'working' },
    });
    expect(wrong.error.message).toContain('filter.state');
    await send('payer', 'stays');
    const payers = (await all('completed')).filter(isOfPayer).length;
    expect(payers).toBeGreaterThan(0);
    await stack.killWorkers();
    const begun = await ask('/v1/bulk-operations', { action: 'delete', filter: { agent: 'payer' } });
    await stack.baton('bulk', 'cancel', begun.body.id as string, ...stack.cliOptions(tenant.token));
    await stack.addWorker();
    const path = `/v1/bulk-operations/${begun.body.id as string}`;
    expect((await ask(path)).body).toMatchObject({ state: 'canceled', done: 0 });
    expect((await ask(`${path}/cancel`, {})).status).toBe(409);
    expect((await all('completed')).filter(isOfPayer)).toHaveLength(payers);
  });
});

async function operate(request: object): Promise<any> {
  const { body } = await ask('/v1/bulk-operations', request);
  const path = `/v1/bulk-operations/${body.id as string}`;
  await until(async () => (await ask(path)).body.state !== 'running');
  return (await ask(path)).body;
}

const isOfPayer = (task: any): boolean => task.first_message !== 'kept' && task.agent_id !== 'echo';

async function all(state: string): Promise<any[]> {
  const tasks = [];
  for (let cursor = ''; ;) {
    const { body } = await ask(`/v1/tasks?limit=100&state=${state}&cursor=${cursor}`);
    tasks.push(...body.tasks);
    if (body.next_cursor === null) return tasks;
    cursor = body.next_cursor as string;
  }
}

async function statesOf(tasks: { id: string }[], of = tenant): Promise<string[]> {
  const found = await Promise.all(tasks.map(({ id }) => ask(`/v1/tasks/${id}`, undefined, of)));
  return found.map(({ body }) => body.state as string);
}

function echoFile(): string {
  const file = join(folder, 'echo.json');
  writeFileSync(file, JSON.stringify({ name: 'short', description: 'Echoes.', runtime: 'echo' }));
  return file;
}

function effects(): string[] {
  const file = join(folder, 'effects');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}

/** Sends a message as the first of a task, until its turn has ended. */
async function send(agent: string, text: string, metadata: object = {}, of = tenant): Promise<any> {
  const caller = new RawCaller(stack.url(0, agent), of.token);
  const { result, error } = await caller.call('SendMessage', sendParams(text, { metadata }));
  return result?.task ?? { id: (error!.data as any)[0].metadata.taskId };
}

async function ask(path: string, sent?: object, of = tenant): Promise<{ status: number; body: any }> {
  const { status, json } = await stack.rest(of.token).call(sent ? 'POST' : 'GET', path, sent);
  return { status, body: json };
}
