import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { startMcpServer, PATIENT, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { DRIVER } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const BATON = join(__dirname, '../../bin/baton.cjs');

const [COMPLETED, FAILED, WAITS] = [
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_INPUT_REQUIRED',
] as const;

/** Pays, asks, books, and fails wherever the folder has a file `break-<place>`. Each effect is a line of the file `effects`. */
const payerIn = (folder: string): string => `
import { defineAgent } from '@baton/agent';
import { appendFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';

const folder = ${JSON.stringify(folder)};
const fails = (place) => {
  if (existsSync(join(folder, 'break-' + place))) throw new Error('broken: ' + place);
};
const effect = (name) => ({ key }) => {
  appendFileSync(join(folder, 'keys'), name + ' ' + key + '\\n');
  fails(name);
  appendFileSync(join(folder, 'effects'), name + '\\n');
  return name;
};

export default defineAgent(async ({ text, step, ask, stream }) => {
  stream('one ');
  const paid = await step('pay', effect('pay'));
  const answer = text.includes('ask') ? await ask('seat', 'Which seat?') : 'none';
  stream('two ');
  const booked = await step('book', effect('book'), { attempts: 1 });
  fails('code');
  if (text.includes('hotel')) await ask('bed', 'Which bed?');
  stream('three ');
  return [paid, answer, booked, text].join(' ');
});
`;

const MANIFEST = `
name: Payer
description: Pays.
version: 1.0.0
runtime: executor
`;

const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, OUTBOUND_ALLOW: '127.0.0.1' },
  {
    installAgents: (agents, writable) => {
      folder = join(writable, 'continue');
      payer = join(agents, 'payer');
      for (const each of [folder, payer]) mkdirSync(each);
      writeFileSync(join(payer, 'index.mjs'), payerIn(folder));
      writeFileSync(join(payer, 'agent.yaml'), MANIFEST);
    },
  },
);
let folder: string;
/** The folder of its code. */
let payer: string;
let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;
let server: TestMcpServer;

describe('continue and fork', () => {
  beforeAll(async () => {
    [stack, provider, server] = await Promise.all([
      startStack(),
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('pay', 'paid')] }),
    ]);
    tenant = await stack.createTenant();
    await createAgent('clerk', { neverRepeat: undefined });
    await createAgent('careful', { neverRepeat: ['pay'] });
  });
  afterAll(() => Promise.all([provider.stop(), server.stop()]));
  beforeEach(() => {
    for (const file of ['effects', 'keys']) rmSync(join(folder, file), { force: true });
    provider.reset();
    server.calls.length = 0;
    for (const place of ['book', 'code']) rmSync(join(folder, `break-${place}`), { force: true });
  });

  describe('a failed task of an agent in code', () => {
    it.each(['book', 'code'])('goes on where it has failed (%s), as one new task', async (place) => {
      fail(place);
      const failed = await send('payer', 'trip');
      expect(failed.status.state).toBe(FAILED);
      mend(place);
      const { status, body } = await post(`${failed.id as string}/continue`);
      expect([status, body.continues]).toEqual([201, failed.id]);
      const task = await ended(body.task_id as string);
      expect(task.status).toMatchObject({ state: COMPLETED });
      // Its caller has the whole output in the new task.
      expect(saidIn(task)).toBe('one two three pay none book trip');
      expect(effects()).toEqual(['pay', 'book']);
      // A receiver recognizes a second try by its key.
      expect(new Set(linesOf('keys')).size).toBe(2);
      expect([task.contextId, task.history.length]).toEqual([failed.contextId, 1]);
      const repeated = await post(`${failed.id as string}/continue`);
      expect(repeated.body.task_id).toBe(task.id);
      expect(await read(failed.id as string)).toMatchObject({ continues: null, continued_as: task.id });
      expect(await read(task.id as string)).toMatchObject({ continues: failed.id, continued_as: null });
    });

    it('goes on again when it fails again, and keeps the answer that its caller has given', async () => {
      const asked = await send('payer', 'ask');
      expect(asked.status.state).toBe(WAITS);
      fail('book');
      const failed = await send('payer', 'window', asked.id as string);
      expect(failed.status.state).toBe(FAILED);
      const second = await ended((await post(`${failed.id as string}/continue`)).body.task_id as string);
      expect(second.status.state).toBe(FAILED);
      mend('book');
      const shown = await stack.baton(
        'tasks',
        'continue',
        second.id as string,
        ...stack.cliOptions(tenant.token),
      );
      const [, id = ''] = /continues as task (\S+)\./.exec(shown) ?? [];
      const third = await ended(id);
      expect(saidIn(third)).toBe('one two three pay window book ask');
      expect(effects()).toEqual(['pay', 'book']);
    });

    it('is replayed with the messages of the task before when new code is checked', async () => {
      fail('book');
      const asked = await send('payer', 'ask hotel');
      const failed = await send('payer', 'window', asked.id as string);
      mend('book');
      const { body } = await post(`${failed.id as string}/continue`);
      const task = await ended(body.task_id as string);
      expect(task.status.state).toBe(WAITS);
      const args = [BATON, 'agents', 'check', payer, ...stack.cliOptions(tenant.token)];
      const { stdout } = await promisify(execFile)(process.execPath, args);
      expect(stdout).toBe(`${task.id as string}  fits\n`);
      const done = await send('payer', 'soft', task.id as string);
      expect(saidIn(done)).toBe('one two three pay window book ask hotel');
    });

    it('gets the reason why it cannot continue', async () => {
      const done = await send('payer', 'trip');
      const { status, body } = await post(`${done.id as string}/continue`);
      expect(status).toBe(400);
      expect(body.error.message).toContain(
        'only a failed task can be continued, and its state is TASK_STATE_COMPLETED',
      );
      const reader = await stack.createToken(tenant.slug, 'agents:call');
      fail('book');
      const failed = await send('payer', 'trip');
      expect((await post(`${failed.id as string}/continue`, {}, reader)).status).toBe(404);
    });
  });

  describe('a failed task of an llm agent', () => {
    it('goes on with the call of the model that has failed: no other call is made again', async () => {
      provider.reply(
        { text: 'I pay. ', calls: [{ name: 'desk_pay', input: {} }] },
        { status: 400, error: 'no' },
      );
      const failed = await send('clerk', 'Pay the bill.');
      expect(failed.status.state).toBe(FAILED);
      provider.reply({ text: 'It is paid.' });
      const task = await ended((await post(`${failed.id as string}/continue`)).body.task_id as string);
      expect(task.status.state).toBe(COMPLETED);
      expect(task.artifacts.map((artifact: any) => artifact.name)).toEqual(['reply', 'desk_pay', 'reply']);
      expect(task.artifacts.map(textOf)).toEqual(['I pay. ', '', 'It is paid.']);
      expect(server.calls.filter(({ tool }) => tool === 'pay')).toHaveLength(1);
      expect(provider.requests).toHaveLength(3);
      // The failed task is not also an earlier task of the conversation.
      const { messages } = provider.requests[2]!.body as { messages: { role: string }[] };
      expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
    });
  });

  describe('a fork', () => {
    it('continues after a step with another message, once a user has seen what it may do again', async () => {
      const done = await send('payer', 'trip');
      const [pay] = (await read(done.id as string)).steps;
      const trace = await get(`${done.id as string}/trace`);
      const { entry } = trace.spans.find((span: any) => span.name === pay.name);
      const args = [
        'tasks',
        'fork',
        done.id as string,
        '--at',
        String(entry),
        '--text',
        'other',
        ...stack.cliOptions(tenant.token),
      ];
      await expect(stack.baton(...args)).rejects.toThrow(/step book \(entry \d+\)/);
      const shown = await stack.baton(...args, '--yes');
      const [, id = ''] = / as task (\S+)\./.exec(shown) ?? [];
      const fork = await ended(id);
      expect(saidIn(fork)).toBe('one two three pay none book other');
      expect(effects()).toEqual(['pay', 'book', 'book']);
      expect(await read(id)).toMatchObject({ fork_of: done.id, continues: null });
      expect((await get(done.id as string)).task.status).toEqual(done.status);
    });

    it('asks a person before it repeats a tool that is marked neverRepeat, and may have another agent', async () => {
      provider.reply({ calls: [{ name: 'desk_pay', input: {} }] }, { text: 'It is paid.' });
      const done = await send('clerk', 'Pay the bill.');
      expect(done.status.state).toBe(COMPLETED);
      const { spans } = await get(`${done.id as string}/trace`);
      const { entry } = spans.find((span: any) => span.kind === 'model');
      const { body } = await post(`${done.id as string}/fork`, { at: entry, agent: 'careful' });
      expect(body.done_again).toEqual([{ entry: expect.any(Number), kind: 'tool', name: 'desk_pay' }]);
      const asked = await ended(body.task_id as string);
      expect(asked.status.state).toBe(WAITS);
      expect(server.calls.filter(({ tool }) => tool === 'pay')).toHaveLength(1);
      provider.reply({ text: 'It is paid again.' });
      const again = await send('careful', 'yes', asked.id as string);
      expect(again.status.state).toBe(COMPLETED);
      expect(server.calls.filter(({ tool }) => tool === 'pay')).toHaveLength(2);
    });
  });
});

async function createAgent(slug: string, options: object): Promise<void> {
  const config = {
    model: 'openai-compatible/clerk-1',
    baseUrl: provider.url,
    tools: { mcp: [{ ...PATIENT, name: 'desk', url: server.url, ...options }] },
  };
  const file = join(folder, `${slug}.json`);
  writeFileSync(file, JSON.stringify({ name: slug, description: 'Pays.', runtime: 'llm', config }));
  await stack.baton('agents', 'create', '--tenant', tenant.slug, '--file', file, '--slug', slug);
}

const fail = (place: string): void => writeFileSync(join(folder, `break-${place}`), '');
const mend = (place: string): void => rmSync(join(folder, `break-${place}`));
const effects = (): string[] => linesOf('effects');
const linesOf = (name: string): string[] => {
  const file = join(folder, name);
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
};

async function send(agent: string, text: string, taskId?: string): Promise<any> {
  const caller = new RawCaller(stack.url(0, agent), tenant.token);
  const params = sendParams(text, taskId === undefined ? {} : { taskId });
  const { result, error } = await caller.call('SendMessage', params);
  // The answer of a task whose agent has thrown is an error that names it.
  return result?.task ?? (await read((error!.data as any)[0].metadata.taskId as string)).task;
}

async function post(path: string, sent = {}, bearer = tenant.token): Promise<{ status: number; body: any }> {
  const { status, json } = await stack.rest(bearer).call('POST', `/v1/tasks/${path}`, sent);
  return { status, body: json };
}

const read = (id: string): Promise<any> => get(id);

const get = (path: string): Promise<any> => stack.rest(tenant.token).get(`/v1/tasks/${path}`);

const ended = (id: string): Promise<any> => stack.rest(tenant.token).endedTask(id);

const saidIn = (task: any): string => textOf(task.artifacts[0]);
const textOf = (artifact: any): string => artifact.parts.map((part: any) => part.text ?? '').join('');
