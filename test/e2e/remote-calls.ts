import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { DRIVERS } from '../support/index.js';
import { NIGHTLY, nightlyIt } from '../support/nightly.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import {
  type ModernMcpServer,
  type ModernTask,
  startModernServer,
} from '../support/mcp-server/modern-server.js';
import { PATIENT } from '../support/mcp-server/mcp-server.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import { until } from '../support/until.js';

/** An agent in code that makes one call. */
const CODE = `
import { defineAgent } from '@baton/agent';

export default defineAgent(async ({ text, tools }) => {
  const { call } = await tools(JSON.parse(text));
  const { ok, text: said, content } = await call('desk_report', {});
  return ok ? said ?? JSON.stringify(content) : 'failed';
});
`;
const YAML =
  'name: Coder\ndescription: Writes reports.\nversion: 1.0.0\nruntime: executor\nretry: { mode: restart, attempts: 4 }\n';
const says = (text: string) => ({ content: [{ type: 'text', text }] });

const KINDS = ['an llm agent', 'an agent in code'];
/** At night each kind on each driver. By day an llm agent: `remote-calls.spec` has the same of an agent in code. */
const ALL = NIGHTLY
  ? KINDS.flatMap((kind) => DRIVERS.map((driver) => ({ driver, kind })))
  : [{ driver: 'postgres' as const, kind: KINDS[0]! }];

describe.each(ALL)('a tool that answers $kind with a task, over $driver', ({ driver, kind }) => {
  const isCode = kind === KINDS[1];
  const startStack = shareStack(
    driver,
    { ...CRASH_SETTINGS, OUTBOUND_ALLOW: '127.0.0.1' },
    {
      installAgents: (agents) => {
        const folder = join(agents, 'reporter');
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, 'index.mjs'), CODE);
        writeFileSync(join(folder, 'agent.yaml'), YAML);
      },
    },
  );
  let stack: Stack;
  let provider: ModelProvider;
  let server: ModernMcpServer;
  let caller: RawCaller;
  let tenant: TestTenant;

  beforeAll(async () => {
    [stack, provider, server] = await Promise.all([
      startStack(),
      ModelProvider.start(),
      startModernServer({
        tools: [{ name: 'report', call: () => server.newTask({ pollIntervalMs: 100 }) }],
      }),
    ]);
    tenant = await stack.createTenant();
    const agent = {
      name: 'Clerk',
      description: 'Writes reports.',
      runtime: 'llm',
      config: {
        model: 'openai-compatible/clerk-1',
        baseUrl: provider.url,
        tools: { mcp: [desk()] },
      },
    };
    await stack.rest(tenant.token).write('PUT', '/v1/agents/clerk', agent);
    caller = new RawCaller(stack.url(0, isCode ? 'reporter' : 'clerk'), tenant.token);
  });

  afterAll(() => Promise.all([provider.stop(), server.stop()]));

  beforeEach(() => {
    provider.reset();
    server.calls.length = 0;
    server.tasks.clear();
    provider.reply({ calls: [{ name: 'desk_report', input: {} }] }, { text: 'Here it is.' });
  });

  const desk = () => ({ ...PATIENT, name: 'desk', url: server.url, neverRepeat: 'all' });

  const write = () => send([{ text: isCode ? JSON.stringify({ mcp: [desk()] }) : 'Write the report' }]);

  const send = async (parts: object[], taskId?: string) => {
    const params = sendParams('', taskId === undefined ? {} : { taskId });
    (params as { message: { parts: object[] } }).message.parts = parts;
    return (await caller.call('SendMessage', params)).result!.task;
  };

  /** Resolves when the state of the remote task is read once more. */
  async function lookedAt(task: ModernTask): Promise<void> {
    const { gets } = task;
    await server.until(() => task.gets > gets);
  }

  /** Resolves with the id of its task when a run is suspended. */
  async function suspended(): Promise<string> {
    const client = new Client({ connectionString: stack.database.url });
    await client.connect();
    await client.query(`SET baton.tenant = 'system'`);
    const taskId = await until(async () => {
      const { rows } = await client.query<{ task_id: string }>(
        `SELECT task_id FROM runs JOIN tenants t ON t.id = tenant_id WHERE state = 'suspended' AND slug = $1`,
        [tenant.slug],
      );
      return rows[0]?.task_id;
    });
    await client.end();
    return taskId;
  }

  // By day `remote-tool-call.spec` has this and the answer of the caller.
  nightlyIt('is called once, whichever worker is killed while the task goes on', async () => {
    const done = write();
    const task = await server.task();
    await lookedAt(task);
    await stack.replaceWorkers();
    await lookedAt(task);
    await suspended();
    await stack.replaceWorkers();
    await lookedAt(task);
    task.complete(says('the report'));
    const { status } = await done;
    expect(status.state).toBe('TASK_STATE_COMPLETED');
    expect(server.calls).toHaveLength(1);
    expect(provider.requests).toHaveLength(isCode ? 0 : 2);
    expect(JSON.stringify(isCode ? status : provider.requests[1]?.body)).toContain('the report');
  });

  it('gets a cancel that finds no worker', async () => {
    void write().catch(() => undefined);
    const task = await server.task();
    const id = await suspended();
    await stack.killWorkers();
    const { result } = await caller.call('CancelTask', { id });
    expect(result).toMatchObject({ status: { state: 'TASK_STATE_CANCELED' } });
    expect(task.cancels).toBe(0);
    await server.stop();
    await stack.addWorker();
    await server.start();
    await server.until(() => task.cancels > 0);
    expect(server.calls).toHaveLength(1);
  });

  nightlyIt('asks the caller, and has the answer once, from another worker', async () => {
    const asked = write();
    const task = await server.task();
    const requestedSchema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
    task.ask({ who: { method: 'elicitation/create', params: { message: 'For whom?', requestedSchema } } });
    const { id, status } = await asked;
    expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    expect(status.message.parts[0].text).toContain('desk_report of the server desk asks: For whom?');
    await stack.replaceWorkers();
    const done = send([{ data: { name: 'Ada' } }], id);
    await server.until(() => task.updates.length > 0);
    task.complete(says('for Ada'));
    expect((await done).status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.updates).toEqual([{ who: { action: 'accept', content: { name: 'Ada' } } }]);
    expect(server.calls).toHaveLength(1);
  });
});
