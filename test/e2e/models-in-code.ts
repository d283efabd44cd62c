import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { PATIENT, startMcpServer, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { DRIVER, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const KEY = 'sk-key-of-the-tenant-4712';
const ROOT = join(__dirname, '../..');

/** It also reports what it finds in its process. */
const CODE = `
import { defineAgent } from '@baton/agent';
import { generateText, streamText, stepCountIs, tool, jsonSchema } from 'ai';

const twice = async ({ model }, settings) => {
  const { generate } = model(settings);
  const first = await generate('one');
  const second = await generate('two');
  return first.text + ' ' + second.text;
};
const sdk = async ({ model, step }, settings) => {
  const { text } = await generateText({
    model: model(settings),
    prompt: 'one',
    stopWhen: stepCountIs(5),
    tools: {
      look: tool({ inputSchema: jsonSchema({ type: 'object' }), execute: () => step('look', () => 'a tool says so') }),
    },
  });
  let streamed = '';
  for await (const piece of streamText({ model: model(settings), prompt: 'two' }).textStream) streamed += piece;
  return text + ' ' + streamed;
};
const caught = async ({ model }, settings) => {
  try {
    return (await model(settings).generate('one')).text;
  } catch (error) {
    return error.message;
  }
};
const remember = async ({ history, contextState }, word) => {
  const before = await contextState.get('words');
  const words = [...(before.value ?? []), word];
  const { version } = await contextState.set('words', words, { version: before.version });
  return { text: words.join(' '), data: { version, said: (await history()).length } };
};
const desk = async ({ tools, model }, { mcp, model: of }) => {
  const { sdk } = await tools({ mcp });
  const { text } = await generateText({ model: model(of), prompt: 'one', tools: sdk, stopWhen: stepCountIs(5) });
  return text;
};
const WAYS = { twice, sdk, caught, remember, desk };

export default defineAgent((turn) => {
  const { way, settings, word } = JSON.parse(turn.text);
  return WAYS[way](turn, word ?? settings);
});
`;

const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, OUTBOUND_ALLOW: '127.0.0.1', BATON_MASTER_KEY: MASTER_KEY, MAX_ATTEMPTS: '20' },
  {
    installAgents: async (agents) => {
      provider = await ModelProvider.start({ key: KEY });
      installWriter(join(agents, 'writer'));
      installExample(join(agents, 'headline'));
      return () => provider.stop();
    },
  },
);
let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;
let server: TestMcpServer;
let settings: object;

describe('models in code', () => {
  beforeAll(async () => {
    [stack, server] = await Promise.all([
      startStack(),
      startMcpServer({ tools: [textTool('look', 'a tool says so')] }),
    ]);
    tenant = await tenantWithKey();
    settings = { model: 'openai/gpt-5-mini', baseUrl: provider.url, key: 'mine', record: 'all' };
  });
  beforeEach(() => provider.reset());
  afterAll(() => server.stop());

  it('are not called again after a kill of the worker; usage, trace and records have both calls', async () => {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const usage = { input: 7, output: 3 };
    provider.reply(
      { text: 'first', usage },
      { text: 'late', usage, after: released },
      { text: 'second', usage },
    );
    const answer = ask('twice');
    await provider.request(2);
    const { task_id: id } = (await rest('GET', '/v1/tasks')).tasks[0] as { task_id: string };
    const during = await rest('GET', `/v1/tasks/${id}/trace`);
    expect(modelSpans(during)).toMatchObject([{ state: 'succeeded' }, { state: 'running', ended_at: null }]);
    await stack.replaceWorkers();
    const { task } = (await answer).result!;
    release();
    expect(saidIn(task)).toBe('first second');
    expect(provider.requests.map(({ body }) => lastText(body))).toEqual(['one', 'two', 'two']);
    expect(task.status.metadata ?? task.metadata).toMatchObject({
      'baton.usage': { inputTokens: 14, outputTokens: 6, model: 'openai/gpt-5-mini', metered: true },
    });
    const trace = await rest('GET', `/v1/tasks/${id}/trace`);
    const spans = modelSpans(trace);
    expect(spans).toMatchObject([
      { name: 'openai/gpt-5-mini', state: 'succeeded', model_call: 0 },
      { name: 'openai/gpt-5-mini', state: 'succeeded', model_call: 1 },
    ]);
    expect(trace.model_calls).toMatchObject([{ output_tokens: 3 }, { output_tokens: 3 }]);
    const reader = { ...tenant, token: await stack.createToken(tenant.slug, 'tasks:read', 'records:read') };
    const record = await rest('GET', `/v1/tasks/${id}/trace/${spans[1].entry}/record`, reader);
    expect(record.record.said.text).toBe('second');
    const detail = await rest('GET', `/v1/tasks/${id}/trace/${spans[0].entry}`);
    expect(detail.model).toMatchObject({ text: 'first' });
    const used = await rest('GET', '/v1/usage?by=model');
    expect(JSON.stringify(used)).toContain('"calls":2');
    expect(JSON.stringify([trace, record, detail])).not.toContain(KEY);
  });

  it('run generateText and streamText of the AI SDK as they are', async () => {
    provider.reply(
      { calls: [{ name: 'look', input: {} }] },
      { text: 'I saw it.' },
      { text: ['And ', 'more.'] },
    );
    const { task } = (await ask('sdk')).result!;
    expect(saidIn(task)).toBe('I saw it. And more.');
    expect(JSON.stringify(provider.requests[1]!.body)).toContain('a tool says so');
    expect(modelSpans(await rest('GET', `/v1/tasks/${task.id}/trace`))).toHaveLength(3);
  });

  it('write and judge in the example of the documentation', async () => {
    provider.reply({ text: ['Cat Pays ', 'Taxes'] }, { text: '{"score": "7"}' }, { text: '{"score": 7}' });
    const call = new RawCaller(stack.url(0, 'headline'), tenant.token).call(
      'SendMessage',
      sendParams('A cat'),
    );
    const { task } = (await call).result!;
    const [answer] = task.artifacts;
    expect(answer.parts.map(({ text }: any) => text).join('')).toBe('Cat Pays Taxes\n7 of 10');
    expect(task.status.message.parts.map(({ data }: any) => data)).toEqual([{ score: 7 }]);
  });

  it('remember values and messages of a context, and nothing of another tenant or caller', async () => {
    const contextId = 'a-conversation';
    const [stranger, colleague] = [await stack.createTenant(), await stack.createToken(tenant.slug)];
    const say = async (word: string, token = tenant.token): Promise<[string, unknown]> => {
      const params = sendParams(JSON.stringify({ way: 'remember', word }), { contextId });
      const { task } = (await new RawCaller(stack.url(0, 'writer'), token).call('SendMessage', params))
        .result!;
      return [saidIn(task), task.status.message.parts.at(-1).data];
    };
    expect(await say('one')).toEqual(['one', { version: 1, said: 0 }]);
    expect(await say('two')).toEqual(['one two', { version: 2, said: 2 }]);
    expect(await say('other', stranger.token)).toEqual(['other', { version: 1, said: 0 }]);
    expect(await say('mine', colleague)).toEqual(['mine', { version: 1, said: 0 }]);
    expect(await say('three')).toEqual(['one two three', { version: 3, said: 4 }]);
  });

  nightlyIt(
    'use tools of MCP servers: a person approves, a kill of the worker repeats nothing, and the trace has the call',
    async () => {
      provider.reply({ calls: [{ name: 'desk_look', input: { at: 'it' } }] }, { text: 'I saw it.' });
      const mcp = [{ ...PATIENT, name: 'desk', url: server.url, approval: ['look'] }];
      const { task } = (await ask('desk', tenant, { mcp, model: settings })).result!;
      const { id } = task;
      const [, asked] = task.status.message.parts;
      expect(asked.data.approval).toMatchObject({ tool: 'desk_look', server: 'desk', input: { at: 'it' } });
      const answer = (token: string) =>
        new RawCaller(stack.url(0, 'writer'), token).call('SendMessage', sendParams('yes', { taskId: id }));
      const caller = await stack.createToken(tenant.slug, 'agents:call', 'tasks:read', 'tasks:write');
      expect(JSON.stringify(await answer(caller))).toContain('tasks:approve');
      expect(server.calls).toHaveLength(0);
      await stack.replaceWorkers();
      const { task: ended } = (await answer(tenant.token)).result!;
      expect(saidIn(ended)).toBe('I saw it.');
      expect(provider.requests).toHaveLength(2);
      expect(JSON.stringify(provider.requests[1]!.body)).toContain('a tool says so');
      expect(server.calls).toMatchObject([{ tool: 'look', input: { at: 'it' }, key: expect.any(String) }]);
      const { spans } = await rest('GET', `/v1/tasks/${id}/trace`);
      const made = spans.filter(({ kind, name }: any) => kind === 'tool' && name === 'desk_look');
      expect(made).toMatchObject([{ state: 'succeeded' }]);
      const detail = await rest('GET', `/v1/tasks/${id}/trace/${made[0].entry}`);
      expect(detail.tool).toMatchObject({ tool: 'desk_look', input: { at: 'it' }, ok: true });
    },
  );

  it('say to the code that a limit of the tenant forbids the call, or that the tenant has no key', async () => {
    const poor = await tenantWithKey();
    await stack.baton('tenants', 'limits', poor.slug, '--tokens-per-day', '10');
    expect(saidIn((await ask('caught', poor)).result!.task)).toContain('TokensExceeded: ');
    const keyless = await stack.createTenant();
    expect(saidIn((await ask('caught', keyless)).result!.task)).toContain('set the secret "mine"');
    expect(provider.requests).toHaveLength(0);
  });
});

function installWriter(folder: string): void {
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules/ai'), join(folder, 'node_modules/ai'));
  writeFileSync(join(folder, 'index.mjs'), CODE);
  const yaml =
    'name: Writer\ndescription: Writes.\nversion: 1.0.0\nruntime: executor\nretry: { mode: restart, attempts: 4 }\n';
  writeFileSync(join(folder, 'agent.yaml'), yaml);
}

/** The page has no `baseUrl`: its reader calls OpenAI. */
function installExample(folder: string): void {
  const page = readFileSync(join(ROOT, 'docs/agents/models-in-code.md'), 'utf8');
  const [code = '', yaml = ''] = ['js', 'yaml'].map(
    (language) => new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 's').exec(page)?.[1] ?? '',
  );
  mkdirSync(folder);
  writeFileSync(join(folder, 'agent.yaml'), yaml);
  const address = `model: 'openai/gpt-5-mini', baseUrl: '${provider.url}'`;
  writeFileSync(join(folder, 'index.mjs'), code.replaceAll("model: 'openai/gpt-5-mini'", address));
}

async function tenantWithKey(): Promise<TestTenant> {
  const created = await stack.createTenant();
  const secret = { value: KEY, origins: [provider.origin] };
  for (const name of ['mine', 'openai']) await rest('PUT', `/v1/secrets/${name}`, created, secret);
  return created;
}

const ask = (way: string, { token } = tenant, given: object = settings) =>
  new RawCaller(stack.url(0, 'writer'), token).call(
    'SendMessage',
    sendParams(JSON.stringify({ way, settings: given })),
  );

const rest = async (method: string, path: string, { token } = tenant, body?: object): Promise<any> =>
  (await stack.rest(token).call(method, path, body)).json;

const modelSpans = ({ spans }: { spans: any[] }): any[] => spans.filter(({ kind }) => kind === 'model');

const saidIn = (task: any): string => task.status.message.parts.map(({ text = '' }: any) => text).join('');

/** The text of the last message of a request to OpenAI. */
const lastText = (body: any): string => body.input.at(-1).content.at(-1).text;
