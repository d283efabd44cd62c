import { TaskState } from '@baton/a2a';
import { Metrics } from '@baton/telemetry';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Outbound } from '@baton/outbound';
import { firstTurn } from '../../../../../test/support/agents/turns.js';
import { says, textTool } from '../../../../../test/support/mcp-server/script.js';
import { pour } from '../../../../../test/support/pour.js';
import { LlmBench, summaryOf, toolOf } from './llm-runtime.fixture.js';
import { PromptReader } from './prompt-reader.js';
import { McpBench, call, names } from './tools/mcp/mcp-tools.fixture.js';

const { TASK_STATE_FAILED: FAILED, TASK_STATE_COMPLETED: COMPLETED } = TaskState;
const MODELS = ['openai/gpt-5-mini', 'anthropic/claude', 'google/gemini', 'openai-compatible/other'] as const;
const chunks = (count: number, size: number): string[] => Array<string>(count).fill('x'.repeat(size));

/** How often that limit was exceeded, as the metrics say. */
async function exceeded({ metrics }: { metrics: Metrics }, limit: string): Promise<number> {
  const { values } = await metrics.limitExceeded.get();
  return values.find(({ labels }) => labels.limit === limit)?.value ?? 0;
}

/** Requests that are answered only when `wanted` are there at once, and then late enough for more to come. */
class Crowd {
  entered = 0;
  most = 0;
  private inside = 0;
  private readonly held: (() => void)[] = [];

  constructor(private readonly wanted: number) {}

  enter(answer: () => void): void {
    this.entered += 1;
    this.inside += 1;
    this.most = Math.max(this.most, this.inside);
    this.held.push(() => {
      this.inside -= 1;
      answer();
    });
    if (this.most < this.wanted) return;
    for (const leave of this.held.splice(0)) setTimeout(leave, 20);
  }
}

describe('a model that does not stop', () => {
  let bench: LlmBench;
  beforeAll(async () => {
    bench = await LlmBench.start();
  });
  afterEach(() => bench.reset());
  afterAll(() => bench.stop());

  it.each(MODELS)('of %s fails the turn at its limit of text', async (model) => {
    bench.provider.reply({ text: chunks(60, 50_000) });
    const { status } = summaryOf(
      await bench.say({ model, retries: 0, ...(model.startsWith('openai-c') && { key: 'mine' }) }),
    );
    expect(status).toMatchObject({
      state: FAILED,
      text: expect.stringContaining('more than 2000000 characters: ask for less, or set maxOutputTokens'),
    });
    expect(await exceeded(bench, 'modelAnswer')).toBe(MODELS.indexOf(model) + 1);
  });

  it('is left at the time limit of the call, although it sends comments all the time', async () => {
    const server = createServer((request, response) => {
      request.resume();
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      pour(response, Buffer.from(': keep-alive\n\n'.repeat(1_000)));
      response.once('close', () => server.close());
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const config = { model: 'openai-compatible/other', baseUrl, key: 'mine', retries: 0, timeout: '1s' };
    expect(summaryOf(await bench.say(config)).status).toMatchObject({
      state: FAILED,
      text: expect.stringContaining('did not end its answer within 1 s (timeout'),
    });
    if (server.listening) await once(server, 'close');
  });

  it('fails the turn at its limits of calls and of what it gives them', async () => {
    bench.tools.push(toolOf('weather', () => 'fine'));
    const input = { city: 'x'.repeat(1_100_000) };
    bench.provider.reply({ calls: [{ name: 'weather', input }] });
    expect(summaryOf(await bench.say({ retries: 0 })).status).toMatchObject({
      state: FAILED,
      text: expect.stringContaining('more than 1000000 characters as input of tools'),
    });
    const many = Array.from({ length: 129 }, (_, i) => ({
      name: 'weather',
      input: { city: `c${String(i)}` },
    }));
    bench.provider.reply({ calls: many });
    expect(summaryOf(await bench.say({ retries: 0 })).status).toMatchObject({
      state: FAILED,
      text: expect.stringContaining('more than 128 calls of tools'),
    });
  });

  it('may say a lot', async () => {
    bench.provider.reply({ text: chunks(30, 50_000) });
    expect(summaryOf(await bench.say()).status).toEqual({ state: COMPLETED });
  });
});

describe('an MCP server that offers too much', () => {
  const bench = new McpBench();
  afterEach(() => bench.reset());
  afterAll(() => bench.stop());
  const tool = (name: string, inputSchema: object) => ({
    ...textTool(name, 'ok'),
    inputSchema: { type: 'object' as const, ...inputSchema },
  });
  const deep = (levels: number): object => (levels === 0 ? {} : { not: deep(levels - 1) });

  it.each([
    [
      'bytes',
      Array.from({ length: 20 }, (_, i) => tool(`a${String(i)}`, { title: 'x'.repeat(60_000) })),
      /list of tools is larger than 1048576 bytes/,
      'toolList',
    ],
    [
      'bytes in one schema',
      [tool('a', { title: 'x'.repeat(70_000) })],
      /tool "a" has an input schema that is larger/,
      'toolList',
    ],
    [
      'levels of a schema',
      [tool('a', deep(80))],
      /tool "a" has an input schema that is nested deeper/,
      'toolList',
    ],
    [
      'levels of the answer',
      [tool('a', deep(300))],
      /an (answer|event) that is nested deeper than 200 levels/,
      'toolAnswer',
    ],
    ['letters in a name', [tool('a'.repeat(200), {})], /has a name of more than 128 characters/, 'toolList'],
  ])('is refused for its %s', async (_what, tools, reason, limit) => {
    const { url } = await bench.serve({ transport: 'http', json: true, tools });
    const before = await exceeded(bench, limit);
    await expect(bench.open([{ name: 'big', url }])).rejects.toThrow(reason);
    expect(await exceeded(bench, limit)).toBeGreaterThan(before);
    const opened = await bench.open([{ name: 'big', url, optional: true }]);
    expect(names(opened)).toEqual([]);
  });

  it('works with the tools that are left', async () => {
    const tools = [tool('small', {}), tool('large', { title: 'x'.repeat(70_000) })];
    const { url } = await bench.serve({ transport: 'http', json: true, tools });
    expect(names(await bench.open([{ name: 'a', url, allow: ['small'] }]))).toEqual(['a_small']);
  });

  it('is refused together with others', async () => {
    const tools = Array.from({ length: 15 }, (_, i) => tool(`t${String(i)}`, { title: 'x'.repeat(60_000) }));
    const { url } = await bench.serve({ transport: 'http', json: true, tools });
    const servers = Array.from({ length: 5 }, (_, i) => ({ name: `s${String(i)}`, url }));
    await expect(bench.open(servers)).rejects.toThrow(
      'larger than 4194304 bytes: name those that the agent needs',
    );
  });

  it('is opened with three others at a time', async () => {
    const crowd = new Crowd(4);
    const server = createServer((_request, response) => crowd.enter(() => response.writeHead(403).end()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/mcp`;
    const servers = Array.from({ length: 16 }, (_, i) => ({ name: `s${String(i)}`, url, optional: true }));
    expect(names(await bench.open(servers))).toEqual([]);
    server.close();
    expect(crowd.entered).toBeGreaterThanOrEqual(16);
    expect(crowd.most).toBe(4);
  });

  it('gets no more of a result to the model than its first items, and no secret it was sent', async () => {
    const content = Array.from({ length: 300 }, () => ({ type: 'text' as const, text: 'x' }));
    const many = { name: 'many', call: () => ({ content }) };
    const quotes = { name: 'quotes', call: () => ({ ...says('bad token s3cret'), isError: true }) };
    const { url } = await bench.serve({ transport: 'http', json: true, tools: [many, quotes] });
    const headers = { Authorization: { secret: 'tracker' } };
    const opened = await bench.open([{ name: 'a', url, headers }]);
    expect((await call(opened, 'a_many')).text).toMatch(
      /100 more items were left out: a result has 200 at most/,
    );
    expect(await exceeded(bench, 'toolResult')).toBe(1);
    expect(await call(opened, 'a_quotes')).toEqual({
      ok: false,
      content: 'bad token [secret]',
      text: 'bad token [secret]',
    });
  });
});

describe('files at URLs', () => {
  const metrics = new Metrics();
  const outbound = new Outbound({ outboundAllow: ['127.0.0.1'] }, metrics);
  let server: Server;
  let crowd = new Crowd(1);
  let size = 10;
  beforeAll(async () => {
    server = createServer((_request, response) =>
      crowd.enter(() =>
        response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(Buffer.alloc(size)),
      ),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterAll(async () => {
    server.close();
    await outbound.onApplicationShutdown();
  });

  const read = (count: number) => {
    const value = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/`;
    const part = {
      content: { $case: 'url' as const, value },
      filename: '',
      mediaType: '',
      metadata: undefined,
    };
    const message = { ...firstTurn('hi').message, parts: Array.from({ length: count }, () => part) };
    return new PromptReader(outbound).prompt(message, new AbortController().signal);
  };

  it('are read three at a time, and 20 in a turn', async () => {
    crowd = new Crowd(3);
    expect((await read(20)).content).toHaveLength(20);
    expect(crowd.most).toBe(3);
    await expect(read(21)).rejects.toMatchObject({
      message: expect.stringContaining('more than 20 files by URL: send fewer'),
      limit: 'files',
    });
  });

  it('have 20 MiB each at most', async () => {
    size = 20 * 1024 * 1024;
    expect((await read(1)).content).toHaveLength(1);
    size += 1;
    await expect(read(1)).rejects.toThrow(/cannot be read: .*more than 20971520 bytes/);
  });

  it('have 40 MiB together at most', async () => {
    size = 15 * 1024 * 1024;
    await expect(read(6)).rejects.toThrow(/more than \d+ bytes/);
    expect(await exceeded({ metrics }, 'files')).toBeGreaterThan(0);
  });
});
