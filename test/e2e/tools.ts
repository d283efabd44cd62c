import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import type { BatonProcess } from '../support/baton-process.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { PATIENT, type TestMcpServer, startMcpServer } from '../support/mcp-server/mcp-server.js';
import { heldTool, textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { isRunning } from '../support/local-run.js';
import { DRIVER, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import type { Wired } from '../support/wire.js';

const STDIO_SERVER = join(__dirname, '../support/mcp-server/stdio-server.mjs');
const startStack = shareStack(DRIVER, {
  ...CRASH_SETTINGS,
  OUTBOUND_ALLOW: '127.0.0.1',
  BATON_MASTER_KEY: MASTER_KEY,
  MCP_STDIO_ALLOW: `${process.execPath} ${STDIO_SERVER}`,
});

/** The secret of the MCP server. */
const TOKEN = 's3cret-of-the-desk-4711';

let folder: string;
let stack: Stack;
let provider: ModelProvider;
let server: TestMcpServer;
let caller: RawCaller;
/** Calls an agent that has a program's tools as well. */
let local: RawCaller;
let tenant: TestTenant;

describe('tools', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'baton-tools-'));
    [stack, provider, server] = await Promise.all([
      startStack(),
      ModelProvider.start(),
      startMcpServer({ tools: [], authorization: `Bearer ${TOKEN}` }),
    ]);
    tenant = await stack.createTenant();
    const { slug, token } = tenant;
    await setSecret('desk', TOKEN, server.url);
    const make = async (name: string, agent: object): Promise<RawCaller> => {
      const file = join(folder, `${name}.json`);
      writeFileSync(file, JSON.stringify(agent));
      await stack.baton('agents', 'create', '--tenant', slug, '--file', file, '--slug', name);
      return new RawCaller(stack.url(0, name), token);
    };
    caller = await make('clerk', clerk());
    const program = { name: 'program', command: process.execPath, args: [STDIO_SERVER], ...PATIENT };
    local = await make('local', clerk(program));
  });

  afterAll(async () => {
    await Promise.all([provider.stop(), server.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });

  beforeEach(() => {
    provider.reset();
    server.calls.length = 0;
  });

  describe('an agent with tools', () => {
    /** What one of its tasks has asked before the tests, and on which worker. */
    let asked: Wired;
    let askedOn: BatonProcess;

    beforeAll(async () => {
      server.tools = [textTool('sign', 'signed')];
      provider.reply({ calls: [{ name: 'desk_sign', input: { page: 3 } }] });
      askedOn = stack.workers[0]!;
      asked = await send('Sign it');
    });

    it('goes on after its worker was killed in the middle of a call, and makes no finished call again', async () => {
      const copy = { ...heldTool('copy', 'copied'), annotations: { idempotentHint: true } };
      const pay = heldTool('pay', 'paid');
      server.tools = [textTool('read', 'the bill is 7'), copy, pay];
      provider.reply(
        { calls: [{ name: 'desk_read', input: {} }] },
        {
          calls: [
            { name: 'desk_copy', input: {} },
            { name: 'desk_pay', input: {} },
          ],
        },
        { text: 'Copied; look whether it is paid.' },
      );
      const done = send('Read the bill, copy it and pay it');
      await Promise.all([server.called('copy'), server.called('pay')]);
      await stack.replaceWorkers();
      await server.called('copy', 2);
      copy.release();
      const task = await done;
      pay.release();
      expect(task.status.state).toBe('TASK_STATE_COMPLETED');
      expect([callsOf('read'), callsOf('copy'), callsOf('pay')]).toEqual([1, 2, 1]);
      expect(provider.requests).toHaveLength(3);
      expect(JSON.stringify(provider.requests[2]?.body)).toMatch(/copied.*is not known: the server stopped/);
      expect(await effectsOf(task.id)).toMatchObject([
        { name: 'desk_read', kind: 'tool', outcome: 'confirmed' },
        { name: 'desk_pay', outcome: 'unknown' },
        { name: 'desk_copy', outcome: 'confirmed' },
      ]);
      const calls = task.artifacts.filter(({ metadata }: { metadata?: object }) => metadata);
      expect(calls.map(({ parts }: { parts: object[] }) => parts[0])).toMatchObject([
        { data: { tool: 'desk_read', ok: true, output: 'the bill is 7' } },
        { data: { tool: 'desk_copy', ok: true, output: 'copied' } },
        { data: { tool: 'desk_pay', ok: false } },
      ]);
    });

    it('waits for approval, and makes the call on another worker once it has it', async () => {
      expect(asked.status).toMatchObject({
        state: 'TASK_STATE_INPUT_REQUIRED',
        message: {
          parts: [{}, { data: { approval: { callId: 'call-1-1', tool: 'desk_sign', input: { page: 3 } } } }],
        },
      });
      expect(asked.status.message.parts[0].text).toContain('Answer yes or no.');
      expect(await effectsOf(asked.id)).toMatchObject([
        { name: 'desk_sign', outcome: 'intended', ended_at: null },
      ]);
      await stack.outlive(askedOn);
      expect(callsOf('sign')).toBe(0);
      server.tools = [textTool('sign', 'signed')];
      provider.reply({ text: 'It is signed.' });
      const task = await send('yes', asked.id);
      expect(task.status.state).toBe('TASK_STATE_COMPLETED');
      expect(server.calls).toMatchObject([{ tool: 'sign', input: { page: 3 } }]);
    });

    nightlyIt(
      'asks about an approved call that was in flight when its worker was killed, and makes it again with its key',
      async () => {
        const sign = heldTool('sign', 'signed');
        server.tools = [sign];
        provider.reply({ calls: [{ name: 'desk_sign', input: {} }] }, { text: 'It is signed.' });
        const { id } = await send('Sign it');
        const asked = send('approve', id);
        await server.called('sign');
        await stack.replaceWorkers();
        expect((await asked).status).toMatchObject({
          state: 'TASK_STATE_INPUT_REQUIRED',
          message: { parts: [{}, { data: { approval: { callId: 'call-1-1', unknownOutcome: true } } }] },
        });
        expect(callsOf('sign')).toBe(1);
        const { key } = server.calls[0]!;
        expect(await effectsOf(id)).toMatchObject([{ name: 'desk_sign', outcome: 'unknown', key }]);
        const waiting = await stack.baton(
          'approvals',
          'list',
          '--url',
          stack.apis[0]!.url,
          '--token',
          tenant.token,
        );
        expect(waiting).toContain('desk_sign (server desk, again: its outcome is unknown)');
        const done = send('yes', id);
        await server.called('sign', 2);
        sign.release();
        expect((await done).status.state).toBe('TASK_STATE_COMPLETED');
        expect(provider.requests).toHaveLength(2);
        const [first, second] = server.calls.map(({ key }) => key);
        expect(first).toMatch(/^[0-9a-f-]{36}$/);
        expect(second).toBe(first);
        expect(await effectsOf(id)).toMatchObject([{ name: 'desk_sign', outcome: 'confirmed', key }]);
      },
    );

    nightlyIt('does not make a call that is refused', async () => {
      server.tools = [textTool('sign', 'signed')];
      provider.reply({ calls: [{ name: 'desk_sign', input: {} }] }, { text: 'I have left it unsigned.' });
      const { id } = await send('Sign it');
      expect((await send('no, not today', id)).status.state).toBe('TASK_STATE_COMPLETED');
      expect(callsOf('sign')).toBe(0);
      expect(JSON.stringify(provider.requests[1]?.body)).toContain('no, not today');
    });

    it('stores and logs no secret, whatever a tool and a model say of it', async () => {
      server.tools = [textTool('quote', `I was sent Bearer ${TOKEN}`)];
      const spelled = Buffer.from(`Bearer ${TOKEN}`).toString('base64');
      provider.reply(
        { calls: [{ name: 'desk_quote', input: { header: `Bearer ${TOKEN}` } }] },
        { text: ['It has ', TOKEN.slice(0, 5), TOKEN.slice(5), ` or ${spelled}.`] },
      );
      const task = await send('What were you sent?');
      expect(JSON.stringify(task)).toContain('It has [secret]');
      const found = await everything();
      for (const spelling of [TOKEN, spelled, Buffer.from(TOKEN).toString('hex')]) {
        expect(JSON.stringify(task)).not.toContain(spelling);
        expect(found.filter(([, text]) => text.includes(spelling)).map(([where]) => where)).toEqual([]);
      }
      expect(found.length).toBeGreaterThan(10);
    });

    nightlyIt('leaves no program behind when its worker is killed', async () => {
      const copy = { ...heldTool('copy', 'copied'), annotations: { readOnlyHint: true } };
      server.tools = [copy];
      const asks = { calls: [{ name: 'program_pid', input: {} }] };
      provider.reply(asks, { calls: [{ name: 'desk_copy', input: {} }] }, { text: 'Copied.' });
      const done = local.call('SendMessage', sendParams('Copy it'));
      const early = done.then((answer) =>
        Promise.reject(new Error(`it ended early: ${JSON.stringify(answer)}`)),
      );
      await Promise.race([server.called('copy'), early]);
      const { messages } = provider.requests[1]?.body as { messages: { role: string; content: string }[] };
      const pid = Number(messages.find(({ role }) => role === 'tool')?.content);
      expect([pid > 1, isRunning(pid)]).toEqual([true, true]);
      await stack.replaceWorkers();
      while (isRunning(pid)) await setTimeout(10);
      await Promise.race([server.called('copy', 2), early]);
      early.catch(() => undefined);
      copy.release();
      expect((await done).result?.task.status.state).toBe('TASK_STATE_COMPLETED');
    });

    nightlyIt('cancels its calls when the task is canceled', async () => {
      server.tools = [heldTool('copy')];
      provider.reply({ calls: [{ name: 'desk_copy', input: {} }] });
      const done = send('Copy it');
      await server.called('copy');
      const listed = await caller.call('ListTasks', { status: 'TASK_STATE_WORKING' });
      await caller.call('CancelTask', { id: listed.result?.tasks[0].id });
      await server.canceled('copy');
      expect((await done).status.state).toBe('TASK_STATE_CANCELED');
    });
  });

  describe('the agent of docs/start/first-agent.md', () => {
    const ROOT = join(__dirname, '../..');
    const programs: ChildProcess[] = [];
    afterAll(() => programs.forEach((program) => program.kill('SIGKILL')));

    /** Starts a program of the page at a free port. @returns its URL, as it says it */
    async function start(file: string, key: string): Promise<string> {
      const program = spawn(process.execPath, [join(ROOT, file), '0', key], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      programs.push(program);
      for await (const line of createInterface(program.stdout)) return line.slice(line.indexOf('http://'));
      throw new Error(`${file} ended before it listened`);
    }

    it('asks before it deletes, and obeys the person', async () => {
      const page =
        readFileSync(join(ROOT, 'docs/start/first-agent.md'), 'utf8').split('## Without an account')[1] ?? '';
      const [model, notes] = await Promise.all([
        start('test/support/model-provider/main.js', 'any-key'),
        start('test/support/mcp-server/main.js', 'any-token'),
      ]);
      await setSecret('openai', 'any-key', model);
      await setSecret('notes', 'any-token', notes);
      const file = join(folder, 'helper.yaml');
      const yaml = (/```yaml\n([^]*?)```/.exec(page)?.[1] ?? '')
        .replace('http://localhost:9292', new URL(model).origin)
        .replace('http://localhost:9393', new URL(notes).origin);
      const baton = (...args: string[]) =>
        stack.baton(...args, '--url', stack.apis[0]!.url, '--token', tenant.token);

      // A typo would let every call through.
      writeFileSync(file, yaml.replace('delete_*', 'deleet_*'));
      const line = yaml.split('\n').findIndex((text) => text.includes('delete_*')) + 1;
      await expect(baton('agents', 'apply', '--check-tools', '-f', file)).rejects.toThrow(
        `${file}:${line}: config.tools.mcp[0].approval[0]: "deleet_*" fits no tool of the MCP server "notes". ` +
          'It has time, list_notes, add_note, delete_note.\nNothing was written.',
      );
      expect(await baton('agents', 'list')).not.toContain('helper');

      writeFileSync(file, yaml);
      await baton('agents', 'apply', '--check-tools', '-f', file);
      const ask = (name: string): Promise<string> => {
        const [, text = ''] = new RegExp(`node bin/baton.cjs send helper '(use ${name}.*)'`).exec(page) ?? [];
        expect(text).not.toBe('');
        return baton('send', 'helper', text);
      };
      expect(await ask('notes_add_note')).toContain('This is note 1.');
      const waiting = async (): Promise<string> => {
        const asked = JSON.parse(await baton('approvals', 'list', '--json')) as {
          request_id: string;
          approvals: { tool: string }[];
        }[];
        expect(asked.map(({ approvals }) => approvals.map(({ tool }) => tool))).toEqual([
          ['notes_delete_note'],
        ]);
        return asked[0]!.request_id;
      };

      await ask('notes_delete_note');
      const refused = await waiting();
      await baton('approvals', 'reject', refused, '--reason', 'Not yet');
      await baton('tasks', 'watch', refused);
      expect(await baton('tasks', 'show', refused)).toContain('Not yet');

      await ask('notes_delete_note');
      const approved = await waiting();
      await baton('approvals', 'approve', approved);
      await baton('tasks', 'watch', approved);
      const shown = await baton('tasks', 'show', approved);
      expect(shown).toContain('Note 1 is gone.');
      // Why it took what it took, in the same place.
      expect(shown).toMatch(/openai\/any .* calls notes_delete_note/);
    });
  });
});

/** @param url where it may be sent to */
async function setSecret(name: string, value: string, url: string): Promise<void> {
  const file = join(folder, 'secret');
  writeFileSync(file, value);
  const { origin } = new URL(url);
  await stack.baton('secrets', 'set', name, '--tenant', tenant.slug, '--file', file, '--origin', origin);
}

/** An agent with the tools of one server, and of these. */
const clerk = (...others: object[]) => ({
  name: 'Clerk',
  description: 'Does paperwork.',
  runtime: 'llm',
  config: {
    model: 'openai-compatible/clerk-1',
    baseUrl: provider.url,
    tools: {
      mcp: [
        {
          ...PATIENT,
          name: 'desk',
          url: server.url,
          headers: { Authorization: { secret: 'desk', prefix: 'Bearer ' } },
          approval: ['sign'],
          neverRepeat: ['pay'],
        },
        ...others,
      ],
    },
  },
});

/** Every row of every table of the database, and the logs of all processes. */
async function everything(): Promise<[where: string, text: string][]> {
  const client = new Client({ connectionString: stack.database.url });
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
  const tables = await client.query<{ name: string }>(
    `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public'`,
  );
  const found: [string, string][] = [...stack.apis, ...stack.workers].map(({ kind, log }) => [kind, log()]);
  for (const { name } of tables.rows) {
    const { rows } = await client.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
    found.push([name, rows.map(({ row }) => row).join('\n')]);
  }
  await client.end();
  return found;
}

/** The ledger of a task. */
const effectsOf = async (id: string): Promise<object[]> =>
  (await stack.rest(tenant.token).get(`/v1/effects?task=${id}`)).effects;

const callsOf = (tool: string): number => server.calls.filter((call) => call.tool === tool).length;
const send = async (text: string, taskId?: string) => {
  const params = sendParams(text, taskId === undefined ? {} : { taskId });
  return (await caller.call('SendMessage', params)).result!.task;
};
