import { randomUUID } from 'node:crypto';
import { Hold, times } from '../support/hold.js';
import { PATIENT, startMcpServer, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { OpenIdProvider } from '../support/open-id-provider.js';
import { type Frame, RawCaller, type RpcAnswer, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import { exchange, type Wired } from '../support/wire.js';

const hold = new Hold();
const startStack = shareStack('postgres', {
  ...hold.env,
  OUTBOUND_ALLOW: '127.0.0.1',
  BATON_MASTER_KEY: MASTER_KEY,
});
const ASKS = 'TASK_STATE_INPUT_REQUIRED';
const CANCELED = 'TASK_STATE_CANCELED';
const UNKNOWN = '0198c0de-0000-7000-8000-000000000000';
/** Agents that pay, and their terms of approval. */
const PAYERS: [string, object][] = [
  ['payer', {}],
  ['kiosk', { guests: true }],
  ['bank', { by: 'other' }],
];
const ASKING = { metadata: { echo: { askInput: true } } };

/** Every way to name a task of an agent. */
const CALLS: [string, (id: string) => object][] = [
  ['GetTask', (id) => ({ id })],
  ['CancelTask', (id) => ({ id })],
  ['SubscribeToTask', (id) => ({ id })],
  ['SendMessage', (id) => sendParams('mine now', { taskId: id })],
  ['SendStreamingMessage', (id) => sendParams('mine now', { taskId: id })],
];

let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;
let server: TestMcpServer;

const hostOf = (agent: string): string => `${agent}.open.example`;
const tokenCaller = (token: string, agent = 'echo') => new RawCaller(stack.url(0, agent), token);
const token = (...scopes: string[]) => stack.createToken(tenant.slug, ...scopes);

const rest = (bearer: string, method: string, path: string, body?: object) =>
  stack.rest(bearer).call(method, path, body);

/** A guest of the public host of an agent, who is identified by a secret of its own or by its address. */
class Guest {
  constructor(
    private readonly agent: string,
    private readonly secret?: string,
  ) {}

  static unique = (agent: string): Guest => new Guest(agent, randomUUID());

  async call(method: string, params: object, version = '1.0'): Promise<RpcAnswer> {
    const headers = {
      host: hostOf(this.agent),
      'content-type': 'application/json',
      'a2a-version': version,
      'baton-guest': this.secret,
    };
    const body = { jsonrpc: '2.0', id: 1, method, params };
    const answer = await exchange(stack.apis[0]!.url, { method: 'POST', path: '/', headers, body });
    return answer.json as RpcAnswer;
  }

  async send(text: string, more: object = {}): Promise<Wired> {
    const { result, error } = await this.call('SendMessage', sendParams(text, more));
    if (!result) throw new Error(JSON.stringify(error));
    return result.task;
  }

  /** Another turn of the thread of that id. */
  async say(id: string, text: string): Promise<string> {
    const message = { role: 'user', parts: [{ type: 'text', text }] };
    return (await this.call('tasks/send', { id, message })).result!.artifacts[0].parts[0].text as string;
  }
}

interface Asker {
  call(method: string, params: object): Promise<RpcAnswer>;
}

/** For the asker, the task looks in every way as if it did not exist, and nothing becomes of it. */
async function expectHidden(asker: Asker, id: string): Promise<void> {
  for (const [method, params] of CALLS) {
    const answer = JSON.stringify(await asker.call(method, params(id)));
    expect(answer).toContain('-32001');
    expect(answer.replaceAll(id, UNKNOWN)).toBe(JSON.stringify(await asker.call(method, params(UNKNOWN))));
  }
}

describe('owners of tasks', () => {
  beforeAll(async () => {
    [provider, server] = await Promise.all([
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('pay', 'paid')] }),
    ]);
    stack = await startStack();
    tenant = await stack.createTenant();
    const mcp = [{ ...PATIENT, name: 'desk', url: server.url, allow: ['pay'], approval: ['pay'] }];
    const settings = { model: 'openai-compatible/m', baseUrl: provider.url, prompt: 'Pay.', tools: { mcp } };
    for (const [slug, approvals] of PAYERS) {
      const config = { ...settings, approvals };
      const agent = { slug, name: slug, description: 'Pays', runtime: 'llm', config };
      expect((await rest(tenant.token, 'POST', '/v1/agents', agent)).status).toBe(201);
    }
    for (const name of ['echo', 'recall', ...PAYERS.map(([slug]) => slug)]) {
      await stack.baton('hosts', 'bind', hostOf(name), '--tenant', tenant.slug, '--agent', name, '--public');
    }
  });
  beforeEach(() => {
    server.calls.length = 0;
    provider.answer(({ body }) =>
      JSON.stringify(body).includes('"role":"tool"')
        ? { text: 'done' }
        : { calls: [{ name: 'desk_pay', input: { euros: 100 } }] },
    );
  });
  afterAll(async () => {
    await Promise.all([provider.stop(), server.stop()]);
    hold.remove();
  });

  describe('a guest of a public host', () => {
    const sequenceOf = async (id: string): Promise<unknown[]> => {
      const { text } = await rest(tenant.token, 'GET', `/v1/tasks/${id}/artifacts`);
      return [(JSON.parse(text) as { as_of_event: number }).as_of_event];
    };

    it('reaches no task of a token, and none of another guest', async () => {
      const { result } = await tokenCaller(tenant.token).call('SendMessage', sendParams('secret', ASKING));
      const theirs = result!.task.id as string;
      const before = await sequenceOf(theirs);
      const [anne, bert] = [Guest.unique('echo'), Guest.unique('echo')];
      const annes = (await anne.send('secret', ASKING)).id as string;
      await expectHidden(anne, theirs);
      await expectHidden(bert, annes);
      await expectHidden(new Guest('echo'), annes);
      expect(await sequenceOf(theirs)).toEqual(before);
      expect((await anne.call('GetTask', { id: annes })).result!.status.state).toBe(ASKS);
      expect((await anne.call('CancelTask', { id: annes })).result!.status.state).toBe(CANCELED);
      // For the tenant's own readers, tasks of guests are tasks as any other.
      expect((await rest(tenant.token, 'GET', `/v1/tasks/${annes}`)).json).toMatchObject({
        owner: expect.stringMatching(/^guest:echo\.open\.example:[\w-]{22}$/),
      });
    });

    it('learns nothing of what another has said under the same id, in the same context or by reference', async () => {
      const [anne, bert] = [Guest.unique('recall'), Guest.unique('recall')];
      expect(await anne.say('main', 'my card is 4711')).toBe('my card is 4711');
      expect(await bert.say('main', 'what is my card?')).toBe('what is my card?');
      expect(await anne.say('main', 'what is my card?')).toBe('my card is 4711 | what is my card?');
      const contextId = randomUUID();
      const ask = (guest: Guest, text: string, more: object = {}) => guest.send(text, { contextId, ...more });
      const annes = await ask(anne, 'my card is 4711');
      const saidTo = ({ artifacts }: Wired) => artifacts[0].parts[0].text as string;
      expect(saidTo(await ask(bert, 'and mine?'))).toBe('and mine?');
      expect(saidTo(await ask(bert, 'and this?', { contextId: '', referenceTaskIds: [annes.id] }))).toBe(
        'and this?',
      );
      expect(saidTo(await ask(anne, 'and mine?'))).toBe('my card is 4711 | and mine?');
      const withToken = await tokenCaller(tenant.token, 'recall').call(
        'SendMessage',
        sendParams('and mine?', { contextId }),
      );
      expect(saidTo(withToken.result!.task)).toBe('and mine?');
    });

    it('has message ids of its own', async () => {
      const params = sendParams('the same');
      const ids = new Set<string>();
      for (const guest of [Guest.unique('echo'), Guest.unique('echo'), new Guest('echo')]) {
        for (let i = 0; i < 2; i++)
          ids.add((await guest.call('SendMessage', params)).result!.task.id as string);
      }
      ids.add((await tokenCaller(tenant.token).call('SendMessage', params)).result!.task.id as string);
      expect(ids.size).toBe(4);
    });

    it('approves nothing for another', async () => {
      const [anne, bert] = [Guest.unique('payer'), Guest.unique('payer')];
      const asked = await anne.send('pay the rent');
      expect(asked.status.state).toBe(ASKS);
      const yes = { data: { approval: { approved: true } } };
      for (const parts of [[{ text: 'yes' }], [yes]]) {
        const message = { ...sendParams('').message, taskId: asked.id as string, parts };
        expect((await bert.call('SendMessage', { message })).error?.code).toBe(-32001);
      }
      expect(server.calls).toEqual([]);
      expect((await anne.call('GetTask', { id: asked.id })).result!.status.state).toBe(ASKS);
    });

    it('approves calls of its own only where the agent allows it', async () => {
      const answered = async (agent: string) => {
        const anne = Guest.unique(agent);
        const { id } = await anne.send('pay the rent');
        return anne.call('SendMessage', sendParams('yes', { taskId: id as string }));
      };
      expect((await answered('payer')).error?.message).toContain('guests may not approve');
      // Nor in any other version.
      const anne = Guest.unique('payer');
      const { id: taskId } = await anne.send('pay the rent');
      const yes = { taskId: taskId as string, messageId: randomUUID() };
      const legacy = { ...yes, kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'yes' }] };
      const oldest = {
        id: taskId as string,
        message: { role: 'user', parts: [{ type: 'text', text: 'yes' }] },
      };
      for (const answer of [
        await anne.call('SendStreamingMessage', sendParams('yes', yes)),
        await anne.call('message/send', { message: legacy }, '0.3'),
        await anne.call('message/stream', { message: legacy }, '0.3'),
        await anne.call('tasks/send', oldest, ''),
      ])
        expect(JSON.stringify(answer)).toContain('guests may not approve');
      expect(server.calls).toEqual([]);
      expect((await answered('kiosk')).result!.task.status.state).toBe('TASK_STATE_COMPLETED');
      expect(server.calls).toHaveLength(1);
    });

    it('is refused what would use up the limits of the tenant, and tokens are not', async () => {
      const host = await stack.createTenant();
      const name = `${host.slug}.open.example`;
      await stack.baton('hosts', 'bind', name, '--tenant', host.slug, '--agent', 'echo', '--public');
      const limits = ['--runs-at-once', '1', '--tasks-waiting', '4', '--guest-share', '50'];
      await stack.baton('tenants', 'limits', host.slug, ...limits);
      const params = { ...sendParams('x', { metadata: { echo: { delayMs: 600_000 } } }) };
      const configuration = { returnImmediately: true };
      const send = async (caller: Asker) => {
        const { message } = params;
        const own = { ...params, message: { ...message, messageId: randomUUID() }, configuration };
        return (await caller.call('SendMessage', own)).error?.message;
      };
      const guests = Array.from({ length: 4 }, () => Guest.unique(host.slug));
      const refusal = expect.stringContaining('tasksWaiting of this tenant is reached, which is 2') as string;
      const answers: (string | undefined)[] = [];
      for (const guest of guests) answers.push(await send(guest));
      expect(answers).toEqual([undefined, undefined, undefined, refusal]);
      const withToken = tokenCaller(host.token);
      expect([await send(withToken), await send(withToken)]).toEqual([undefined, undefined]);
      expect(await send(withToken)).toContain('tasksWaiting of this tenant is reached, which is 4');
    });

    it('gets an error for an invalid secret', async () => {
      const answer = await new Guest('echo', 'guessable').call('SendMessage', sendParams('hi'));
      expect(answer.error).toMatchObject({ code: -32602, message: expect.stringContaining('Baton-Guest') });
    });
  });

  describe('a token', () => {
    it('that may only call sees, lists, continues and cancels its own tasks alone', async () => {
      const [one, other] = [await token('agents:call'), await token('agents:call')];
      const [anne, bert] = [tokenCaller(one), tokenCaller(other)];
      const asked = async (caller: RawCaller) =>
        (await caller.call('SendMessage', sendParams('hi', ASKING))).result!.task.id as string;
      const [annes, berts] = [await asked(anne), await asked(bert)];
      await expectHidden(bert, annes);
      for (const path of ['', '/artifacts', '/events']) {
        const [theirs, none] = await Promise.all(
          [annes, UNKNOWN].map((id) => rest(other, 'GET', `/v1/tasks/${id}${path}`)),
        );
        expect([theirs!.status, theirs!.text.replaceAll(annes, UNKNOWN)]).toEqual([404, none!.text]);
      }
      const canceled = await rest(other, 'POST', `/v1/tasks/${annes}/cancel`);
      expect([canceled.status, canceled.json]).toMatchObject([404, { cancelled: false }]);
      const listed = (await bert.call('ListTasks', {})).result!;
      expect([listed.tasks.map(({ id }: { id: string }) => id), listed.totalSize]).toEqual([[berts], 1]);
      const tasks = (await rest(other, 'GET', '/v1/tasks')).json.tasks as { task_id: string }[];
      expect(tasks.map(({ task_id: id }) => id)).toEqual([berts]);
      expect((await anne.call('GetTask', { id: annes })).result!.status.state).toBe(ASKS);
      const answered = await anne.call('SendMessage', sendParams('here', { taskId: annes }));
      expect(answered.result!.task.id).toBe(annes);
      expect((await bert.call('CancelTask', { id: berts })).result!.status.state).toBe(CANCELED);
    });

    it('that reads all tasks of the tenant acts on those of others with tasks:write alone', async () => {
      const owner = tokenCaller(await token('agents:call'));
      const { id } = (await owner.call('SendMessage', sendParams('hi', ASKING))).result!.task as {
        id: string;
      };
      const reader = await token('agents:call', 'tasks:read');
      expect((await tokenCaller(reader).call('GetTask', { id })).result!.id).toBe(id);
      expect((await rest(reader, 'GET', `/v1/tasks/${id}`)).status).toBe(200);
      for (const [method, params] of CALLS.filter(([name]) => !/Get|Subscribe/.test(name))) {
        const { error } = await tokenCaller(reader).call(method, params(id));
        expect(JSON.stringify(error)).toContain('tasks:write');
      }
      expect((await rest(reader, 'POST', `/v1/tasks/${id}/cancel`)).status).toBe(403);
      const writer = tokenCaller(await token('agents:call', 'tasks:read', 'tasks:write'));
      expect((await writer.call('CancelTask', { id })).result!.status.state).toBe(CANCELED);
    });

    it('has ids of messages of its own, and joins no task of another by them', async () => {
      const params = sendParams('the same');
      const header = { 'idempotency-key': 'k-1' };
      const ids: string[] = [];
      for (const each of [await token(), await token()]) {
        const caller = tokenCaller(each);
        for (const headers of [{}, {}, header, header]) {
          ids.push((await caller.call('SendMessage', params, headers)).result!.task.id as string);
        }
      }
      expect(new Set(ids).size).toBe(4);
    });

    it('has ids of tasks of its own, and learns nothing of what another has said under the same', async () => {
      const [one, other] = [await token('agents:call'), await token()];
      const said = async (bearer: string, text: string): Promise<string> => {
        const message = { role: 'user', parts: [{ type: 'text', text }] };
        const params = { id: 'main', message, metadata: { agent: 'recall' } };
        const answer = await rest(bearer, 'POST', '/a2a', {
          jsonrpc: '2.0',
          id: 1,
          method: 'tasks/send',
          params,
        });
        return answer.json.result.artifacts[0].parts[0].text as string;
      };
      expect(await said(one, 'my card is 4711')).toBe('my card is 4711');
      // Whatever it may do: a name is the name of a task of its own.
      expect(await said(other, 'what is my card?')).toBe('what is my card?');
      expect(await said(one, 'what is my card?')).toBe('my card is 4711 | what is my card?');
    });

    it('approves with tasks:approve alone, not for itself where the agent forbids it, and the approver is recorded', async () => {
      const asks = async (caller: RawCaller) =>
        (await caller.call('SendMessage', sendParams('pay'))).result!.task.id as string;
      const says = (caller: RawCaller, taskId: string, more: object = {}) =>
        caller.call('SendMessage', sendParams('yes', { taskId, ...more }));
      const old = await token('agents:call');
      const refused = await says(tokenCaller(old, 'payer'), await asks(tokenCaller(old, 'payer')));
      expect(refused.error?.message).toContain('tasks:approve');
      const [one, two] = [await token(), await token()];
      const theirs = await asks(tokenCaller(one, 'bank'));
      expect((await says(tokenCaller(one, 'bank'), theirs)).error?.message).toContain('other than its owner');
      expect(server.calls).toEqual([]);
      const forged = { 'baton.approver': { principal: 'token:boss', at: new Date(0).toISOString() } };
      await says(tokenCaller(two, 'bank'), theirs, { metadata: forged });
      expect(server.calls).toHaveLength(1);
      const { task } = (await rest(one, 'GET', `/v1/tasks/${theirs}`)).json;
      const approver = task.history.at(-1).metadata['baton.approver'];
      expect(approver).toEqual({ principal: expect.stringMatching(/^token:/), at: expect.any(String) });
      expect(approver.principal).not.toBe('token:boss');
      const call = task.artifacts.find(({ metadata }: Wired) => metadata['baton.approval']);
      expect(call.metadata['baton.approval']).toEqual({
        approved: true,
        by: approver.principal,
        at: approver.at,
      });
    });

    it('reads the tasks that wait for it, and no others', async () => {
      const own = await stack.createTenant();
      const mcp = [{ ...PATIENT, name: 'desk', url: server.url, allow: ['pay'], approval: ['pay'] }];
      const settings = {
        model: 'openai-compatible/m',
        baseUrl: provider.url,
        prompt: 'Pay.',
        tools: { mcp },
      };
      for (const [slug, approvals] of PAYERS) {
        const agent = { name: slug, description: 'Pays', runtime: 'llm', config: { ...settings, approvals } };
        expect((await rest(own.token, 'PUT', `/v1/agents/${slug}`, agent)).status).toBe(201);
      }
      const made = (...scopes: string[]) => stack.createToken(own.slug, ...scopes);
      const owner = await made('agents:call', 'tasks:approve');
      const asked = async (agent: string, more: object = {}): Promise<string> =>
        (await tokenCaller(owner, agent).call('SendMessage', sendParams('pay the rent', more))).result!.task
          .id as string;
      const question = await asked('echo', ASKING);
      const payment = await asked('payer');
      const others = await asked('bank');
      const waitingFor = async (bearer: string): Promise<string[]> => {
        const { status, json } = await rest(bearer, 'GET', '/v1/tasks?answerable=true');
        expect(status).toBe(200);
        return (json.tasks as { task_id: string }[]).map(({ task_id: id }) => id);
      };
      // The payment needs another person than the owner.
      expect(await waitingFor(owner)).toEqual([question, payment]);
      const all = ['agents:call', 'tasks:read', 'tasks:write'];
      expect(await waitingFor(await made(...all, 'tasks:approve'))).toEqual([question, payment, others]);
      expect(await waitingFor(own.token)).toEqual([question, payment, others]);
      expect(await waitingFor(await made(...all))).toEqual([question]);
      // To read a task is not to answer it.
      expect(await waitingFor(await made('agents:call', 'tasks:read', 'tasks:approve'))).toEqual([]);
      expect(await waitingFor(tenant.token)).not.toContain(question);
      expect((await rest(await made('tasks:read'), 'GET', '/v1/tasks?answerable=true')).status).toBe(403);
      const { json } = await rest(owner, 'GET', '/v1/tasks?answerable=true');
      expect(json.tasks).toMatchObject([
        { first_message: 'pay the rent', question: [{ text: expect.any(String) }] },
        { first_message: 'pay the rent', approvals: [{ tool: 'desk_pay', input: { euros: 100 } }] },
      ]);
      await tokenCaller(owner, 'payer').call('SendMessage', sendParams('yes', { taskId: payment }));
      expect(await waitingFor(owner)).toEqual([question]);
    });

    it('sees the story of its task: what the model asked for, who was waited for, and what the tool was given', async () => {
      const one = await token('agents:call', 'tasks:approve');
      const author = await token('tasks:read', 'agents:write');
      const caller = tokenCaller(one, 'payer');
      const { id } = (await caller.call('SendMessage', sendParams('pay the rent'))).result!.task as {
        id: string;
      };
      await caller.call('SendMessage', sendParams('yes', { taskId: id }));
      const { spans } = (await rest(one, 'GET', `/v1/tasks/${id}/trace`)).json as {
        spans: { kind: string; name: string; state: string; ended_at: string | null; entry?: number }[];
      };
      expect(spans.map(({ kind, name, state }) => [kind, name, state])).toEqual([
        ['turn', '1', 'succeeded'],
        ['queue', '1', 'succeeded'],
        ['attempt', '1', 'succeeded'],
        ['model', 'openai-compatible/m', 'succeeded'],
        ['question', 'input-required', 'succeeded'],
        ['turn', '2', 'succeeded'],
        ['queue', '1', 'succeeded'],
        ['attempt', '1', 'succeeded'],
        ['tool', 'desk_pay', 'succeeded'],
        ['model', 'openai-compatible/m', 'succeeded'],
      ]);
      expect(spans.every(({ ended_at: end }) => end !== null)).toBe(true);
      const entries = spans.flatMap(({ entry }) => entry ?? []);
      const call = (bearer: string, entry: number) => rest(bearer, 'GET', `/v1/tasks/${id}/trace/${entry}`);
      expect((await call(author, entries[0]!)).json.model.calls).toEqual([
        { tool: 'desk_pay', input: { euros: 100 } },
      ]);
      const { tool } = (await call(author, entries[1]!)).json;
      expect(tool).toMatchObject({ tool: 'desk_pay', input: { euros: 100 }, ok: true, output: 'paid' });
      expect((await call(one, entries[1]!)).status).toBe(403);
    });

    it('writes no metadata in the name of the platform', async () => {
      const forged = { 'baton.parent': { taskId: 'x' }, 'baton.schedule': { id: 'x' }, 'baton.usage': {} };
      const said = sendParams('hi', { metadata: { ...forged, mine: 1 } });
      const parts = said.message.parts.map((part: object) => ({ ...part, metadata: { ...forged, mine: 2 } }));
      const params = { ...said, message: { ...said.message, parts }, metadata: { ...forged, mine: 3 } };
      const author = await token('agents:call', 'schedules:write');
      const { result } = await tokenCaller(author).call('SendMessage', params);
      const message = { parts, metadata: { ...forged, mine: 1 } };
      const schedule = { name: `forged-${randomUUID()}`, agent: 'echo', cron: '@yearly', message };
      expect((await rest(author, 'POST', '/v1/schedules', schedule)).status).toBe(201);
      const run = await rest(author, 'POST', `/v1/schedules/${encodeURIComponent(schedule.name)}/run`);
      for (const id of [result!.task.id as string, run.json.task_id as string]) {
        const { task } = (await rest(author, 'GET', `/v1/tasks/${id}`)).json;
        expect(task.history[0].metadata).toEqual({ mine: 1 });
        expect(task.history[0].parts[0].metadata).toEqual({ mine: 2 });
        expect(Object.keys(task.metadata)).toEqual(id === result!.task.id ? ['mine'] : ['baton.schedule']);
        expect(task.metadata['baton.schedule']).not.toEqual({ id: 'x' });
      }
    });

    it('owns the tasks of the schedules that it has made', async () => {
      const author = await token('agents:call', 'schedules:write');
      const schedule = { name: `report-${randomUUID()}`, agent: 'echo', cron: '@yearly', text: 'hi' };
      expect((await rest(author, 'POST', '/v1/schedules', schedule)).status).toBe(201);
      const path = `/v1/schedules/${encodeURIComponent(schedule.name)}/run`;
      expect((await rest(await token('schedules:write'), 'POST', path)).status).toBe(403);
      const run = await rest(await token('agents:call', 'schedules:write'), 'POST', path);
      const task = `/v1/tasks/${run.json.task_id as string}`;
      expect((await rest(author, 'GET', task)).status).toBe(200);
      expect((await rest(await token('agents:call'), 'GET', task)).status).toBe(404);
    });
  });

  describe('a user of an OpenID provider', () => {
    let openId: OpenIdProvider;
    beforeAll(async () => {
      openId = await OpenIdProvider.start();
      const of = ['--tenant', tenant.slug, '--audience', 'baton', '--allow-http'];
      await stack.addIssuer(openId.url, ...of, '--grant', 'tasks:read if groups=staff');
    });
    afterAll(() => openId.stop());

    it('sees, lists and continues its own tasks alone, with each of its tokens', async () => {
      openId.terms.claims = { carol: { groups: ['staff'] } };
      const [ada, bob] = [await openId.userToken('ada'), await openId.userToken('bob')];
      const { task } = (await tokenCaller(ada).call('SendMessage', sendParams('hi', ASKING))).result!;
      const id = task.id as string;
      await expectHidden(tokenCaller(bob), id);
      await expectHidden(tokenCaller(await token('agents:call')), id);
      expect((await rest(bob, 'GET', '/v1/tasks')).json).toMatchObject({ tasks: [] });
      expect((await rest(ada, 'GET', `/v1/tasks/${id}`)).json).toMatchObject({
        owner: expect.stringMatching(/^user:[\w-]{43}$/),
      });
      const carol = await openId.userToken('carol');
      expect((await tokenCaller(carol).call('GetTask', { id })).result!.id).toBe(id);
      expect((await tokenCaller(carol).call('CancelTask', { id })).error?.message).toContain('tasks:write');
      await openId.rotate();
      const again = tokenCaller(await openId.userToken('ada'));
      expect((await again.call('SendMessage', sendParams('here', { taskId: id }))).result!.task.id).toBe(id);
    });

    it('has the rights of its token, at this server and tenant alone', async () => {
      const machine = await openId.machineToken();
      expect((await rest(machine, 'GET', '/v1/tasks')).status).toBe(200);
      const forbidden = await rest(machine, 'PUT', '/v1/secrets/x', { value: 'y' });
      expect([forbidden.status, forbidden.text]).toEqual([403, expect.stringContaining('secrets:write')]);
      const [header, payload] = machine.split('.');
      for (const forged of [`${header!}.${payload!}.AAAA`, `${machine.slice(0, -6)}AAAAAA`]) {
        const refused = await rest(forged, 'GET', '/v1/tasks');
        expect([refused.status, refused.text]).toEqual([
          401,
          expect.stringContaining('not signed by an issuer'),
        ]);
      }
      openId.terms.audience = 'another-server';
      const elsewhere = await rest(await openId.machineToken(), 'GET', '/v1/tasks');
      expect([elsewhere.status, elsewhere.text]).toEqual([401, expect.stringContaining('audience')]);
      openId.terms.audience = 'baton';
    });

    it('loses its streams when its token expires, and goes on with the next one', async () => {
      hold.hold();
      /** A stream until the token expires. A token that has expired when the message arrives is refused: a slow machine gets more. */
      const readFor = async (seconds: number): Promise<[token: string, frames: Frame[]]> => {
        openId.terms.seconds = seconds;
        const ada = await openId.userToken('ada');
        openId.terms.seconds = 3600;
        const params = sendParams(times(3, 'slow'));
        const read: Frame[] = [];
        try {
          for await (const frame of tokenCaller(ada, 'pacer').stream('SendStreamingMessage', params))
            read.push(frame);
        } catch (error) {
          if (read.length > 0 || !String(error).includes('the token has expired')) throw error;
          return readFor(2 * seconds);
        }
        return [ada, read];
      };
      const [ada, frames] = await readFor(5);
      expect(frames.pop()!.data.error).toMatchObject({ message: 'the token has expired' });
      expect((await rest(ada, 'GET', '/v1/tasks')).status).toBe(401);
      hold.release();
      const { id } = frames[0]!.data.result!.task as { id: string };
      const next = tokenCaller(await openId.userToken('ada'), 'pacer');
      for await (const frame of next.stream('SubscribeToTask', { id }, frames.at(-1)!.id)) frames.push(frame);
      expect(frames.map((frame) => frame.id)).toEqual(frames.map((_, i) => i + 1));
      expect(frames.at(-1)!.data.result!.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    });

    it('loses its streams when its provider is no longer trusted', async () => {
      const trusted = JSON.parse(await stack.baton('issuers', 'list', '--json')) as { id: string }[];
      const ada = await openId.userToken('ada');
      hold.hold();
      const params = sendParams(times(3, 'slow'));
      const frames: Frame[] = [];
      for await (const frame of tokenCaller(ada, 'pacer').stream('SendStreamingMessage', params)) {
        frames.push(frame);
        if (frames.length === 3)
          await stack.baton('issuers', 'remove', trusted[0]!.id, '--tenant', tenant.slug);
      }
      const message = 'the issuer of the token is no longer trusted';
      expect(frames.pop()!.data.error).toMatchObject({ message });
      expect((await rest(ada, 'GET', '/v1/tasks')).status).toBe(401);
    });
  });
});
