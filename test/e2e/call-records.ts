import { PATIENT, startMcpServer, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';

const KEY = 'sk-key-of-the-tenant-4711';
const startStack = shareStack('postgres', { OUTBOUND_ALLOW: '127.0.0.1', BATON_MASTER_KEY: MASTER_KEY });

let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;
let server: TestMcpServer;

const token = (...scopes: string[]) => stack.createToken(tenant.slug, ...scopes);

const rest = (bearer: string, method: string, path: string, body?: object) =>
  stack.rest(bearer).call(method, path, body);

/** Sends a message to the agent with that setting. @returns the id of its task, and the entries of its model calls */
async function ask(record: string, text = 'hi', bearer = tenant.token) {
  const answer = await new RawCaller(stack.url(0, record), bearer).call('SendMessage', sendParams(text));
  const { id } = answer.result!.task as { id: string };
  const { spans } = (await rest(tenant.token, 'GET', `/v1/tasks/${id}/trace`)).json as {
    spans: { kind: string; entry?: number }[];
  };
  const entries = spans.flatMap(({ kind, entry }) => (kind === 'model' ? (entry ?? []) : []));
  return { id, entries };
}

const recordOf = (bearer: string, id: string, entry: number) =>
  rest(bearer, 'GET', `/v1/tasks/${id}/trace/${entry}/record`);

const CALLS_TOOL = {
  calls: [{ name: 'desk_look', input: { at: KEY } }],
  usage: { input: 90, output: 7, cached: 64 },
};

describe('the records of model calls', () => {
  beforeAll(async () => {
    [provider, server] = await Promise.all([
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('look', 'a tool says so')] }),
    ]);
    stack = await startStack();
    tenant = await stack.createTenant();
    const origins = [new URL(provider.url).origin];
    expect(
      (await rest(tenant.token, 'PUT', '/v1/secrets/mine', { value: KEY, origins })).status,
    ).toBeLessThan(300);
    const mcp = [{ ...PATIENT, name: 'desk', url: server.url, allow: ['look'] }];
    const settings = {
      model: 'openai-compatible/m',
      baseUrl: provider.url,
      key: 'mine',
      prompt: 'Be kind.',
      retries: 0,
    };
    for (const record of ['none', 'failed', 'all']) {
      const config = { ...settings, record, tools: { mcp } };
      const agent = { slug: record, name: record, description: 'Looks', runtime: 'llm', config };
      expect((await rest(tenant.token, 'POST', '/v1/agents', agent)).status).toBe(201);
    }
  });
  beforeEach(() => provider.reset());
  afterAll(async () => {
    await Promise.all([provider.stop(), server.stop()]);
  });

  it('have the request and the answer, and nothing of the key', async () => {
    provider.reply(CALLS_TOOL, { text: `I saw ${KEY}.` });
    const { id, entries } = await ask('all', `My key is ${KEY}`);
    expect(entries).toHaveLength(2);
    const reader = await token('tasks:read', 'records:read');
    const answers = await Promise.all(entries.map((entry) => recordOf(reader, id, entry)));
    const [first, second] = answers.map(({ json }) => json.record);
    expect(first.sent).toMatchObject({
      instructions: 'Be kind.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'My key is [secret]' }] }],
      tools: [{ name: 'desk_look' }],
      left_out: { messages: 0, tools: 0 },
    });
    expect(first.said).toMatchObject({
      calls: [{ tool: 'desk_look', input: JSON.stringify({ at: '[secret]' }) }],
      finish: 'tool-calls',
      cached_tokens: 64,
    });
    expect(JSON.stringify(second.sent.messages)).toContain('a tool says so');
    expect(second.said).toMatchObject({ text: 'I saw [secret].', finish: 'stop' });
    expect(JSON.stringify(answers.map(({ json }) => json))).not.toContain(KEY);
  });

  it('are for those who see the task and have the scope', async () => {
    provider.answer(() => ({ text: 'ok' }));
    const owner = await token('agents:call', 'records:read');
    const { id, entries } = await ask('all', 'hi', owner);
    const [entry = 0] = entries;
    expect((await recordOf(owner, id, entry)).json.record.said.text).toBe('ok');
    const lacking = await recordOf(await token('agents:call', 'tasks:read', 'agents:write'), id, entry);
    expect(lacking.status).toBe(403);
    expect(JSON.stringify(lacking.json)).toContain('the token lacks the scope records:read');
    expect((await recordOf(await token('agents:call', 'records:read'), id, entry)).status).toBe(404);
    expect((await recordOf(await token('records:read'), id, entry)).status).toBe(403);
    const foreign = await stack.createTenant('admin');
    expect((await recordOf(foreign.token, id, entry)).status).toBe(404);
    expect((await recordOf(owner, id, 999)).json.record).toBeNull();
  });

  it('are kept of a run that fails, with the calls before the failure, and of no other', async () => {
    const reader = await token('tasks:read', 'records:read');
    provider.reply(CALLS_TOOL, { status: 402, error: `No credit for ${KEY}` });
    const failed = await ask('failed');
    const [before, last] = await Promise.all(
      failed.entries.map(async (entry) => (await recordOf(reader, failed.id, entry)).json.record),
    );
    expect(before.said.calls).toMatchObject([{ tool: 'desk_look' }]);
    expect(last.said).toMatchObject({
      finish: null,
      error: expect.stringContaining('(402)'),
      complaint: { status: 402 },
    });
    expect(last.sent.messages).toHaveLength(3);
    expect(JSON.stringify(last)).not.toContain(KEY);
    provider.reply({ text: 'ok' });
    const succeeded = await ask('failed');
    expect((await recordOf(reader, succeeded.id, succeeded.entries[0]!)).json.record).toBeNull();
    provider.reply({ status: 402, error: 'No credit' });
    const none = await ask('none');
    expect((await recordOf(reader, none.id, none.entries[0]!)).json.record).toBeNull();
  });

  it('are printed by the command line, which names the scope that is missing', async () => {
    provider.reply({ text: 'Fine.', usage: { input: 90, output: 7, cached: 64 } });
    const { id, entries } = await ask('all');
    const target = (bearer: string) => [
      '--entry',
      String(entries[0]),
      '--url',
      stack.apis[0]!.url,
      '--token',
      bearer,
    ];
    const printed = await stack.baton(
      'tasks',
      'trace',
      id,
      ...target(await token('tasks:read', 'records:read')),
    );
    expect(printed).toContain('sent: instructions:\nBe kind.');
    expect(printed).toContain('said: text:\nFine.');
    expect(printed).toContain('said: stop, 90 → 7 tokens, 64 of them cached');
    const said = await stack.baton(
      'tasks',
      'trace',
      id,
      ...target(await token('tasks:read', 'agents:write')),
    );
    expect(said).toBe('text:\nFine.');
    await expect(stack.baton('tasks', 'trace', id, ...target(await token('tasks:read')))).rejects.toThrow(
      'agents:write',
    );
  });
});
