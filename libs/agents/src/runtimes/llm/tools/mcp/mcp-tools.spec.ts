import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type ScriptedTool,
  heldTool,
  says,
  textTool,
} from '../../../../../../../test/support/mcp-server/script.js';
import { McpBench, call, names } from './mcp-tools.fixture.js';

const bench = new McpBench();
afterEach(() => bench.reset());
afterAll(() => bench.stop());

describe('MCP tools', () => {
  describe.each([
    { transport: 'http', json: false },
    { transport: 'http', json: true },
    { transport: 'sse', json: false },
  ] as const)('of a server over $transport (plain JSON: $json)', (way) => {
    it('are listed and called, with headers from secrets', async () => {
      const server = await bench.serve({
        ...way,
        authorization: 'Bearer s3cret',
        tools: [{ ...textTool('find', 'found it'), description: 'Finds issues.' }],
      });
      const headers = { Authorization: { secret: 'tracker', prefix: 'Bearer ' } };
      const opened = await bench.open([{ name: 'issues', url: server.url, headers }]);
      expect(opened.tools).toMatchObject([
        { name: 'issues_find', description: 'Finds issues.', needsApproval: false, repeat: 'ask' },
      ]);
      const result = await call(opened, 'issues_find', { text: 'bug' });
      expect(result).toEqual({ ok: true, content: 'found it', text: 'found it' });
      expect(server.calls).toMatchObject([
        { tool: 'find', input: { text: 'bug' }, key: 'key-1', header: 'key-1' },
      ]);
      await opened.close();
      await server.left();
    });

    it('get a notification when a call is canceled', async () => {
      const server = await bench.serve({ ...way, tools: [heldTool('wait')] });
      const opened = await bench.open([{ name: 'a', url: server.url }]);
      const stop = new AbortController();
      const calling = call(opened, 'a_wait', {}, stop.signal);
      await server.called('wait');
      stop.abort('canceled');
      await expect(calling).rejects.toBe('canceled');
      await server.canceled('wait');
    });

    it('are called again when the server is restarted in the middle of a call, where the settings allow it', async () => {
      const held = heldTool('wait');
      const server = await bench.serve({ ...way, tools: [held] });
      const { url } = server;
      const opened = await bench.open([
        { name: 'a', url, mayRepeat: ['wait'] },
        { name: 'b', url, neverRepeat: ['wait'] },
        { name: 'c', url },
      ]);
      const person = call(opened, 'c_wait').catch((error: unknown) => error);
      const calling = Promise.all([call(opened, 'a_wait'), call(opened, 'b_wait')]);
      await server.called('wait', 3);
      await server.stop();
      held.release();
      await server.start();
      const unknown =
        'The call of wait at b failed: the connection broke, so the outcome of the call is not known';
      expect(await calling).toMatchObject([
        { ok: true, content: 'done' },
        { ok: false, content: unknown },
      ]);
      expect(await person).toMatchObject({ name: 'UndecidedCall' });
      expect(server.calls.map(({ key }) => key)).toEqual(['key-1', 'key-1', 'key-1', 'key-1']);
    });

    it('fail for the model when the server is gone', async () => {
      const server = await bench.serve({ ...way, tools: [textTool('find', 'found it')] });
      const opened = await bench.open([{ name: 'a', url: server.url, mayRepeat: 'all' }]);
      await server.stop();
      const gone = 'The call of find at a failed: it refused the connection';
      expect(await call(opened, 'a_find')).toMatchObject({ ok: false, content: gone });
    });

    it('work on after the server was restarted between two calls', async () => {
      const server = await bench.serve({ ...way, tools: [textTool('find', 'found it')] });
      const opened = await bench.open([{ name: 'a', url: server.url, mayRepeat: 'all' }]);
      await call(opened, 'a_find');
      await server.stop();
      await server.start();
      expect(await call(opened, 'a_find')).toMatchObject({ ok: true, content: 'found it' });
      expect(server.connections).toBe(2);
    });
  });

  it('are those that the definition allows, with its settings for each', async () => {
    const tools = ['read_file', 'read_folder', 'write_file', 'delete_file'].map((name) =>
      textTool(name, 'ok'),
    );
    const server = await bench.serve({ tools, pageSize: 2 });
    const url = server.url;
    const opened = await bench.open([
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
      { name: 'some_read_file', needsApproval: false, repeat: 'ask' },
      { name: 'some_read_folder', needsApproval: false, repeat: 'ask' },
      { name: 'some_write_file', needsApproval: true, repeat: 'never' },
    ]);
  });

  it.each([
    [{ readOnlyHint: true }, {}, 'again'],
    [{ idempotentHint: true }, {}, 'again'],
    [{ idempotentHint: true }, { neverRepeat: ['find'] }, 'never'],
    [{ destructiveHint: false }, {}, 'ask'],
    [{}, { mayRepeat: ['f*'] }, 'again'],
    [{}, { mayRepeat: ['f*'], neverRepeat: ['find'] }, 'never'],
  ])(
    'with the hints %j and the settings %j: an unknown outcome means "%s"',
    async (annotations, config, repeat) => {
      const server = await bench.serve({ tools: [{ ...textTool('find', 'found it'), annotations }] });
      const { tools } = await bench.open([{ name: 'a', url: server.url, ...config }]);
      expect(tools).toMatchObject([{ name: 'a_find', repeat }]);
    },
  );

  it('stay as they are while the turn goes on', async () => {
    const server = await bench.serve({ tools: [textTool('old', 'still here')] });
    const opened = await bench.open([{ name: 'a', url: server.url }]);
    const { tools } = server;
    await server.changeTools([textTool('new', 'here I am'), ...tools]);
    expect(names(opened)).toEqual(['a_old']);
    expect(await call(opened, 'a_old')).toMatchObject({ content: 'still here' });
    expect(names(await bench.open([{ name: 'a', url: server.url }]))).toEqual(['a_new', 'a_old']);
  });

  it('are described as OpenAI takes them, where the model is one of theirs', async () => {
    const server = await bench.serve({
      tools: [{ ...textTool('find', 'found'), description: 'x'.repeat(2000) }],
    });
    const lengths = ['openai/m', 'anthropic/m'].map(async (model) => {
      const { tools } = await bench.open([{ name: 'a', url: server.url }], { model });
      expect(tools[0]?.inputSchema).toEqual({ type: 'object', properties: {} });
      return tools[0]?.description.length;
    });
    expect(await Promise.all(lengths)).toEqual([1024, 2000]);
  });

  it('that fail say so to the model', async () => {
    const server = await bench.serve({
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
    const opened = await bench.open([{ name: 'a', url: server.url }]);
    expect(await call(opened, 'a_refuse')).toMatchObject({ ok: false, content: 'no such issue' });
    expect(await call(opened, 'a_throw')).toMatchObject({
      ok: false,
      content: expect.stringContaining('out of order'),
    });
  });

  it('report their progress, by a message or by its numbers', async () => {
    const report: ScriptedTool = {
      name: 'report',
      call: async (_input, { progress }) => {
        await progress(1);
        await progress(2, 'half done');
        return says('finished');
      },
    };
    const server = await bench.serve({ tools: [report] });
    const [tool] = (await bench.open([{ name: 'a', url: server.url }])).tools;
    const said: string[] = [];
    await tool?.execute(
      {},
      {
        id: 'call-1',
        key: 'key-1',
        lane: 1,
        signal: new AbortController().signal,
        report: (text) => void said.push(text),
      },
    );
    expect(said).toEqual(['1', 'half done']);
  });

  it('that are slow time out, unless they show progress', async () => {
    const busy: ScriptedTool = {
      name: 'busy',
      call: async (_input, { progress }) => {
        // Longer than the other call may take, which was made after this one.
        for (let done = 1; !server.calls.some(({ canceled }) => canceled); done++) {
          await progress(done);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        return says('finished');
      },
    };
    const server = await bench.serve({ tools: [heldTool('wait'), busy] });
    const opened = await bench.open([{ name: 'a', url: server.url, timeout: '1s' }]);
    const finished = call(opened, 'a_busy');
    await server.called('busy');
    expect(await call(opened, 'a_wait')).toEqual({
      ok: false,
      content: 'The call of wait at a failed: it gives no answer in time (timeout is 1s)',
    });
    expect(await finished).toMatchObject({ ok: true, content: 'finished' });
  });

  it('that show progress for ever end after the total time, with a cancel to the server', async () => {
    const chatty: ScriptedTool = {
      name: 'chatty',
      call: async (_input, { progress }) => {
        for (let done = 1; !server.calls.some(({ canceled }) => canceled); done++) {
          await progress(done);
          await new Promise((resolve) => setTimeout(resolve, 20));
        }
        return says('too late');
      },
    };
    const server = await bench.serve({ tools: [chatty] });
    const opened = await bench.open([{ name: 'a', url: server.url, timeout: '30s', totalTimeout: '1s' }]);
    expect(await call(opened, 'a_chatty')).toEqual({
      ok: false,
      content: 'The call of chatty at a failed: it gives no answer in time (totalTimeout is 1s)',
    });
    await server.canceled('chatty');
    expect(server.calls).toMatchObject([{ canceled: true }]);
  });

  describe('of a server that cannot be used', () => {
    it.each([
      [{ url: 'http://10.0.0.1/mcp' }, `The MCP server "a" cannot be used: `],
      [{ command: '/nowhere/server' }, `The MCP server "a" cannot be used: its command was not found`],
      [
        { url: 'https://mcp.example/', headers: { 'X-Key': { secret: 'other' } } },
        `The MCP server "a" cannot be used: the secret "other", which X-Key needs, does not exist`,
      ],
      [{ command: 'node' }, 'the operator of this server does not allow the command "node"'],
    ])('%j: the turn fails with a plain reason', async (server, reason) => {
      bench.stdioAllow = 'other, /nowhere/server';
      await expect(bench.open([{ name: 'a', ...server }])).rejects.toThrow(reason);
    });

    it('is not there: so is the turn, or without its tools if they are optional', async () => {
      const server = await bench.serve({ tools: [textTool('find', 'found it')] });
      const gone = await bench.serve({ tools: [] });
      await gone.stop();
      const servers = [
        { name: 'a', url: gone.url, optional: true },
        { name: 'b', url: server.url },
      ];
      const opened = await bench.open(servers);
      expect(names(opened)).toEqual(['b_find']);
      await opened.close();
      const reason = `The MCP server "a" cannot be used: it refused the connection`;
      await expect(bench.open([{ name: 'a', url: gone.url }, ...servers.slice(1)])).rejects.toThrow(reason);
      await server.left();
    });

    it.each(['http', 'sse'])('names a server that does not answer in time, over %s', async (transport) => {
      const silent = createServer(() => undefined).listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}/mcp`;
      const opening = bench.open([{ name: 'a', url, transport, connectTimeout: '100ms' }]);
      await expect(opening).rejects.toThrow(`The MCP server "a" cannot be used: it gives no answer in time`);
      silent.closeAllConnections();
      silent.close();
    });

    it('names the credentials, never their value', async () => {
      const server = await bench.serve({ tools: [], authorization: 'Bearer other' });
      const headers = { Authorization: { secret: 'tracker', prefix: 'Bearer ' } };
      const opening = bench.open([{ name: 'a', url: server.url, headers }]);
      await expect(opening).rejects.toThrow(`it does not accept the credentials (HTTP 401)`);
      await expect(opening).rejects.not.toThrow(/s3cret/);
      bench.secrets.set('broken', 'two\nlines of s3cret');
      const broken = bench.open([{ name: 'a', url: server.url, headers: { 'X-Key': { secret: 'broken' } } }]);
      await expect(broken).rejects.toThrow('the value of its header X-Key holds characters');
    });
  });
});
