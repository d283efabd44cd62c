import { createHmac } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Receiver } from '../../libs/tasks/src/push/receiver.fixture.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { ModelProvider, type Reply } from '../support/model-provider/model-provider.js';
import { DRIVER, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

let provider: ModelProvider;
let stack: Stack;
let tenant: TestTenant;

/** Of 200 tokens: 0.20. */
const USAGE = { usage: { input: 100, output: 100 } };

/** Asks its model as often as its text says. */
const coderOf = (modelUrl: string): string => `
import { defineAgent } from '@baton/agent';

export default defineAgent(async ({ text, model, step }) => {
  const said = [];
  for (let n = 0; n < Number(text); n++) {
    await step('before', () => n);
    const answer = model({ model: 'openai-compatible/m', baseUrl: ${JSON.stringify(modelUrl)}, maxOutputTokens: 20 }).generate('go');
    said.push(await answer.then(({ text }) => text, ({ cause }) => cause.name + ': ' + cause.message));
  }
  return said.join(' ');
});
`;
const MANIFEST = 'name: Coder\ndescription: Asks.\nruntime: executor\n';

const PRICES = { 'openai-compatible/m': { input: 1000, output: 1000 } };
const startStack = shareStack(
  DRIVER,
  {
    ...CRASH_SETTINGS,
    OUTBOUND_ALLOW: '127.0.0.1',
    MODEL_PRICES: JSON.stringify(PRICES),
    BATON_MASTER_KEY: MASTER_KEY,
  },
  {
    installAgents: async (agents) => {
      provider = await ModelProvider.start();
      const folder = join(agents, 'coder');
      mkdirSync(folder);
      writeFileSync(join(folder, 'agent.yaml'), MANIFEST);
      writeFileSync(join(folder, 'index.mjs'), coderOf(provider.url));
      return () => provider.stop();
    },
  },
);

describe('spending caps', () => {
  beforeAll(async () => {
    stack = await startStack();
  });
  beforeEach(async () => {
    provider.reset();
    tenant = await stack.createTenant('admin');
    await put('agents/clerk', agentOf('clerk', []));
    await put('agents/lead', agentOf('lead', ['clerk']));
    provider.answer(({ body }): Reply => {
      const isLead = JSON.stringify(body.messages[0]).includes('You are lead');
      const hasResult = body.messages.some(({ role }: any) => role === 'tool');
      if (!isLead || hasResult) return { text: 'done', ...USAGE };
      return { calls: [{ name: 'ask_clerk', input: { message: 'go' } }], ...USAGE };
    });
  });
  it('the cap of an agent fails the task whose call does not fit, with the cap and who can raise it', async () => {
    await cap('agent', 'clerk', 'day', '0.21');
    expect(await send('clerk')).toMatchObject({ state: 'COMPLETED' });
    const refused = await send('clerk');
    expect(refused.state).toBe('FAILED');
    expect(refused.text).toMatch(
      /^The spending cap of the agent "clerk" for a day, which is 0.21 USD, has no room for another call: 0.20 USD are used since \d{4}-\d\d-\d\d \(UTC\), and the call may cost 0.039 USD. Try again from \d{4}-\d\d-\d\d \(UTC\), or ask an administrator of the tenant for a higher cap.$/,
    );
    expect(await used()).toEqual({ 'agent clerk': '0.20' });
    const url = stack.apis[0]!.url;
    const options = ['--amount', '0.50', '--url', url, '--token', tenant.token];
    expect(await stack.baton('caps', 'set', 'agent', 'clerk', ...options)).toBe(
      'agent clerk may spend 0.50 per day. It has used 0.20.',
    );
    expect(await send('clerk')).toMatchObject({ state: 'COMPLETED' });
    expect(await stack.baton('caps', 'list', '--url', url, '--token', tenant.token)).toMatch(
      /agent clerk +day +0\.40 +0\.50 USD +fail +tenant/,
    );
  });

  nightlyIt('the cap of a task counts the calls of all tasks below it', async () => {
    await cap('task', '*', 'life', '0.45');
    const { state, text } = await send('lead');
    expect(state).toBe('FAILED');
    expect(text).toMatch(
      /^The spending cap of each task, which is 0.45 USD, .*: 0.40 USD are used, .* Ask an administrator/,
    );
    await cap('task', '*', 'life', '0.65');
    const { id, state: second } = await send('lead');
    expect(second).toBe('COMPLETED');
    const [listed] = (await ask('GET', 'spending-caps')).caps;
    expect(listed).toMatchObject({ used: '0.60', used_by: id });
  });

  nightlyIt('a cap of the operator is one that the tenant sees and cannot change', async () => {
    const set = await stack.baton('tenants', 'caps', tenant.slug, '--amount', '0.01', '--period', 'week');
    expect(set).toMatch(/tenant +week +0\.00 +0\.01 USD +fail +operator/);
    expect((await send('clerk')).text).toMatch(
      /^The spending cap of this tenant for a week, .* or ask the operator/,
    );
    const [{ id }] = (await ask('GET', 'spending-caps')).caps;
    expect(await ask('DELETE', `spending-caps/${id}`)).toMatchObject({ status: 403 });
    await cap('tenant', '', 'week', '100');
    expect(await send('clerk')).toMatchObject({ state: 'FAILED' });
    await stack.baton('tenants', 'caps', tenant.slug, '--period', 'week', '--remove');
    expect(await send('clerk')).toMatchObject({ state: 'COMPLETED' });
  });

  it('a cap that asks lets a task go on by what a person approves, and ends it if the person refuses', async () => {
    await cap('agent', 'clerk', 'day', '0.21', 'ask');
    await send('clerk');
    const { id, ...asking } = await send('clerk');
    expect(asking).toMatchObject({
      state: 'INPUT_REQUIRED',
      text: expect.stringMatching(
        /^The spending cap of the agent "clerk" for a day, which is 0.21 USD, .*\nAnswer yes to let this task and the tasks below it spend 0.21 USD more, or no to end it\./,
      ),
      asked: { callId: 'cap-1', tool: 'spending_cap', input: { amount: '0.21', currency: 'USD' } },
    });
    const again = await say('clerk', id, 'how much?');
    expect(again).toMatchObject({ state: 'INPUT_REQUIRED', asked: { callId: 'cap-1' } });
    expect(again.text).toMatch(/^That is neither yes nor no\.\n/);
    expect(await say('clerk', id, 'yes')).toMatchObject({ state: 'COMPLETED', text: '' });
    const [listed] = (await ask('GET', 'spending-caps')).caps;
    expect(listed).toMatchObject({ used: '0.20', allowed: '0.21', on_limit: 'ask' });
    const { records } = await ask('GET', 'audit?action=approval.given');
    expect(records[0]).toMatchObject({ target: { name: id }, detail: { calls: [{ tool: 'spending_cap' }] } });
    // What was approved is for that task alone.
    const other = await send('clerk');
    expect(other.state).toBe('INPUT_REQUIRED');
    const refused = await say('clerk', other.id, 'no, that is enough');
    expect(refused.state).toBe('FAILED');
    expect(refused.text).toMatch(
      /^The spending cap of the agent "clerk" .* A person has refused more: no, that is enough$/,
    );
  });

  nightlyIt(
    'an agent in code asks as well: it goes on where it was, on another worker, and asks anew when that is used up',
    async () => {
      await cap('agent', 'coder', 'day', '0.21', 'ask');
      const { id, ...first } = await send('coder', { parts: [{ text: '3' }] });
      expect(first).toMatchObject({
        state: 'INPUT_REQUIRED',
        asked: { callId: 'step-1-4-cap-1', tool: 'spending_cap' },
      });
      await stack.replaceWorkers();
      const unclear = await say('coder', id, 'how much?');
      expect(unclear).toMatchObject({ state: 'INPUT_REQUIRED', asked: { callId: 'step-1-4-cap-1' } });
      expect(unclear.text).toMatch(/^That is neither yes nor no\.\n/);
      const second = await say('coder', id, 'yes');
      expect(second).toMatchObject({ state: 'INPUT_REQUIRED', asked: { callId: 'step-1-6-cap-1' } });
      expect(await say('coder', id, 'yes')).toMatchObject({ state: 'COMPLETED', text: 'done done done' });
      expect(provider.requests.length).toBe(3);
      const [listed] = (await ask('GET', 'spending-caps')).caps;
      expect(listed).toMatchObject({ allowed: '0.42' });
      const other = await send('coder', { parts: [{ text: '1' }] });
      const refused = await say('coder', other.id, 'no, that is enough');
      expect(refused.text).toMatch(
        /^TokensExceeded: The spending cap .* A person has refused more: no, that is enough$/,
      );
      expect(provider.requests.length).toBe(3);
    },
  );

  nightlyIt('a child that asks is answered at the first task, with another amount', async () => {
    await cap('task', '*', 'life', '0.21', 'ask');
    const { id, asked } = await send('lead');
    expect(asked).toMatchObject({
      callId: 'call-1-1/cap-1',
      agents: ['lead', 'clerk'],
      tool: 'spending_cap',
    });
    const approval = { callId: asked.callId, approved: true, input: { amount: 'much' } };
    const wrong = await send('lead', { taskId: id, parts: [{ data: { approval } }] });
    expect(wrong).toMatchObject({ state: 'INPUT_REQUIRED', asked: { callId: asked.callId } });
    const right = { approval: { ...approval, input: { amount: '5' } } };
    expect(await send('lead', { taskId: id, parts: [{ data: right }] })).toMatchObject({
      state: 'COMPLETED',
    });
    const [listed] = (await ask('GET', 'spending-caps')).caps;
    expect(listed).toMatchObject({ used: '0.20', allowed: '5.00' });
  });

  it('the price of a task counts once for all its turns, and a task without room for it fails', async () => {
    await put('agents/parrot', {
      name: 'parrot',
      description: 'parrot',
      runtime: 'echo',
      price: { perTask: '0.02' },
    });
    await cap('agent', 'parrot', 'day', '0.03');
    expect(await send('parrot')).toMatchObject({ state: 'COMPLETED' });
    expect(await used()).toEqual({ 'agent parrot': '0.02' });
    const refused = await send('parrot');
    expect(refused.state).toBe('FAILED');
    expect(refused.text).toMatch(
      /^The spending cap of the agent "parrot" for a day, .* no room for another task: .*, and a task costs 0.02 USD\./,
    );
    expect(await put('agents/parrot', { ...agentOf('parrot', []), price: { perTask: '-1' } })).toMatchObject({
      status: 400,
    });
  });

  it('webhooks are notified once when 80 % of a cap are used, and the audit log has it', async () => {
    const receiver = await Receiver.start();
    const hook = { url: receiver.url, states: ['canceled'] };
    const { id: webhookId, secret } = await ask('POST', 'webhooks', hook);
    await ask('POST', 'webhooks', { ...hook, agents: ['lead'] });
    const { id } = await cap('agent', 'clerk', 'day', '0.25');
    await send('clerk');
    await receiver.reach(1);
    const [notice] = receiver.received;
    expect(notice!.json).toEqual({
      type: 'spending.warning',
      timestamp: expect.any(String),
      data: {
        webhook_id: webhookId,
        cap_id: id,
        of: 'agent',
        subject: 'clerk',
        used_by: expect.any(String),
        period: 'day',
        period_start: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
        amount: '0.25',
        used: '0.20',
        currency: 'USD',
        set_by: 'tenant',
      },
    });
    const headers = notice!.headers as Record<string, string>;
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${JSON.stringify(notice!.json)}`;
    const key = Buffer.from((secret as string).slice('whsec_'.length), 'base64');
    expect(headers['webhook-signature']).toContain(createHmac('sha256', key).update(signed).digest('base64'));
    // It is over 80 % for the rest of the day. The next event is that of another cap.
    await cap('agent', 'clerk', 'day', '0.45');
    await send('clerk');
    await cap('tenant', '', 'day', '0.25');
    await send('clerk');
    await receiver.reach(2);
    expect(receiver.received.map(({ json }) => (json as any).data.of)).toEqual(['agent', 'tenant']);
    const { records } = await ask('GET', 'audit?action=cap.warning');
    expect(records.map(({ target }: any) => target.name)).toContain(id);
    receiver.close();
  });

  nightlyIt('a call whose worker dies takes no room twice, and what it reserved is not lost', async () => {
    await cap('agent', 'clerk', 'day', '0.05');
    let asked = (): void => undefined;
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    provider.answer(() => {
      asked();
      return { after: new Promise(() => undefined) };
    });
    const sent = send('clerk');
    await isAsked;
    provider.answer(() => ({ text: 'done', ...USAGE }));
    await stack.replaceWorkers();
    expect(await sent).toMatchObject({ state: 'COMPLETED' });
    expect(await used()).toEqual({ 'agent clerk': '0.20' });
  });
});

const agentOf = (name: string, agents: string[]) => ({
  name,
  description: name,
  runtime: 'llm',
  config: {
    model: 'openai-compatible/m',
    baseUrl: provider.url,
    prompt: `You are ${name}.`,
    maxOutputTokens: 20,
    agents,
  },
});

async function ask(method: string, path: string, body?: object): Promise<any> {
  const { status, json } = await stack.rest(tenant.token).call(method, `/v1/${path}`, body);
  return { status, ...json };
}
const put = (path: string, body: object) => ask('PUT', path, body);
const cap = (of: string, subject: string, period: string, amount: string, onLimit = 'fail') =>
  put('spending-caps', { of, subject, period, amount, on_limit: onLimit });
const used = async (): Promise<object> =>
  Object.fromEntries(
    (await ask('GET', 'spending-caps')).caps.map((each: any) => [`${each.of} ${each.subject}`, each.used]),
  );

/** What became of a message to an agent: the state, and what the agent says of it. */
async function send(agent: string, message: object = {}): Promise<Sent> {
  const caller = new RawCaller(stack.url(0, agent), tenant.token);
  const params = sendParams('go');
  const { result } = await caller.call('SendMessage', {
    ...params,
    message: { ...params.message, ...message },
  });
  const { id, status } = result!.task;
  const [text, data] = status.message?.parts ?? [];
  const state = status.state.slice('TASK_STATE_'.length);
  return { id, state, text: text?.text ?? '', ...(data && { asked: data.data.approval }) };
}
interface Sent {
  id: string;
  state: string;
  text: string;
  asked?: any;
}
const say = (agent: string, taskId: string, text: string) => send(agent, { taskId, parts: [{ text }] });
