import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { textTool } from '../../../../../../../test/support/mcp-server/script.js';
import { listPages } from './list-pages.js';
import { ToolList } from './tool-list.js';
import { McpBench, call, names } from './mcp-tools.fixture.js';

const bench = new McpBench();
afterEach(() => bench.reset());
afterAll(() => bench.stop());

interface Asked {
  id: unknown;
  method: string;
  params: { cursor?: string; name?: string };
}

type Answer = (response: http.ServerResponse, asked: Asked) => void;

const LOOK = { name: 'look', inputSchema: { type: 'object' } };

const json = (response: http.ServerResponse, { id }: Asked, result: object): void => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...result } }));
};

/** Writes until the client has had enough. */
function endless(response: http.ServerResponse, type: string, beginning: string): void {
  response.writeHead(200, { 'content-type': type });
  response.write(beginning);
  const piece = 'x'.repeat(256 * 1024);
  const write = (): void => {
    while (!response.destroyed && response.write(piece));
  };
  response.on('drain', write);
  write();
}

/** A server of 2026-07-28 that answers some methods in its own way. */
async function serve(answers: Record<string, Answer>): Promise<{ url: string; asked: Asked[] }> {
  const asked: Asked[] = [];
  const usual: Record<string, Answer> = {
    'server/discover': (response, request) =>
      json(response, request, { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } }),
    'tools/list': (response, request) => json(response, request, { tools: [LOOK] }),
  };
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const read = JSON.parse(Buffer.concat(chunks).toString('utf8')) as Asked;
      asked.push(read);
      const answer = answers[read.method] ?? usual[read.method];
      if (answer) answer(response, read);
      else response.writeHead(404).end();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  bench.atReset(async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, asked };
}

const SLOW = 'with frames that say nothing';

describe('a call of a hostile server', () => {
  it.each<[string, Answer, RegExp]>([
    [
      'without an end of its JSON',
      (response) => endless(response, 'application/json', '{"jsonrpc":"2.0","x":"'),
      /sent an answer of more than 8388608 bytes/,
    ],
    [
      'without an end of an event',
      (response) => endless(response, 'text/event-stream', 'event: message\ndata: "'),
      /sent an event of more than 8388608 bytes/,
    ],
    [
      SLOW,
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const timer = setInterval(() => response.write(': wait\n\n'), 20);
        response.on('close', () => clearInterval(timer));
      },
      /it gives no answer in time \(timeout is 1s\)/,
    ],
    [
      'that is no JSON',
      (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"id": 1, '),
      /its answer is not one of an MCP server/,
    ],
    [
      'that is as deep as a well',
      (response, { id }) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(`{"jsonrpc":"2.0","id":${String(id)},"result":${'['.repeat(100_000)}${']'.repeat(100_000)}}`),
      /nested deeper than 200 levels/,
    ],
  ])('%s fails alone, and says which server it was', async (what, answer, reason) => {
    const timeout = what === SLOW ? '1s' : '30s';
    const hostile = await serve({ 'tools/call': answer });
    const neighbour = await bench.serve({ tools: [textTool('find', 'found')] });
    const opened = await bench.open([
      { name: 'bad', url: hostile.url, timeout, neverRepeat: ['*'] },
      { name: 'good', url: neighbour.url },
    ]);
    const [failed, found] = await Promise.all([call(opened, 'bad_look'), call(opened, 'good_find')]);
    expect(failed).toMatchObject({
      ok: false,
      content: expect.stringMatching(/^The call of look at bad failed:/),
    });
    expect(failed.content).toMatch(reason);
    expect(String(failed.content).length).toBeLessThan(2_000);
    expect(found).toMatchObject({ ok: true, content: 'found' });
  });
});

describe('the tools of a hostile server', () => {
  it('end after a hundred pages, if each names another one', async () => {
    const { url, asked } = await serve({
      'tools/list': (response, request) =>
        json(response, request, {
          tools: [{ ...LOOK, name: `look${request.params.cursor ?? ''}` }],
          nextCursor: String(Number(request.params.cursor ?? 0) + 1),
        }),
    });
    expect(names(await bench.open([{ name: 's', url }]))).toHaveLength(100);
    expect(asked.filter(({ method }) => method === 'tools/list')).toHaveLength(100);
  });

  it('are cut after the first thousand of ten thousand, and a neighbour has its own', async () => {
    const { url, asked } = await serve({
      'tools/list': (response, request) => {
        const page = Number(request.params.cursor ?? 0);
        const tools = Array.from({ length: 100 }, (_, i) => ({ ...LOOK, name: `look${page * 100 + i}` }));
        json(response, request, { tools, ...(page < 99 && { nextCursor: String(page + 1) }) });
      },
    });
    const neighbour = await bench.serve({ tools: [textTool('find', 'found')] });
    const opened = await bench.open([
      { name: 'bad', url },
      { name: 'good', url: neighbour.url },
    ]);
    expect(names(opened)).toHaveLength(1_001);
    expect(asked.filter(({ method }) => method === 'tools/list')).toHaveLength(10);
    expect(await call(opened, 'good_find')).toMatchObject({ ok: true, content: 'found' });
  });

  it('that are too many are left out with a remedy, once', () => {
    const list = new ToolList(undefined);
    const page = Array.from({ length: 1_100 }, (_, i) => ({ ...LOOK, name: `look${i}` }));
    list.add(page);
    list.add(page);
    expect([list.tools.length, list.hasExcess]).toEqual([1_000, true]);
    expect(list.leftOut).toEqual([
      {
        name: 'number 1001 of its list, and each after it,',
        reason: 'is one too many: name those that the agent needs in allow',
      },
    ]);
  });

  it('with a schema of 5 MB are left out alone', async () => {
    const inputSchema = { type: 'object', description: 'x'.repeat(5 * 1024 * 1024) };
    const { url } = await serve({
      'tools/list': (response, request) =>
        json(response, request, { tools: [{ name: 'huge', inputSchema }, LOOK] }),
    });
    expect(names(await bench.open([{ name: 's', url }]))).toEqual(['s_look']);
  });

  it('with a schema that is nested 10,000 deep fail with the name of the server', async () => {
    const deep = `${'{"items":'.repeat(10_000)}{}${'}'.repeat(10_000)}`;
    const { url } = await serve({
      'tools/list': (response, { id }) =>
        response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(
            `{"jsonrpc":"2.0","id":${String(id)},"result":{"tools":[{"name":"deep","inputSchema":${deep}}]}}`,
          ),
    });
    await expect(bench.open([{ name: 's', url }])).rejects.toThrow(
      /The MCP server "s" cannot be used: .*nested deeper than 200 levels/,
    );
  });

  it('that never end in time fail with the name of the server and the remedy', async () => {
    const pages = new ToolList(undefined);
    const now = jest.spyOn(performance, 'now');
    let at = 0;
    now.mockImplementation(() => (at += 20_000));
    let asked = 0;
    const endless = listPages(pages, () => Promise.resolve({ tools: [], nextCursor: String((asked += 1)) }));
    await expect(endless).rejects.toThrow(
      'its list of tools does not end: 4 pages have taken more than 60 s',
    );
    now.mockRestore();
  });

  it('have names that no terminal and no header takes for something else', async () => {
    const name = 'look\u001b[31m\r\nX-Other: 1';
    const { url, asked } = await serve({
      'tools/list': (response, request) => json(response, request, { tools: [{ ...LOOK, name }] }),
      'tools/call': (response, request) =>
        json(response, request, { content: [{ type: 'text', text: 'seen' }] }),
    });
    const opened = await bench.open([{ name: 's', url }]);
    const [shown = ''] = names(opened);
    expect(shown).toMatch(/^[A-Za-z0-9_-]+$/);
    expect(await call(opened, shown)).toMatchObject({ ok: true, content: 'seen' });
    expect(asked.at(-1)?.params.name).toBe(name);
  });
});
