import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { TaskState } from '@baton/a2a';
import { collect } from '../../../../../../test/support/agents/turns.js';
import { startModernServer } from '../../../../../../test/support/mcp-server/modern-server.js';
import { LlmBench, summaryOf } from '../llm-runtime.fixture.js';
import { McpBench } from './mcp/mcp-tools.fixture.js';

let llm: LlmBench;
const mcp = new McpBench();
beforeAll(async () => {
  llm = await LlmBench.start();
});
afterEach(async () => {
  llm.reset();
  await mcp.reset();
});
afterAll(async () => {
  await llm.stop();
  await mcp.stop();
});

const CSV = Buffer.from('city,rain').toString('base64');
const LINKED = ['note://1', 'note://2', 'note://gone'];
const resources = {
  'note://1': { mimeType: 'text/plain', text: 'It rains in Bern.' },
  'note://2': { mimeType: 'application/zip', blob: CSV, _meta: { 'baton/nextUri': 'note://3' } },
  'note://3': { text: 'The end.' },
  'note://secret': { text: 'of another task' },
};

/** A server whose tool links some of its resources, in its protocol. */
async function serve(era: 'modern' | 'legacy'): Promise<{ url: string }> {
  const content = LINKED.map((uri) => ({ type: 'resource_link' as const, uri, name: uri.slice(-1) }));
  const tools = [{ name: 'find', call: () => ({ content }) }];
  if (era === 'legacy') return mcp.serve({ tools, resources });
  const server = await startModernServer({ tools, resources });
  mcp.atReset(() => server.stop());
  return server;
}

const read = (uri: string) => ({ calls: [{ name: 'read_resource', input: { uri } }] });
const find = { calls: [{ name: 'desk_find', input: {} }] };

interface Sent {
  tools?: { name: string }[];
  input: { type: string; output: string }[];
}

const sent = (number: number) => llm.provider.request(number).then(({ body }) => body as unknown as Sent);
const results = async (number: number): Promise<string[]> =>
  (await sent(number)).input.flatMap(({ type, output }) => (type === 'function_call_output' ? output : []));

async function run(url: string) {
  const turn = llm.turn({ tools: { mcp: [{ name: 'desk', url }] } });
  return summaryOf(await collect(llm.runtimeWith(mcp.source()).run(turn, new AbortController().signal)));
}

describe.each(['modern', 'legacy'] as const)('a resource that a tool of a %s server links', (era) => {
  it('is read when the model asks for it: texts, files and the pages after them', async () => {
    const { url } = await serve(era);
    llm.provider.reply(find, read('note://1'), read('note://2'), read('note://3'), { text: 'Done.' });
    const { status, artifacts } = await run(url);
    expect(status).toEqual({ state: TaskState.TASK_STATE_COMPLETED });
    const offered = async (number: number) => (await sent(number)).tools?.map(({ name }) => name);
    expect(await offered(1)).toEqual(['desk_find']);
    expect(await offered(2)).toEqual(['desk_find', 'read_resource']);
    const [links, text, file, more] = await results(5);
    expect(links).toContain('[resource 1: note://1]');
    expect(text).toBe('[resource note://1]\nIt rains in Bern.');
    expect(file).toContain('[file 2 (application/zip, 9 bytes): the user has been given it]');
    expect(file).toContain('[resource with the next page: note://3]');
    expect(more).toBe('[resource note://3]\nThe end.');
    expect(artifacts['call-3-1-file-1']).toMatchObject({ kind: undefined });
  });

  it('is only one that the server has linked in this task, and a failure is a result', async () => {
    const { url } = await serve(era);
    llm.provider.reply(find, read('note://secret'), read('note://gone'), { text: 'Done.' });
    await run(url);
    const [, foreign, gone] = await results(4);
    expect(foreign).toBe('No result of this task names the resource "note://secret".');
    expect(gone).toContain('The resource could not be read at desk: it answers with the error');
    expect(gone).toContain('no such resource');
  });
});

describe('a resource at an address', () => {
  it('is read at the server that has linked it, and the address is never called', async () => {
    let calls = 0;
    const inner = http.createServer((_, response) => response.end(`${(calls += 1)}`)).listen(0, '127.0.0.1');
    mcp.atReset(() => new Promise((resolve) => inner.close(() => resolve())));
    await once(inner, 'listening');
    const uri = `http://127.0.0.1:${(inner.address() as AddressInfo).port}/secrets`;
    const tools = [{ name: 'find', call: () => ({ content: [{ type: 'resource_link', uri }] }) }];
    const server = await startModernServer({ tools, resources: { [uri]: { text: 'by the server' } } });
    mcp.atReset(() => server.stop());
    llm.provider.reply(find, read(uri), { text: 'Done.' });
    await run(server.url);
    expect((await results(3))[1]).toContain('by the server');
    expect(calls).toBe(0);
  });

  it('is not read at another server that has taken the name of the one that has linked it', async () => {
    const { url } = await serve('modern');
    const opened = await mcp.open([{ name: 'desk', url }]);
    const { signal } = new AbortController();
    const link = { server: 'desk', url, uri: 'note://1' };
    expect(await opened.readResource?.(link, { signal })).toMatchObject({ ok: true });
    expect(await opened.readResource?.({ ...link, url: `${url}/other` }, { signal })).toEqual({
      ok: false,
      content: 'The server desk, which has linked the resource, is not there.',
    });
  });
});
