import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type ModernServerOptions,
  type ModernTool,
  startModernServer,
} from '../../../../../../../test/support/mcp-server/modern-server.js';
import { NO_ACCESS_TOKENS, turnSecrets } from '../../../../../../../test/support/agents/turns.js';
import { textTool } from '../../../../../../../test/support/mcp-server/script.js';
import { McpBench, call, names } from './mcp-tools.fixture.js';

const bench = new McpBench();
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const says = (text: string) => ({ content: [{ type: 'text', text }] });
const find: ModernTool = { name: 'find', description: 'Finds issues.', call: () => says('found it') };

async function serve(options: ModernServerOptions) {
  const server = await startModernServer(options);
  bench.atReset(() => server.stop());
  return server;
}

describe('a server of MCP 2026-07-28', () => {
  it.each([{ json: false }, { json: true }])('is called without a handshake (%j)', async (way) => {
    const server = await serve({ ...way, tools: [find], authorization: 'Bearer s3cret' });
    const headers = { Authorization: { secret: 'tracker', prefix: 'Bearer ' } };
    const opened = await bench.open([{ name: 'issues', url: server.url, headers }]);
    expect(opened.tools).toMatchObject([
      { name: 'issues_find', description: 'Finds issues.', repeat: 'ask' },
    ]);
    expect(await call(opened, 'issues_find', { text: 'bug' })).toEqual({
      ok: true,
      content: 'found it',
      text: 'found it',
    });
    expect(server.methods).toEqual(['server/discover', 'tools/list', 'tools/call']);
    const [{ input, meta, headers: sent }] = server.calls as [(typeof server.calls)[0]];
    expect(input).toEqual({ text: 'bug' });
    expect(meta).toMatchObject({ 'baton/effectKey': 'key-1' });
    expect(sent).toMatchObject({
      'idempotency-key': 'key-1',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'find',
    });
  });

  it('is called with a sign-in only when the call is recorded', async () => {
    const server = await serve({ tools: [find], authorization: 'Bearer sesame' });
    const noted: unknown[] = [];
    let record: (isSignedIn: boolean | PromiseLike<boolean>) => void = () => undefined;
    const tokens = {
      ...NO_ACCESS_TOKENS,
      get: () => Promise.resolve('sesame'),
      noteCall: (_: unknown, { url }: { url: string }, call: object) => {
        noted.push([url, call]);
        return new Promise<boolean>((resolve) => (record = resolve));
      },
    };
    const secrets = turnSecrets({}, undefined, tokens);
    const opened = await bench.open([{ name: 's', url: server.url, oauth: {} }], { secrets });
    const called = call(opened, 's_find', { text: 'my own words' });
    await new Promise((resolve) => setImmediate(resolve));
    expect([noted, server.calls.length]).toEqual([
      [[server.url, { kind: 'tool', name: 'find', server: 's', callId: 'call-1' }]],
      0,
    ]);
    record(true);
    expect(await called).toMatchObject({ ok: true });
    const down = call(opened, 's_find');
    record(Promise.reject(new Error('Postgres is away')));
    await expect(down).rejects.toThrow('Postgres is away');
    const ended = call(opened, 's_find');
    record(false);
    await expect(ended).rejects.toThrow('there is no sign-in at');
    expect(server.calls).toHaveLength(1);
  });

  it('is asked again for its revision, if it was too busy to answer', async () => {
    const server = await serve({ tools: [find], busyFor: 1 });
    expect(names(await bench.open([{ name: 's', url: server.url, connectTimeout: '1s' }]))).toEqual([
      's_find',
    ]);
    expect(server.methods).toEqual(['server/discover', 'initialize', 'server/discover', 'tools/list']);
  });

  it('lists all pages of its tools', async () => {
    const tools = ['a', 'b', 'c'].map((name) => ({ ...find, name }));
    const server = await serve({ tools, pageSize: 2 });
    expect(names(await bench.open([{ name: 's', url: server.url }]))).toEqual(['s_a', 's_b', 's_c']);
  });

  it('gets names and parameters as headers, also those that no header can have as they are', async () => {
    const properties = {
      region: { type: 'string', 'x-mcp-header': 'Region' },
      at: { type: 'object', properties: { zone: { type: 'integer', 'x-mcp-header': 'Zone' } } },
      dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
    };
    const server = await serve({
      tools: [{ ...find, name: 'suche-ö', inputSchema: { type: 'object', properties } }],
    });
    const opened = await bench.open([{ name: 's', url: server.url }]);
    await call(opened, names(opened)[0] ?? '', { region: ' 世界', at: { zone: -7 } });
    const { headers } = server.calls[0] ?? {};
    expect(headers).toMatchObject({
      'mcp-name': '=?base64?c3VjaGUtw7Y=?=',
      'mcp-param-region': '=?base64?IOS4lueVjA==?=',
      'mcp-param-zone': '-7',
    });
    expect(headers).not.toHaveProperty('mcp-param-dry');
  });

  it.each([
    ['no name of a header', { a: { type: 'string', 'x-mcp-header': 'a b' } }],
    ['a number', { a: { type: 'number', 'x-mcp-header': 'A' } }],
    ['twice', { a: { type: 'string', 'x-mcp-header': 'A' }, b: { type: 'string', 'x-mcp-header': 'a' } }],
    ['in a list', { a: { type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } } }],
    ['in a choice', { a: { anyOf: [{ type: 'string', 'x-mcp-header': 'A' }] } }],
  ])('loses a tool alone that marks a parameter wrongly: %s', async (_, properties) => {
    const inputSchema = { type: 'object', properties };
    const server = await serve({ tools: [{ ...find, name: 'odd', inputSchema }, find] });
    expect(names(await bench.open([{ name: 's', url: server.url }]))).toEqual(['s_find']);
  });

  it('gets the cancel of a call when its answer is closed', async () => {
    const server = await serve({
      tools: [{ name: 'wait', call: (_, { signal }) => once(signal, 'abort').then(() => says('too late')) }],
    });
    const opened = await bench.open([{ name: 's', url: server.url }]);
    const stop = new AbortController();
    const calling = call(opened, 's_wait', {}, stop.signal);
    await server.called('wait');
    stop.abort('canceled');
    await expect(calling).rejects.toBe('canceled');
    await server.until(() => server.calls[0]?.canceled === true);
  });

  it('has as long as it shows progress', async () => {
    const server = await serve({
      tools: [
        { name: 'wait', call: (_, { signal }) => once(signal, 'abort').then(() => says('too late')) },
        {
          name: 'busy',
          call: async (_, { progress }) => {
            // Longer than the other call may take, which was made after this one.
            for (let done = 1; !server.calls.some(({ canceled }) => canceled); done++) {
              progress(done);
              await new Promise((resolve) => setTimeout(resolve, 20));
            }
            return says('finished');
          },
        },
      ],
    });
    const opened = await bench.open([{ name: 's', url: server.url, timeout: '1s' }]);
    const finished = call(opened, 's_busy');
    await server.called('busy');
    expect(await call(opened, 's_wait')).toEqual({
      ok: false,
      content: 'The call of wait at s failed: it gives no answer in time (timeout is 1s)',
    });
    expect(await finished).toMatchObject({ ok: true, content: 'finished' });
  });

  it('passes its errors to the model', async () => {
    const refuse: ModernTool = { name: 'refuse', call: () => ({ ...says('no such issue'), isError: true }) };
    const fail: ModernTool = {
      name: 'fail',
      call: () => {
        throw new Error('out of order');
      },
    };
    const odd: ModernTool = { name: 'odd', call: () => ({ resultType: 'riddle' }) };
    const server = await serve({ tools: [refuse, fail, odd] });
    const opened = await bench.open([{ name: 's', url: server.url }]);
    const results = ['s_refuse', 's_fail', 's_odd'].map((name) => call(opened, name));
    expect(await Promise.all(results)).toMatchObject([
      { ok: false, content: 'no such issue' },
      {
        ok: false,
        content: 'The call of fail at s failed: it answers with the error -32603: "out of order"',
      },
      { ok: false, content: expect.stringContaining('a result of the type "riddle"') },
    ]);
  });

  it('that breaks off in the middle of a call is called again where the settings allow it', async () => {
    const server = await serve({
      tools: [
        {
          name: 'wait',
          call: (_, { signal }) =>
            server.calls.length > 3 ? says('done') : once(signal, 'abort').then(() => says('too late')),
        },
      ],
    });
    const { url } = server;
    const opened = await bench.open([
      { name: 'a', url, mayRepeat: ['wait'] },
      { name: 'b', url, neverRepeat: ['wait'] },
      { name: 'c', url },
    ]);
    const person = call(opened, 'c_wait').catch((error: unknown) => error);
    const calling = Promise.all([call(opened, 'a_wait'), call(opened, 'b_wait')]);
    await server.called('wait', 3);
    server.breakConnections();
    expect(await calling).toMatchObject([
      { ok: true, content: 'done' },
      {
        ok: false,
        content:
          'The call of wait at b failed: the connection broke, so the outcome of the call is not known',
      },
    ]);
    expect(await person).toMatchObject({ name: 'UndecidedCall' });
    expect(server.calls.map(({ meta }) => meta['baton/effectKey'])).toEqual(Array(4).fill('key-1'));
  });
});

describe('the revision of a server', () => {
  it('is asked once: one that begins with initialize is not asked again', async () => {
    const server = await bench.serve({ tools: [textTool('find', 'found it')] });
    const source = bench.source();
    const open = () => bench.openWith(source, [{ name: 's', url: server.url }]);
    const first = await open();
    expect(await call(first, 's_find')).toMatchObject({ ok: true });
    expect(await call(await open(), 's_find')).toMatchObject({ ok: true });
    expect(server.refusedPosts).toBe(1);
  });

  it('may change: a modern server that was replaced by an older one works', async () => {
    const modern = await serve({ tools: [find] });
    const port = Number(new URL(modern.url).port);
    const source = bench.source();
    const settings = [{ name: 's', url: modern.url }];
    await bench.openWith(source, settings);
    await modern.stop();
    const older = await bench.serve({ tools: [textTool('find', 'older')], port });
    expect(older.url).toBe(modern.url);
    expect(await call(await bench.openWith(source, settings), 's_find')).toMatchObject({ content: 'older' });
  });

  it('may be unknown to Baton', async () => {
    const server = http.createServer((request, response) => {
      request.resume();
      response.writeHead(400, { 'content-type': 'application/json' });
      const data = { supported: ['2027-03-01'], requested: '2026-07-28' };
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32022, message: 'no', data } }));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    bench.atReset(async () => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    await expect(bench.open([{ name: 's', url }])).rejects.toThrow(
      `The MCP server "s" cannot be used: it supports no version of MCP that Baton supports (2027-03-01)`,
    );
  });
});
