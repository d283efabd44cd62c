import { LOG } from '../../../../test/support/log-sql.js';
import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { type NewAlias, type NewTask, TooManyWaitingError } from '../index.js';
import { type Stores, endTurn, newTask, openStores, saidIn, sql, startTask } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const aliased = (input: NewTask, alias: Partial<NewAlias> = {}): NewTask => ({
  ...input,
  alias: { profile: 'orloj', clientId: 'job-1', ...alias },
});

type Where = Partial<Parameters<Stores['tasks']['findAlias']>[0]>;
const OWN = { owner: 'token:a', unowned: true };
const find = (tenantId: string, where: Where = {}) =>
  stores.tasks.findAlias({ tenantId, profile: 'orloj', clientId: 'job-1', own: OWN, ...where });

const TABLES = ['tasks', 'runs', `${LOG} e`, 'task_messages', 'task_aliases'];

/** Everything that creates have written for the tenant. */
const written = async (tenantId: string): Promise<object[]> =>
  Promise.all(
    TABLES.map(async (table) => {
      const rows = await sql(stores, `SELECT 1 FROM ${table} WHERE tenant_id = '${tenantId}'`);
      return { table, rows: rows.length };
    }),
  );

const one = TABLES.map((table) => ({
  table,
  rows: 1,
}));

describe('a task with an id of its caller', () => {
  it('is found by that id, with its agent or without', async () => {
    const input = newTask();
    const { tenantId, task } = input;
    expect(await stores.tasks.create(aliased(input))).toEqual({
      created: true,
      dispatched: true,
      claimed: undefined,
      mayUseReserved: true,
      taskId: task.id,
      content: null,
    });
    const named = { taskId: task.id, agentId: 'echo' };
    expect(await find(tenantId)).toEqual(named);
    expect(await find(tenantId, { agentId: 'echo' })).toEqual(named);
    expect((await stores.tasks.get(tenantId, task.id))?.task).toEqual(task);
    expect(await find(tenantId, { agentId: 'other' })).toBeUndefined();
    expect(await find(tenantId, { profile: 'society' })).toBeUndefined();
    expect(await find(tenantId, { clientId: 'job-2' })).toBeUndefined();
    expect(await find(tenantId, { clientId: 'job-1\0' })).toBeUndefined();
    expect(await find(randomUUID())).toBeUndefined();
  });

  it('can be claimed like any other', async () => {
    const run = await startTask(stores, aliased(newTask({ text: 'hello' })));
    expect(saidIn([run.message])).toEqual(['hello']);
  });

  it('is one task, however many ask for it at once', async () => {
    const tenantId = randomUUID();
    const inputs = Array.from({ length: 20 }, () => newTask({ tenantId }));
    const results = await Promise.all(inputs.map((input) => stores.tasks.create(aliased(input))));
    const created = results.filter((result) => result.created);
    expect(created).toHaveLength(1);
    const taskId = created[0]?.taskId;
    expect(results.map((result) => result.taskId)).toEqual(Array(20).fill(taskId));
    expect(await written(tenantId)).toEqual(one);
    expect(await find(tenantId)).toEqual({ taskId, agentId: 'echo' });
  });

  it('is another one for each agent, profile and tenant; without the agent the newest is meant', async () => {
    const tenantId = randomUUID();
    const inputs = [newTask({ tenantId }), newTask({ tenantId, agentId: 'other' }), newTask()];
    for (const input of inputs) {
      expect(await stores.tasks.create(aliased(input))).toMatchObject({ created: true });
      await tick();
    }
    const society = aliased(newTask({ tenantId }), { profile: 'society' });
    expect(await stores.tasks.create(society)).toMatchObject({ created: true });
    const [first, second] = inputs.map(({ task }) => task.id);
    expect(await find(tenantId, { agentId: 'echo' })).toEqual({ taskId: first, agentId: 'echo' });
    expect(await find(tenantId)).toEqual({ taskId: second, agentId: 'other' });
  });

  it.each([undefined, { hash: Buffer.from('k'), content: null, hours: 1 }])(
    'is not made, and its id names nothing, while too many runs wait (key: %j)',
    async (key) => {
      const tenantId = randomUUID();
      const quota = { maxInFlight: 1, maxWaiting: 1, exact: true };
      for (const clientId of ['job-0', 'job-2'])
        await stores.tasks.create(aliased({ ...newTask({ tenantId }), quota }, { clientId }));
      const refused = aliased({ ...newTask({ tenantId }), quota, key });
      await expect(stores.tasks.create(refused)).rejects.toThrow(TooManyWaitingError);
      expect(await find(tenantId)).toBeUndefined();
      expect(await stores.tasks.create({ ...refused, quota: undefined })).toMatchObject({ created: true });
      expect(await find(tenantId)).toMatchObject({ taskId: refused.task.id });
    },
  );

  it('may have an id of any length and with any characters', async () => {
    for (const clientId of ['', 'x'.repeat(50_000), "'; --", '\u{1f600}']) {
      const input = newTask();
      await stores.tasks.create(aliased(input, { clientId }));
      expect(await find(input.tenantId, { clientId })).toMatchObject({ taskId: input.task.id });
    }
  });
});

describe('a new turn under the same id', () => {
  it('is created once per previous task, and the id names it from then on', async () => {
    const tenantId = randomUUID();
    const { taskId: previousTaskId } = await stores.tasks.create(aliased(newTask({ tenantId })));
    const turns = Array.from({ length: 5 }, () => aliased(newTask({ tenantId }), { previousTaskId }));
    const results = await Promise.all(turns.map((input) => stores.tasks.create(input)));
    const created = results.filter((result) => result.created);
    expect(created).toHaveLength(1);
    expect(results.map(({ taskId }) => taskId)).toEqual(Array(5).fill(created[0]?.taskId));
    expect(await find(tenantId)).toMatchObject({ taskId: created[0]?.taskId });
    expect(await stores.tasks.get(tenantId, previousTaskId)).toBeDefined();
    expect(await written(tenantId)).toContainEqual({ table: 'tasks', rows: 2 });
    const late = aliased(newTask({ tenantId }), { previousTaskId });
    expect(await stores.tasks.create(late)).toEqual({
      created: false,
      dispatched: false,
      claimed: undefined,
      mayUseReserved: false,
      taskId: created[0]?.taskId,
      content: null,
    });
  });
});

describe('the earlier tasks of a context', () => {
  it('are those of the agent, oldest first, the last ones if there are many', async () => {
    const tenantId = randomUUID();
    const task = { contextId: 'talk' };
    const ids: string[] = [];
    for (const text of ['one', 'two', 'three', 'four']) {
      const input = newTask({ tenantId, text });
      input.task = { ...input.task, ...task };
      const run = await startTask(stores, input);
      await endTurn(stores, run, 2, TaskState.TASK_STATE_COMPLETED);
      ids.push(run.taskId);
      await tick();
    }
    for (const other of [newTask({ tenantId, agentId: 'other' }), newTask({ tenantId }), newTask()]) {
      await stores.tasks.create({
        ...other,
        task: { ...other.task, contextId: other.agentId === 'echo' ? 'else' : 'talk' },
      });
    }
    const earlier = async (before: string | undefined, limit = 10): Promise<unknown[]> => {
      const found = await stores.tasks.listContext(tenantId, 'echo', 'talk', before ?? '', limit);
      return found.flatMap((stored) => saidIn(stored.task.history));
    };
    expect(await earlier(ids[3])).toEqual(['one', 'two', 'three']);
    expect(await earlier(ids[3], 2)).toEqual(['two', 'three']);
    expect(await earlier(ids[0])).toEqual([]);
    expect(await earlier(randomUUID())).toEqual([]);
    expect(await earlier('nonsense')).toEqual([]);
  });

  it('are in the order of their ids if they have begun at the same time', async () => {
    const tenantId = randomUUID();
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) {
      const { taskId } = await startTask(stores, newTask({ tenantId, task: { contextId: 'talk' } }));
      ids.push(taskId);
    }
    await sql(stores, `UPDATE tasks SET created_at = now() WHERE tenant_id = '${tenantId}'`);
    const ordered = ids.toSorted();
    const earlier = async (limit: number) =>
      (await stores.tasks.listContext(tenantId, 'echo', 'talk', ordered[4]!, limit)).map(
        ({ task }) => task.id,
      );
    expect(await earlier(10)).toEqual(ordered.slice(0, 4));
    expect(await earlier(2)).toEqual(ordered.slice(2, 4));
  });
});

describe('a cancel', () => {
  it('without an agent finds the task of any agent of the tenant', async () => {
    const run = await startTask(stores, newTask({ task: { metadata: { topic: 'x' } } }));
    const missing = { ok: false, reason: 'not-found' };
    expect(await stores.tasks.cancel(randomUUID(), null, run.taskId)).toEqual(missing);
    expect(await stores.tasks.cancel(run.tenantId, 'other', run.taskId)).toEqual(missing);
    expect(await stores.tasks.cancel(run.tenantId, null, run.taskId)).toMatchObject({
      ok: true,
      runId: run.runId,
      snapshot: { task: { metadata: { topic: 'x' } } },
    });
  });

  it('adds its metadata to those of the task, NUL and all, unless the task has ended', async () => {
    const run = await startTask(stores, newTask({ task: { metadata: { topic: 'x\0', reason: 'none' } } }));
    const metadata = { reason: 'enough \0' };
    const cancel = (agentId: string | null, more: object) =>
      stores.tasks.cancel(run.tenantId, agentId, run.taskId, { metadata: more });
    expect(await cancel('other', metadata)).toEqual({ ok: false, reason: 'not-found' });
    const result = await cancel(null, metadata);
    const merged = { topic: 'x\0', reason: 'enough \0' };
    expect(result).toMatchObject({
      ok: true,
      snapshot: { task: { metadata: merged } },
      event: { sequence: 3 },
    });
    expect(await cancel(null, { reason: 'late' })).toEqual({ ok: false, reason: 'terminal' });
    const stored = await stores.tasks.get(run.tenantId, run.taskId);
    expect(stored?.task.metadata).toEqual(merged);
    expect(stored?.task.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
  });
});

it('a list without an agent has the tasks of all agents of the tenant', async () => {
  const tenantId = randomUUID();
  const inputs = [newTask({ tenantId }), newTask({ tenantId, agentId: 'other' }), newTask()];
  for (const input of inputs) await stores.tasks.create(input);
  const { tasks, total } = await stores.tasks.list({ tenantId, pageSize: 10, includeArtifacts: false });
  expect(tasks.map(({ agentId }) => agentId).sort()).toEqual(['echo', 'other']);
  expect(total).toBe(2);
});

/** Resolves in a later millisecond of the database, whose clock orders tasks. */
async function tick(): Promise<void> {
  const now = async () =>
    JSON.stringify(await sql(stores, `SELECT clock_timestamp()::timestamptz(3) AS now`));
  const before = await now();
  while ((await now()) === before);
}
