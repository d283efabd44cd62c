import { type AgentDefinition, Role, TaskState, endsTurn, textOf } from '@baton/a2a';
import { ChildTasks } from '@baton/agents';
import {
  AgentCatalogStore,
  Database,
  TaskTreeStore,
  type StoredTask,
  TaskStore,
  TenantStore,
  PLATFORM_ACTOR,
} from '@baton/database';
import { Messaging } from '@baton/messaging';
import type { INestApplicationContext } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { compileWorker } from '../runs/worker.fixture.js';
import { AskingRuntime, type Order } from './asking-runtime.fixture.js';
import { TurnEnds } from '../turns/turn-ends.js';
import { userMessage } from '../../../../test/support/agents/turns.js';
import { until } from '../../../../test/support/until.js';

// One worker with one slot: a run that kept its slot while it waits for a child would wait for ever.

const { TASK_STATE_COMPLETED, TASK_STATE_CANCELED } = TaskState;
const AGENTS = ['boss', 'clerk', 'helper', 'intern'];

let testDatabase: TestDatabase;
let app: INestApplicationContext;
let runtime: AskingRuntime;
let tasks: TaskStore;
let taskTree: TaskTreeStore;
/** Whom a test is about. */
let tenantId: string;
let tightTenantId: string;

beforeAll(async () => {
  testDatabase = await createDatabase();
  const testing = await compileWorker(testDatabase.url, () => runtime, { SWEEP_MS: '50' });
  runtime = new AskingRuntime(
    () => testing.get(ChildTasks, { strict: false }),
    (tenant, slug) => testing.get(AgentDirectory, { strict: false }).find(tenant, slug),
  );
  tasks = testing.get(TaskStore, { strict: false });
  taskTree = testing.get(TaskTreeStore, { strict: false });
  const tenants = testing.get(TenantStore, { strict: false });
  tenantId = (await tenants.create('acme', PLATFORM_ACTOR)).id;
  // A parent and its children have one slot between them.
  await tenants.setLimits('acme', { runsAtOnce: 1 }, [], PLATFORM_ACTOR);
  tightTenantId = (await tenants.create('tight', PLATFORM_ACTOR)).id;
  await tenants.setLimits('tight', { runsAtOnce: 1, tasksWaiting: 1 }, [], PLATFORM_ACTOR);
  const agents = testing.get(AgentCatalogStore, { strict: false });
  for (const slug of AGENTS) {
    const agent = { slug, definition: definitionOf(slug), enabled: true, by: 'operator' };
    for (const owner of [tenantId, tightTenantId])
      await agents.create({ tenantId: owner, ...agent }, PLATFORM_ACTOR);
  }
  app = await testing.init();
});
afterAll(async () => {
  await app.close();
  await testDatabase.drop();
});

const definitionOf = (name: string): AgentDefinition => ({
  name,
  description: name,
  version: '1.0.0',
  runtime: 'asking',
  config: {},
  skills: [],
  inputModes: [],
  outputModes: [],
  extensions: [],
});

/** Give an order to an agent; the id of its task. */
async function order(agent: string, what: Order, contextId: string = randomUUID()): Promise<string> {
  const found = await app.get(AgentDirectory, { strict: false }).find(tenantId, agent);
  const [id, runId] = [randomUUID(), randomUUID()];
  const timestamp = new Date().toISOString();
  const message = userMessage(JSON.stringify(what), { messageId: randomUUID(), contextId, taskId: id });
  await tasks.create({
    tenantId,
    agentId: found!.id,
    runId,
    extensions: [],
    task: {
      id,
      contextId,
      artifacts: [],
      history: [message],
      metadata: undefined,
      status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp },
    },
  });
  await app.get(Messaging, { strict: false }).enqueueRuns([{ tenantId, taskId: id, runId, attempt: 0 }]);
  return id;
}

const get = async (taskId: string): Promise<StoredTask> => (await tasks.get(tenantId, taskId))!;
const stateOf = async (taskId: string) => (await get(taskId)).task.status?.state;
const textOfStatus = ({ task }: StoredTask) => textOf(task.status?.message?.parts ?? []);
const ended = async (taskId: string): Promise<StoredTask> =>
  until(async () => {
    const stored = await get(taskId);
    return endsTurn(stored.task.status!.state) && stored;
  });
const childrenOf = async (taskId: string) => (await taskTree.find(tenantId, taskId)).childTaskIds;
/** The children of a task once there are so many. */
const children = async (taskId: string, count: number): Promise<string[]> =>
  until(async () => {
    const ids = await childrenOf(taskId);
    return ids.length === count && ids;
  });
const suspended = async (taskId: string) => until(async () => (await runOf(taskId)).state === 'suspended');
const runOf = async (taskId: string) => {
  const text = `SELECT state, attempt, deaths FROM runs WHERE task_id = '${taskId}'`;
  const [run] = await app.get(Database).systemQuery<{ state: string }>({ text }, []);
  return run!;
};

it('finishes a parent with three children on one slot, each of them a task of its own', async () => {
  const id = await order('boss', { ask: { agent: 'clerk', times: 3, message: {} } });
  const { task } = await ended(id);
  expect(task.status?.state).toBe(TASK_STATE_COMPLETED);
  expect(textOf(task.status!.message!.parts)).toBe('1 did 1, 1 did 1, 1 did 1');
  expect(await runOf(id)).toEqual({ state: 'succeeded', attempt: 2, deaths: 0 });
  const made = await Promise.all((await childrenOf(id)).map(get));
  expect(made).toHaveLength(3);
  for (const child of made) {
    expect(child.task).toMatchObject({
      metadata: { 'baton.parent': { taskId: id, agent: 'boss', depth: 1 } },
      history: [{ role: Role.ROLE_USER, referenceTaskIds: [id] }, {}],
    });
    expect(child.task.contextId).not.toBe(task.contextId);
  }
  // Asked at once, none of them remembers another.
  expect(new Set(made.map((child) => child.task.contextId)).size).toBe(3);
});

it('asks an agent in a conversation of their own, which goes on as long as the one around it', async () => {
  const what: Order = { ask: { agent: 'clerk', times: 2, message: {} } };
  const contextsOf = async (context: string): Promise<string[]> => {
    const id = await order('boss', what, context);
    await ended(id);
    const made = await Promise.all((await childrenOf(id)).map(get));
    return made.map(({ task }) => task.contextId);
  };
  const [one, other] = [randomUUID(), randomUUID()];
  const first = await contextsOf(one);
  expect(await contextsOf(one)).toEqual(first);
  expect(new Set([...first, ...(await contextsOf(other)), one, other]).size).toBe(6);
});

it('finishes parents that wait for parents, many at once, on one slot', async () => {
  const message: Order = { ask: { agent: 'helper', times: 2, message: {} } };
  const orders = Array.from({ length: 4 }, () => order('boss', { ask: { agent: 'clerk', message } }));
  const done = await Promise.all((await Promise.all(orders)).map(ended));
  expect(done.map(textOfStatus)).toEqual(Array.from({ length: 4 }, () => '1 2 did 1, 2 did 1'));
});

it('stops the children of a task that is canceled, and theirs', async () => {
  const message: Order = { ask: { agent: 'helper', message: { wait: true } } };
  const id = await order('boss', { ask: { agent: 'clerk', times: 2, message } });
  const made = await children(id, 2);
  const below = await until(async () => {
    const ids = (await Promise.all(made.map(childrenOf))).flat();
    return ids.length === 2 && ids;
  });
  // A run that is claimed is not yet at work: canceled before its agent begins, it would have nothing to stop.
  const atWork = (): boolean => below.some((task) => runtime.waiting.has(task));
  await until(atWork);
  await app.get(TurnEnds, { strict: false }).cancel(tenantId, null, id);
  const all = [id, ...made, ...below];
  expect(await Promise.all(all.map(stateOf))).toEqual(all.map(() => TASK_STATE_CANCELED));
  await until(() => !atWork());
});

it('stops the children also when the process that canceled their parent died right after', async () => {
  const id = await order('boss', { ask: { agent: 'clerk', times: 2, message: { wait: true } } });
  const made = await children(id, 2);
  await suspended(id);
  await tasks.cancel(tenantId, null, id);
  const states = await Promise.all(made.map(ended));
  expect(states.map(({ task }) => task.status?.state)).toEqual([TASK_STATE_CANCELED, TASK_STATE_CANCELED]);
});

it('wakes a parent also when the worker of its child has died right after the end', async () => {
  const id = await order('boss', { ask: { agent: 'clerk', message: { wait: true } } });
  const [child] = await children(id, 1);
  await suspended(id);
  await tasks.cancel(tenantId, null, child!);
  const state = await until(async () => {
    // It may have begun just before. No heartbeat stops it: in this process their thread does not run.
    runtime.end(child!);
    return (await runOf(id)).state === 'succeeded' && stateOf(id);
  });
  expect(state).toBe(TASK_STATE_COMPLETED);
});

it('ends with its parent a child that still asks', async () => {
  const id = await order('boss', { ask: { agent: 'clerk', message: { question: true } } });
  expect(textOfStatus(await ended(id))).toBe('1 which one?');
  const [child] = await childrenOf(id);
  await until(async () => (await stateOf(child!)) === TASK_STATE_CANCELED);
});

it('goes on with a child that has asked, once', async () => {
  const id = await order('boss', {
    ask: { agent: 'clerk', message: { question: true }, answer: { ask: { agent: 'helper', message: {} } } },
  });
  expect(textOfStatus(await ended(id))).toBe('1 2 did 1');
  expect(await runOf(id)).toEqual({ state: 'succeeded', attempt: 3, deaths: 0 });
  const [child, ...others] = await childrenOf(id);
  expect(others).toEqual([]);
  const { history } = (await get(child!)).task;
  expect(history.filter(({ role }) => role === Role.ROLE_USER)).toHaveLength(2);
});

describe('a child that waits for a person to approve a call', () => {
  const message: Order = { approval: 'call-1-1' };
  const yes = { callId: 'call-1-1', approved: true };

  it('gets the answer of a person once, however often it is handed on', async () => {
    const id = await order('boss', { ask: { agent: 'clerk', message, approved: yes } });
    expect(textOfStatus(await ended(id))).toBe(`1 ${JSON.stringify({ approval: yes })}`);
    const [child] = await childrenOf(id);
    const said = (await get(child!)).task.history.filter(({ role }) => role === Role.ROLE_USER);
    expect(said).toHaveLength(2);
    expect(said.map(({ metadata }) => metadata)).toEqual([{ 'baton.sender': 'agent' }, undefined]);
  });

  it('gets no answer to a question that it does not ask', async () => {
    const approved = { callId: 'call-9-9', approved: true };
    const id = await order('boss', { ask: { agent: 'clerk', message, approved } });
    expect(textOfStatus(await ended(id))).toBe('1 may I?');
  });

  it('takes none from an agent, with any content', async () => {
    const id = await order('boss', { ask: { agent: 'clerk', message, answer: {} } });
    expect(textOfStatus(await ended(id))).toContain('only a person can answer it, not an agent');
    const [child] = await childrenOf(id);
    const { history } = (await get(child!)).task;
    expect(history.filter(({ role }) => role === Role.ROLE_USER)).toHaveLength(1);
  });
});

it.each<[string, Order, string]>([
  [
    'a circle',
    { ask: { agent: 'clerk', message: { ask: { agent: 'boss', message: {} } } } },
    'boss is already working on this',
  ],
  ['an agent that calls itself', { ask: { agent: 'boss', message: {} } }, 'boss is already working on this'],
  [
    'a chain that is too long',
    { ask: { agent: 'clerk', message: { ask: { agent: 'helper', depth: 1, message: {} } } } },
    'the maximum delegation depth of 1 is reached',
  ],
  [
    'too many tasks',
    { ask: { agent: 'clerk', times: 3, tasks: 2, message: {} } },
    'the maximum of 2 child tasks for this task is reached',
  ],
  [
    'an answer to the task of another caller',
    { ask: { agent: 'clerk', taskId: randomUUID(), message: {} } },
    'taskId: you have given no such task to clerk',
  ],
])('refuses %s', async (_, what, reason) => {
  expect(textOfStatus(await ended(await order('boss', what)))).toContain(reason);
});

it('refuses an answer to a task of the same agent that another caller has begun', async () => {
  const stranger = await order('clerk', { question: true });
  await ended(stranger);
  const id = await order('boss', { ask: { agent: 'clerk', taskId: stranger, message: {} } });
  expect(textOfStatus(await ended(id))).toContain('taskId: you have given no such task to clerk');
  const { history } = (await get(stranger)).task;
  expect(history.filter(({ role }) => role === Role.ROLE_USER)).toHaveLength(1);
  await app.get(TurnEnds, { strict: false }).cancel(tenantId, null, stranger);
});

it('refuses a child that the tenant has no room for, and does not count it', async () => {
  const roomy = tenantId;
  tenantId = tightTenantId;
  try {
    const ask = { agent: 'clerk', times: 2, message: {} };
    const refused = await order('boss', { ask });
    const reason = 'the limit tasksWaiting of this tenant is reached, which is 1';
    expect(textOfStatus(await ended(refused))).toContain(reason);
    const [made] = await childrenOf(refused);
    await until(async () => (await stateOf(made!)) === TASK_STATE_CANCELED);
    const id = await order('boss', { ask: { ...ask, times: 1, tasks: 1 } });
    expect(textOfStatus(await ended(id))).toBe('1 did 1');
  } finally {
    tenantId = roomy;
  }
});
