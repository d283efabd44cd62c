import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Bank } from '../support/bank.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { DRIVER, nightlyDescribe } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import { until } from '../support/until.js';
import { exchange } from '../support/wire.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const [COMPLETED, WAITS] = ['TASK_STATE_COMPLETED', 'TASK_STATE_INPUT_REQUIRED'] as const;

/** A tool in TypeScript that pays at an address outside. */
const payTool = (url: string, more = ''): string => `
import { defineTool } from '@baton/agent';
import { z } from 'zod';

export default defineTool({
  description: 'Pays an amount',
  inputSchema: z.object({ amount: z.number().min(1), currency: z.string().default('CHF') }),
  ${more}
  async execute({ amount, currency }, { key, taskId, secret, signal }) {
    const response = await fetch(${JSON.stringify(url)}, { method: 'POST', headers: { 'idempotency-key': key }, signal });
    return { said: await response.text(), amount, currency, token: await secret('bank'), isTask: taskId !== '' };
  },
});
`;

/** It looks whether a payment is there. */
const verifyAt = (url: string): string => `
  async verify({ key }, { amount }) {
    const found = await fetch(${JSON.stringify(url)} + '/' + key);
    return found.ok ? { done: true, result: { said: 'was paid', amount } } : { done: false };
  },`;

const NOTE_TOOL = `
export default {
  description: 'Says what went wrong, or ends its process',
  inputSchema: { type: 'object', properties: { what: { type: 'string' } }, required: ['what'] },
  onUnknown: 'fail',
  execute({ what }) {
    if (what === 'exit') process.kill(process.pid, 'SIGKILL');
    throw new Error('no ' + what + ' today');
  },
};
`;

const NO_SCHEMA = `export default { description: 'x', inputSchema: { type: 'string' }, execute() {} };`;
const OLD_SCHEMA = `export default { description: 'x', inputSchema: { '~standard': { vendor: 'old', validate() {} } }, execute() {} };`;

/** Agents whose functions cannot be loaded, each with the files of its `tools/`. */
const BROKEN: Record<string, Record<string, string>> = {
  'bad-name': { 'pay now.mjs': NOTE_TOOL },
  'bad-schema': { 'pay.mjs': NO_SCHEMA },
  'bad-throw': { 'note.mjs': NOTE_TOOL, 'pay.ts': '\n\nthrow new Error("no bank");' },
  'no-tool': { 'pay.mjs': 'export const pay = 1;' },
  'old-schema': { 'pay.mjs': OLD_SCHEMA },
  'own-name': { 'read_result.mjs': NOTE_TOOL },
  'two-tools': { 'pay.mjs': NOTE_TOOL, 'pay.mts': NOTE_TOOL },
};

let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;
let bank: Bank;

const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, MAX_ATTEMPTS: '20', OUTBOUND_ALLOW: '127.0.0.1', BATON_MASTER_KEY: MASTER_KEY },
  {
    installAgents: async (agents) => {
      [provider, bank] = await Promise.all([ModelProvider.start(), new Bank().start()]);
      installAgents(agents);
      return () => {
        bank.stop();
        return provider.stop();
      };
    },
  },
);

function installAgents(folder: string): void {
  const agent = join(folder, 'cashier');
  mkdirSync(join(agent, 'tools'), { recursive: true });
  mkdirSync(join(agent, 'node_modules'));
  symlinkSync(join(__dirname, '../../node_modules/zod'), join(agent, 'node_modules/zod'));
  writeFileSync(
    join(agent, 'agent.yaml'),
    [
      'name: Clerk',
      'description: Pays',
      'version: 1.0.0',
      'runtime: llm',
      'config:',
      '  model: openai-compatible/m',
      `  baseUrl: ${provider.url}`,
      '  functions: { secrets: [bank] }',
    ].join('\n'),
  );
  writeFileSync(join(agent, 'tools/pay.ts'), payTool(bank.url('/keyed/pay'), "onUnknown: 'repeat',"));
  writeFileSync(join(agent, 'tools/pay_once.ts'), payTool(bank.url('/plain/once')));
  writeFileSync(
    join(agent, 'tools/pay_checked.ts'),
    payTool(bank.url('/plain/checked'), verifyAt(bank.url('/plain/checked'))),
  );
  writeFileSync(join(agent, 'tools/pay_asked.ts'), payTool(bank.url('/plain/asked'), 'needsApproval: true,'));
  writeFileSync(join(agent, 'tools/note.mjs'), NOTE_TOOL);
  writeFileSync(join(agent, 'tools/_shared.mjs'), 'export const helper = 1;');
  for (const [slug, files] of Object.entries(BROKEN)) {
    mkdirSync(join(folder, slug, 'tools'), { recursive: true });
    writeFileSync(join(folder, slug, 'agent.yaml'), readFileSync(join(agent, 'agent.yaml')));
    for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, slug, 'tools', file), text);
  }
}

describe('functions of an llm agent', () => {
  beforeAll(async () => {
    stack = await startStack();
    tenant = await stack.createTenant();
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const secret = { value: 'hush-hush', origins: ['agent:cashier'] };
    const path = '/v1/secrets/bank';
    expect(
      (await exchange(stack.apis[0]!.url, { method: 'PUT', path, headers, body: secret })).status,
    ).toBeLessThan(300);
  });
  beforeEach(() => {
    provider.reset();
    bank.effects.length = 0;
    bank.held.clear();
  });

  it('offers the functions of its folder to the model, and makes its calls with secrets and defaults', async () => {
    provider.reply({ calls: [{ name: 'pay', input: { amount: 5 } }] }, { text: 'Paid.' });
    const task = await send('Pay 5');
    expect(task.status.state).toBe(COMPLETED);
    const { tools } = provider.requests[0]!.body as {
      tools: { function: { name: string; parameters: object } }[];
    };
    expect(tools.map((tool) => tool.function.name)).toEqual([
      'note',
      'pay',
      'pay_asked',
      'pay_checked',
      'pay_once',
    ]);
    expect(JSON.stringify(tools[1]!.function.parameters)).toContain('"minimum":1');
    expect(lastRequest()).toContain(String.raw`\"said\":\"paid\",\"amount\":5,\"currency\":\"CHF\"`);
    // The model and the callers do not read the secret.
    expect(lastRequest()).not.toContain('hush-hush');
    expect(lastRequest()).toContain(String.raw`\"isTask\":true`);
  });

  it('leaves out agents whose functions cannot be loaded, and names the wrong file', async () => {
    const headers = { authorization: `Bearer ${tenant.token}` };
    const { json } = await exchange(stack.apis[0]!.url, { method: 'GET', path: '/v1/agents', headers });
    const { load_failures: failures } = json as {
      load_failures: { file: string; line: number; reason: string }[];
    };
    const found = failures.map(({ file, line, reason }) => [file, line, reason]);
    expect(found.sort()).toEqual([
      ['bad-name/tools/pay now.mjs', null, expect.stringContaining('it is the name of the tool')],
      [
        'bad-schema/tools/pay.mjs',
        null,
        expect.stringContaining('inputSchema must be a JSON schema with type: object'),
      ],
      ['bad-throw/tools/pay.ts', 3, 'could not be loaded: no bank'],
      ['no-tool/tools/pay.mjs', null, expect.stringContaining('has no default export')],
      [
        'old-schema/tools/pay.mjs',
        null,
        expect.stringContaining('a schema of old that cannot tell its JSON schema'),
      ],
      ['own-name/tools/read_result.mjs', null, expect.stringContaining('rename the file')],
      ['two-tools/tools/pay.mts', null, 'there is another tool "pay"'],
    ]);
  });

  it('sends the fault to the model: an input, an error of the function, a process that ended', async () => {
    provider.reply(
      { calls: [{ name: 'pay', input: { amount: 0 } }] },
      { calls: [{ name: 'note', input: { what: 'luck' } }] },
      { calls: [{ name: 'note', input: { what: 'exit' } }] },
      { text: 'Sorry.' },
    );
    const { id, status } = await send('Try');
    expect(status.state).toBe(COMPLETED);
    const headers = { authorization: `Bearer ${tenant.token}` };
    // Its author finds the place of the error.
    const logs = async () => (await fetch(`${stack.apis[0]!.url}/v1/tasks/${id}/logs`, { headers })).text();
    await until(async () => (await logs()).includes('note.mjs'));
    expect(JSON.stringify(provider.requests[1]!.body)).toContain('amount');
    expect(JSON.stringify(provider.requests[2]!.body)).toContain('no luck today');
    expect(lastRequest()).toContain('is not known');
    expect(bank.effects).toEqual([]);
  });

  it('asks a person before a call that needs approval', async () => {
    provider.reply({ calls: [{ name: 'pay_asked', input: { amount: 7 } }] }, { text: 'Paid.' });
    const task = await send('Pay 7');
    expect(task.status.state).toBe(WAITS);
    expect(bank.effects).toEqual([]);
    const answered = await caller().call('SendMessage', sendParams('yes', { taskId: task.id }));
    expect(answered.result!.task.status.state).toBe(COMPLETED);
    expect(bank.countOf('/plain/asked')).toBe(1);
  });

  nightlyDescribe('a worker that is killed during a call', () => {
    const begin = async (tool: string, path: string): Promise<string> => {
      bank.held.add(path);
      provider.reply({ calls: [{ name: tool, input: { amount: 9 } }] }, { text: 'Paid.' });
      const params = { ...sendParams('Pay 9'), configuration: { returnImmediately: true } };
      const { result } = await caller().call('SendMessage', params);
      await bank.reached(path);
      await stack.killWorkers();
      bank.held.clear();
      await stack.addWorker();
      return result!.task.id;
    };

    it('the call is made again with the same key, if the tool allows it', async () => {
      const id = await begin('pay', '/keyed/pay');
      const task = await ended(id);
      expect(task.status.state).toBe(COMPLETED);
      expect(bank.countOf('/keyed/pay')).toBe(1);
    });

    it('the function looks, and the call is not made again if it finds it', async () => {
      const id = await begin('pay_checked', '/plain/checked');
      expect((await ended(id)).status.state).toBe(COMPLETED);
      expect(bank.countOf('/plain/checked')).toBe(1);
      expect(lastRequest()).toContain('was paid');
    });

    it('a person is asked, if it does not', async () => {
      const id = await begin('pay_once', '/plain/once');
      const task = await ended(id);
      expect(task.status.state).toBe(WAITS);
      expect(bank.countOf('/plain/once')).toBe(1);
      const { result } = await caller().call('SendMessage', sendParams('no', { taskId: id }));
      expect(result!.task.status.state).toBe(COMPLETED);
      expect(bank.countOf('/plain/once')).toBe(1);
    });
  });
});

const caller = () => new RawCaller(stack.url(0, 'cashier'), tenant.token);
const send = async (text: string, more: object = {}): Promise<any> =>
  (await caller().call('SendMessage', sendParams(text, more))).result!['task'];
const ended = (id: string): Promise<any> => stack.rest(tenant.token).endedTask(id);
const lastRequest = (): string => JSON.stringify(provider.requests.at(-1)!.body);
