import { loadEnvironment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { join } from 'node:path';
import {
  type McpServerOptions,
  type TestMcpServer,
  startMcpServer,
} from '../../../../../../../test/support/mcp-server/mcp-server.js';
import { heldTool, says, textTool } from '../../../../../../../test/support/mcp-server/script.js';
import { Outbound } from '../../../../outbound/outbound.js';
import { firstTurn } from '../../../../testing/turns.js';
import { llmConfig } from '../../config.js';
import type { AgentTool, OpenTools, ToolResult } from '../agent-tool.js';
import { McpTools } from './mcp-tools.js';

const STDIO_SERVER = join(__dirname, '../../../../../../../test/support/mcp-server/stdio-server.mjs');
const never = new AbortController().signal;

describe('MCP tools', () => {
  const outbound = new Outbound(['127.0.0.1']);
  const secrets = new Map([['tracker', 's3cret']]);
  const cleanup: (() => Promise<void>)[] = [];
  let stdioAllow = '';

  afterEach(async () => {
    stdioAllow = '';
    for (const done of cleanup.splice(0).reverse()) await done();
  });
  afterAll(() => outbound.onApplicationShutdown());

  async function serve(options: McpServerOptions): Promise<TestMcpServer> {
    const server = await startMcpServer(options);
    cleanup.push(() => server.stop());
    return server;
  }

  async function open(servers: object[], signal = never): Promise<OpenTools> {
    const reader = { get: (_tenant: string, name: string) => Promise.resolve(secrets.get(name)) };
    const DATABASE_URL = 'postgres://baton@db/baton';
    const environment = loadEnvironment({ DATABASE_URL, MCP_STDIO_ALLOW: stdioAllow });
    const source = new McpTools(outbound, reader, environment, Logger.silent());
    const config = llmConfig({ model: 'openai/m', tools: { mcp: servers } });
    const opened = await source.open(firstTurn('hi'), config, signal);
    cleanup.push(() => opened.close());
    return opened;
  }

  const names = ({ tools }: OpenTools): string[] => tools.map(({ name }) => name);

  function tool({ tools }: OpenTools, name: string): AgentTool {
    const found = tools.find((each) => each.name === name);
    if (!found) throw new Error(`no ${name} among ${tools.map((each) => each.name).join(', ')}`);
    return found;
  }

  const call = (opened: OpenTools, name: string, input = {}, signal = never): Promise<ToolResult> =>
    tool(opened, name).execute(input, { id: 'call-1', signal });

  describe.each([
    { transport: 'http', json: false },
    { transport: 'http', json: true },
    { transport: 'sse', json: false },
  ] as const)('of a server over $transport (plain JSON: $json)', (way) => {
    it('are listed and called, with headers from secrets', async () => {
      const server = await serve({
        ...way,
        authorization: 'Bearer s3cret',
        tools: [{ ...textTool('find', 'found it'), description: 'Finds issues.' }],
      });
      const headers = { Authorization: { secret: 'tracker', prefix: 'Bearer ' } };
      const opened = await open([{ name: 'issues', url: server.url, headers }]);
      expect(opened.tools).toMatchObject([
        { name: 'issues_find', description: 'Finds issues.', needsApproval: false, repeat: 'again' },
      ]);
      const result = await call(opened, 'issues_find', { text: 'bug' });
      expect(result).toEqual({ ok: true, content: 'found it', text: 'found it' });
      expect(server.calls).toMatchObject([{ tool: 'find', input: { text: 'bug' } }]);
      await opened.close();
      await server.left();
    });

    it('are told when a call is canceled', async () => {
      const server = await serve({ ...way, tools: [heldTool('wait')] });
      const opened = await open([{ name: 'a', url: server.url }]);
      const stop = new AbortController();
      const calling = call(opened, 'a_wait', {}, stop.signal);
      await server.called('wait');
      stop.abort('canceled');
      await expect(calling).rejects.toBe('canceled');
      await server.canceled('wait');
    });

    it('are called again when the server is restarted in the middle of a call, unless that must not be', async () => {
      const held = heldTool('wait');
      const server = await serve({ ...way, tools: [held] });
      const { url } = server;
      const opened = await open([
        { name: 'a', url },
        { name: 'b', url, neverRepeat: ['wait'] },
      ]);
      const calling = Promise.all([call(opened, 'a_wait'), call(opened, 'b_wait')]);
      await server.called('wait', 2);
      await server.stop();
      held.release();
      await server.start();
      const unknown =
        'The call of wait at b failed: the connection broke, and what became of it is not known';
      expect(await calling).toMatchObject([
        { ok: true, content: 'done' },
        { ok: false, content: unknown },
      ]);
      expect(server.calls).toHaveLength(3);
    });

    it('fail for the model when the server is gone', async () => {
      const server = await serve({ ...way, tools: [textTool('find', 'found it')] });
      const opened = await open([{ name: 'a', url: server.url }]);
      await server.stop();
      const gone = 'The call of find at a failed: it refused the connection';
      expect(await call(opened, 'a_find')).toMatchObject({ ok: false, content: gone });
    });

    it('work on after the server was restarted between two calls', async () => {
      const server = await serve({ ...way, tools: [textTool('find', 'found it')] });
      const opened = await open([{ name: 'a', url: server.url }]);
      await call(opened, 'a_find');
      await server.stop();
      await server.start();
      expect(await call(opened, 'a_find')).toMatchObject({ ok: true, content: 'found it' });
      expect(server.connections).toBe(2);
    });
  });

  it('are those that the definition allows, each with what it says of them', async () => {
    const tools = ['read_file', 'read_folder', 'write_file', 'delete_file'].map((name) =>
      textTool(name, 'ok'),
    );
    const server = await serve({ tools, pageSize: 2 });
    const url = server.url;
    const opened = await open([
      { name: 'all', url },
      {
        name: 'some',
        url,
        allow: ['read_*', 'write_file'],
        approval: ['write_*'],
        neverRepeat: ['write_file'],
      },
    ]);
    expect(names(opened).filter((name) => name.startsWith('all'))).toHaveLength(4);
    expect(opened.tools.filter(({ name }) => name.startsWith('some'))).toMatchObject([
      { name: 'some_read_file', needsApproval: false, repeat: 'again' },
      { name: 'some_read_folder', needsApproval: false, repeat: 'again' },
      { name: 'some_write_file', needsApproval: true, repeat: 'never' },
    ]);
  });

  it('stay as they are while the turn goes on', async () => {
    const server = await serve({ tools: [textTool('old', 'still here')] });
    const opened = await open([{ name: 'a', url: server.url }]);
    const { tools } = server;
    await server.changeTools([textTool('new', 'here I am'), ...tools]);
    expect(names(opened)).toEqual(['a_old']);
    expect(await call(opened, 'a_old')).toMatchObject({ content: 'still here' });
    expect(names(await open([{ name: 'a', url: server.url }]))).toEqual(['a_new', 'a_old']);
  });

  it('that fail say so to the model', async () => {
    const server = await serve({
      tools: [
        { name: 'refuse', call: () => ({ ...says('no such issue'), isError: true }) },
        {
          name: 'throw',
          call: () => {
            throw new Error('out of order');
          },
        },
      ],
    });
    const opened = await open([{ name: 'a', url: server.url }]);
    expect(await call(opened, 'a_refuse')).toMatchObject({ ok: false, content: 'no such issue' });
    expect(await call(opened, 'a_throw')).toMatchObject({
      ok: false,
      content: expect.stringContaining('out of order'),
    });
  });

  it('that are slow time out, unless they show progress', async () => {
    const busy = {
      name: 'busy',
      call: async (_input: unknown, { progress }: { progress: (done: number) => Promise<void> }) => {
        const until = Date.now() + 600;
        for (let i = 1; Date.now() < until; i++) {
          await progress(i);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        return says('finished');
      },
    };
    const server = await serve({ tools: [heldTool('wait'), busy] });
    const opened = await open([{ name: 'a', url: server.url, timeout: '300ms' }]);
    expect(await call(opened, 'a_wait')).toEqual({
      ok: false,
      content: 'The call of wait at a failed: it gives no answer in time',
    });
    await server.canceled('wait');
    expect(await call(opened, 'a_busy')).toMatchObject({ ok: true, content: 'finished' });
  });

  describe('of a server that can not be used', () => {
    it.each([
      [{ url: 'http://10.0.0.1/mcp' }, `The MCP server "a" can't be used: `],
      [{ command: '/nowhere/server' }, `The MCP server "a" can't be used: its command was not found`],
      [
        { url: 'https://mcp.example/', headers: { 'X-Key': { secret: 'other' } } },
        `The MCP server "a" can't be used: the secret "other", which X-Key needs, does not exist`,
      ],
      [{ command: 'node' }, 'the operator of this server does not allow the command "node"'],
    ])('%j: the turn fails with a plain reason', async (server, reason) => {
      stdioAllow = 'other, /nowhere/server';
      await expect(open([{ name: 'a', ...server }])).rejects.toThrow(reason);
    });

    it('is not there: so is the turn, or without its tools if they are optional', async () => {
      const server = await serve({ tools: [textTool('find', 'found it')] });
      const gone = await serve({ tools: [] });
      await gone.stop();
      const servers = [
        { name: 'a', url: gone.url, optional: true },
        { name: 'b', url: server.url },
      ];
      const opened = await open(servers);
      expect(names(opened)).toEqual(['b_find']);
      await opened.close();
      const reason = `The MCP server "a" can't be used: it refused the connection`;
      await expect(open([{ name: 'a', url: gone.url }, ...servers.slice(1)])).rejects.toThrow(reason);
      await server.left();
    });

    it('names the credentials, never their value', async () => {
      const server = await serve({ tools: [], authorization: 'Bearer other' });
      const headers = { Authorization: { secret: 'tracker', prefix: 'Bearer ' } };
      const opening = open([{ name: 'a', url: server.url, headers }]);
      await expect(opening).rejects.toThrow(`it does not accept the credentials (HTTP 401)`);
      await expect(opening).rejects.not.toThrow(/s3cret/);
      secrets.set('broken', 'two\nlines of s3cret');
      const broken = open([{ name: 'a', url: server.url, headers: { 'X-Key': { secret: 'broken' } } }]);
      await expect(broken).rejects.toThrow('the value of its header X-Key holds characters');
    });
  });

  describe('of a command', () => {
    beforeEach(() => {
      stdioAllow = `NOTES_TOKEN= ${process.execPath} ${STDIO_SERVER}`;
    });
    const notes = { name: 'notes', command: process.execPath, args: [STDIO_SERVER, 'extra'] };
    const answer = async (opened: OpenTools, name: string): Promise<unknown> =>
      JSON.parse(String((await call(opened, name)).content));

    it('get the arguments and variables that they are given, and nothing of the platform', async () => {
      process.env.BATON_MASTER_KEY_TEST = 'k';
      const opened = await open([{ ...notes, env: { NOTES_TOKEN: { secret: 'tracker' } } }]);
      expect(await answer(opened, 'notes_arguments')).toEqual(['extra']);
      const environment = (await answer(opened, 'notes_environment')) as Record<string, string>;
      expect(environment.NOTES_TOKEN).toBe('s3cret');
      expect(Object.keys(environment).filter((name) => /BATON|DATABASE|REDIS|TEST/.test(name))).toEqual([]);
    });

    it('end with the turn, and with them whatever they have started', async () => {
      const opened = await open([notes]);
      const { pid, child } = (await answer(opened, 'notes_stay')) as { pid: number; child: number };
      expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
      await opened.close();
      await untilGone(pid);
      await untilGone(child);
    });

    it('end with the turn what a server that has crashed had started', async () => {
      const opened = await open([notes]);
      const { pid, child } = (await answer(opened, 'notes_stay')) as { pid: number; child: number };
      process.kill(pid, 'SIGKILL');
      await untilGone(pid);
      await opened.close();
      await untilGone(child);
    });

    it('fail for the model when they crash, and are started again', async () => {
      const opened = await open([notes]);
      expect(await call(opened, 'notes_crash')).toMatchObject({ ok: false });
      expect(await answer(opened, 'notes_arguments')).toEqual(['extra']);
    });
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function untilGone(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setImmediate(resolve));
}
