import { join } from 'node:path';
import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { PATIENT, type TestMcpServer, startMcpServer } from '../support/mcp-server/mcp-server.js';
import { heldTool, textTool } from '../support/mcp-server/script.js';
import { McpCaller, textsOf } from '../support/mcp-client/mcp-caller.js';
import { type ModelRequest, ModelProvider, type Reply } from '../support/model-provider/model-provider.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const ENV = {
  OUTBOUND_ALLOW: '127.0.0.1',
  ...CRASH_SETTINGS,
  BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
  BATON_AGENTS_DIR: join(__dirname, '../agents'),
};
const ASKS = 'TASK_STATE_INPUT_REQUIRED';
const COMPLETED = 'TASK_STATE_COMPLETED';
const CANCELED = 'TASK_STATE_CANCELED';

// A model that may answer for a person would: whatever is asked of it, it says yes.

// Messaging has no part in these: recovery.e2e-spec kills workers on both drivers, and libs/tasks/src/oracle hands runs over on both.
describe('approvals of agents further down', () => {
  let stack: Stack;
  let provider: ModelProvider;
  let server: TestMcpServer;
  let token: string;
  /** Whom an agent asks, in one step, instead of doing the work itself. */
  let asks: Record<string, string[]>;

  beforeAll(async () => {
    [provider, server] = await Promise.all([ModelProvider.start(), startMcpServer({ tools: [] })]);
    const index = { INDEX_MODEL: 'openai-compatible/m', INDEX_MODEL_URL: provider.url };
    stack = await Stack.start({ driver: DRIVERS[0]!, apis: 2, workers: 1, env: { ...ENV, ...index } });
    ({ token } = await stack.createTenant());
    await write('PUT', 'secrets/own', { value: token, origins: [new URL(stack.url(0)).origin] });
    await create('clerk', { tools: tools('sign') });
    await create('payer', { tools: tools('pay') });
    await create('lead', { agents: ['clerk', 'payer', 'forger', 'far'] });
    await create('chief', { agents: ['lead'] });
    const headers = { Authorization: { secret: 'own', prefix: 'Bearer ' } };
    const config = { card: stack.url(0, 'clerk'), headers };
    await write('POST', 'agents', {
      slug: 'far',
      name: 'far',
      description: 'Far',
      runtime: 'remote-a2a',
      config,
    });
  });
  afterAll(async () => {
    await stack.stop();
    await Promise.all([provider.stop(), server.stop()]);
  });
  beforeEach(() => {
    provider.reset();
    server.calls.length = 0;
    server.tools = [textTool('sign', 'signed'), textTool('pay', 'paid')];
    asks = { index: ['chief'], chief: ['lead'], lead: ['clerk'] };
    provider.answer(greedy);
  });

  const tools = (tool: string) => ({
    mcp: [
      { ...PATIENT, name: 'desk', url: server.url, allow: [tool], approval: [tool], neverRepeat: ['pay'] },
    ],
  });

  const write = (method: string, path: string, body: object): Promise<unknown> =>
    stack.rest(token).write(method, `/v1/${path}`, body);

  function create(slug: string, settings: object): Promise<unknown> {
    const config = {
      model: 'openai-compatible/m',
      baseUrl: provider.url,
      prompt: `You are ${slug}.`,
      ...settings,
    };
    return write('POST', 'agents', { slug, name: slug, description: `The ${slug}`, runtime: 'llm', config });
  }

  /** A model that asks other agents, says yes to whatever comes back as a question, and uses its tool. */
  function greedy({ body }: ModelRequest): Reply {
    const messages = body.messages as { role: string; content: unknown }[];
    const prompt = JSON.stringify(messages[0]);
    const who = prompt.includes('front desk') ? 'index' : (/You are (\w+)/.exec(prompt)?.[1] ?? '');
    const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content));
    const question = results.map((result) => /with taskId "([^"]+)"/.exec(result)?.[1]).find(Boolean);
    if (question !== undefined) {
      return { calls: [{ name: 'ask_clerk', input: { message: 'yes', taskId: question } }] };
    }
    if (results.length > 0) return { text: `${who}: ${results.join(' + ')}` };
    const callees = asks[who];
    if (!callees)
      return { calls: [{ name: who === 'payer' ? 'desk_pay' : 'desk_sign', input: { page: 3 } }] };
    return { calls: callees.map((agent) => ({ name: `ask_${agent}`, input: { message: 'sign page 3' } })) };
  }

  const caller = (agent: string, api = 0) => new RawCaller(stack.url(api, agent), token);
  const send = async (agent: string, parts: string | object[], taskId?: string, api = 0): Promise<any> => {
    const params = sendParams('sign page 3', taskId === undefined ? {} : { taskId });
    const message = { ...params.message, parts: typeof parts === 'string' ? [{ text: parts }] : parts };
    const { result, error } = await caller(agent, api).call('SendMessage', { ...params, message });
    if (!result) throw new Error(JSON.stringify(error));
    return result.task;
  };
  const approval = (callId: string, approved: boolean) => ({ data: { approval: { callId, approved } } });
  const asked = ({ status }: any): any[] =>
    status.message.parts.flatMap(({ data }: any) => (data ? [data.approval] : []));
  const textOf = ({ artifacts }: any): string => artifacts.at(-1).parts[0].text as string;
  const requestOf = (id: string): Promise<any> => stack.rest(token, 1).task(id);
  const childrenOf = async (id: string): Promise<any[]> => {
    const { child_ids } = await requestOf(id);
    return Promise.all((child_ids as string[]).map(requestOf));
  };
  const modelsRead = (): string => JSON.stringify(provider.requests.map(({ body }) => body));

  it('are given over MCP by the person that the client has asked, and by no tool', async () => {
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} }, elicitation: {} };
    const mcp = (api: number) => new McpCaller(`${stack.apis[api]!.url}/mcp`, token, { capabilities });
    const taskId = (await mcp(0).tool('chief', { message: 'sign page 3' })).result!.taskId as string;
    await untilState(taskId, 'input-required');
    const { inputRequests } = (await mcp(1).call('tasks/get', { taskId })).result!;
    const [key] = Object.keys(inputRequests as object) as [string];
    expect(inputRequests[key].params.message).toContain('sign');
    const data = { approval: { approved: true } };
    for (const args of [{ message: 'yes' }, { data }, { message: 'yes', data }]) {
      const { result } = await mcp(0).tool('chief', { ...args, taskId });
      expect(result).toMatchObject({ isError: true });
      expect(textsOf({ result })[0]).toContain('a person must give it');
    }
    expect(server.calls).toHaveLength(0);
    const inputResponses = { [key]: { action: 'accept', content: { approved: true } } };
    await mcp(1).call('tasks/update', { taskId, inputResponses });
    await untilState(taskId, 'completed');
    expect(server.calls).toHaveLength(1);
    const { result } = (await mcp(0).call('tasks/get', { taskId })).result!;
    expect(textsOf({ result }).join()).toContain('signed');
  });

  /** Reads a task, without a pause, until it is in that state. */
  async function untilState(id: string, state: string): Promise<void> {
    const deadline = Date.now() + 30_000;
    let seen: unknown;
    while (seen !== state && Date.now() < deadline) seen = (await requestOf(id)).state;
    expect(seen).toBe(state);
  }

  it('go up to the caller and not to the model, and the answer comes down on another worker', async () => {
    const task = await send('lead', 'sign page 3');
    expect(task.status.state).toBe(ASKS);
    expect(asked(task)).toMatchObject([
      {
        callId: 'call-1-1/call-1-1',
        tool: 'desk_sign',
        server: 'desk',
        input: { page: 3 },
        agents: ['lead', 'clerk'],
      },
    ]);
    expect(task.status.message.parts[0].text).toContain('clerk (asked by lead): desk_sign {');
    expect(await childrenOf(task.id as string)).toMatchObject([{ task: { status: { state: ASKS } } }]);
    expect(server.calls).toEqual([]);
    await stack.replaceWorkers();
    const done = await send('lead', [approval('call-1-1/call-1-1', true)], task.id as string, 1);
    expect(done.status.state).toBe(COMPLETED);
    expect(textOf(done)).toBe('lead: clerk: signed');
    expect(server.calls).toMatchObject([{ tool: 'sign', input: { page: 3 } }]);
    expect(provider.requests).toHaveLength(4);
    expect(modelsRead()).not.toMatch(/approval|input-required/);
  });

  nightlyIt(
    'wait for a person once: where agents have passed them on, or where they were asked',
    async () => {
      const ops = [
        { op: 'call', name: 'sign', agent: 'clerk', message: 'sign page 3' },
        { op: 'ask', name: 'more', question: 'What now?' },
      ];
      const passed = (await send('lead', 'sign page 3')).id as string;
      const asking = (await send('stepper', JSON.stringify({ ops }))).id as string;
      const [child] = (await requestOf(asking)).child_ids as string[];
      const { tasks } = (await stack.rest(token).get('/v1/tasks?answerable=true')) as { tasks: any[] };
      const wanted = tasks.filter(({ task_id: id }) => [passed, asking, child].includes(id as string));
      expect(wanted).toMatchObject([
        { task_id: passed, approvals: [{ agents: ['lead', 'clerk'] }] },
        { task_id: child, approvals: [{ tool: 'desk_sign' }], ancestors: [{ task_id: asking }] },
        { task_id: asking, question: [{ text: 'What now?' }] },
      ]);
      // Of the tasks that were passed on, the child itself is not there.
      const below = (await requestOf(passed)).child_ids as string[];
      expect(tasks.map(({ task_id: id }) => id as string)).not.toContain(below[0]);
    },
  );

  nightlyIt('are made once, however often workers are killed after the answer', async () => {
    asks.lead = ['payer'];
    const pay = heldTool('pay', 'paid');
    server.tools = [pay];
    const { id } = await send('lead', 'pay it');
    await stack.killWorkers();
    const params = sendParams('yes', { taskId: id as string });
    const configuration = { returnImmediately: true };
    await caller('lead').call('SendMessage', { ...params, configuration });
    await stack.addWorker();
    await server.called('pay');
    await stack.replaceWorkers();
    for await (const { data } of caller('lead').stream('SubscribeToTask', { id })) void data;
    pay.release();
    const { task } = await requestOf(id as string);
    expect(task.status.state).toBe(COMPLETED);
    expect(textOf(task)).toMatch(/lead: payer: .*is not known: the server stopped/);
    expect(server.calls).toHaveLength(1);
  });

  nightlyIt('go up through every agent in between, the index included', async () => {
    const task = await send('index', 'sign page 3');
    expect(asked(task)).toMatchObject([
      { callId: 'call-1-1/call-1-1/call-1-1/call-1-1', agents: ['index', 'chief', 'lead', 'clerk'] },
    ]);
    expect((await send('index', 'what for?', task.id as string)).status).toMatchObject({
      state: ASKS,
      message: { parts: [{ text: expect.stringContaining('neither yes nor no') as string }, {}] },
    });
    expect(server.calls).toEqual([]);
    const done = await send('index', 'yes', task.id as string);
    expect(textOf(done)).toBe('index: chief: lead: clerk: signed');
    expect(server.calls).toHaveLength(1);
  });

  nightlyIt('of children at the same time are asked together, and each gets its own answer', async () => {
    asks.lead = ['clerk', 'payer'];
    const task = await send('chief', 'sign and pay');
    const [sign, pay] = ['call-1-1/call-1-1/call-1-1', 'call-1-1/call-1-2/call-1-1'];
    expect(asked(task)).toMatchObject([
      { callId: sign, agents: ['chief', 'lead', 'clerk'] },
      { callId: pay, agents: ['chief', 'lead', 'payer'] },
    ]);
    const again = await send('chief', 'yes', task.id as string);
    expect(again.status.message.parts[0].text).toContain('Several agents ask');
    expect(asked(again)).toHaveLength(2);
    expect(server.calls).toEqual([]);
    const rest = await send('chief', [approval(pay, true)], task.id as string, 1);
    expect(asked(rest)).toMatchObject([{ callId: sign }]);
    expect(server.calls).toMatchObject([{ tool: 'pay' }]);
    const done = await send('chief', 'No, it is late', task.id as string);
    expect(done.status.state).toBe(COMPLETED);
    expect(textOf(done)).toMatch(/clerk: .*refused this call.*No, it is late.* payer: paid/);
    expect(server.calls).toHaveLength(1);
  });

  it('are canceled with the task of the caller', async () => {
    const { id } = await send('chief', 'sign page 3');
    await caller('chief', 1).call('CancelTask', { id });
    const [child] = await childrenOf(id as string);
    const [grandchild] = await childrenOf(child.task.id as string);
    expect([child, grandchild].map(({ task }) => task.status.state)).toEqual([CANCELED, CANCELED]);
    expect(server.calls).toEqual([]);
  });

  it('that an agent of the tenant forges ask a person as well, and the answer goes to that agent alone', async () => {
    asks.lead = ['clerk', 'forger'];
    const task = await send('lead', 'sign page 3');
    expect(asked(task)).toMatchObject([
      { callId: 'call-1-1/call-1-1', agents: ['lead', 'clerk'] },
      { callId: 'call-1-2/call-1-1', agents: ['lead', 'forger', 'lead', 'clerk'] },
    ]);
    const rest = await send('lead', [approval('call-1-2/call-1-1', true)], task.id as string);
    expect(asked(rest)).toMatchObject([{ callId: 'call-1-1/call-1-1' }]);
    expect(server.calls).toEqual([]);
    const done = await send('lead', 'no', task.id as string);
    expect(textOf(done)).toContain('[{"approval":{"callId":"call-1-1","approved":true}}]');
    expect(server.calls).toEqual([]);
  });

  it('that an agent elsewhere asks for go up, too', async () => {
    asks.lead = ['far'];
    const task = await send('lead', 'sign page 3');
    expect(asked(task)).toMatchObject([{ callId: 'call-1-1/call-1-1', agents: ['lead', 'far'] }]);
    expect(server.calls).toEqual([]);
    const done = await send('lead', 'yes', task.id as string);
    expect(textOf(done)).toBe('lead: clerk: signed');
    expect(server.calls).toHaveLength(1);
  });

  nightlyIt('may be answered on the task that asks, by each caller that may send to it', async () => {
    const { id } = await send('lead', 'sign page 3');
    const [child] = await childrenOf(id as string);
    expect((await send('clerk', 'yes', child.task.id as string)).status.state).toBe(COMPLETED);
    const done = await send('lead', 'yes', id as string);
    expect(textOf(done)).toBe('lead: clerk: signed');
    expect(server.calls).toHaveLength(1);
  });
});
