import { type OwnTasks, TaskState } from '@baton/a2a';
import { createHash, randomUUID } from 'node:crypto';
import type { MessageKey, NewTask } from '../index.js';
import { DeadLetterStore } from '../runs/dead-letter.store.js';
import { RetentionStore } from '../retention/retention.store.js';
import { type Stores, endTurn, newTask, openStores, sql, startTask, textMessage } from '../stores.fixture.js';

const ANNE = 'token:anne';
const BERT = 'token:bert';
const GUEST = 'guest:open.example:abc';
const tasksOf = (owner: string, unowned = true): OwnTasks => ({ owner, unowned });

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

/** A task of each owner, the newest last. */
async function made(tenantId: string, ...inputs: Partial<NewTask>[]): Promise<NewTask[]> {
  const tasks = inputs.map((input) => ({ ...newTask({ tenantId }), ...input }));
  for (const task of tasks) await stores.tasks.create(task);
  return tasks;
}

describe('the owner of a task', () => {
  it('is kept with it, and on its tombstone; a task of an earlier release has none', async () => {
    const tenantId = randomUUID();
    const [anne, none] = await made(tenantId, { owner: ANNE }, {});
    expect((await stores.tasks.get(tenantId, anne!.task.id))?.owner).toBe(ANNE);
    expect((await stores.tasks.get(tenantId, none!.task.id))?.owner).toBeNull();
    await stores.tasks.cancel(tenantId, null, anne!.task.id);
    const retention = new RetentionStore(stores.database);
    await sql(stores, `UPDATE tasks SET status_at = '2020-01-01' WHERE tenant_id = '${tenantId}'`);
    await retention.expire([{ tenantId, days: 1 }], 10);
    expect((await retention.findTombstone(tenantId, anne!.task.id))?.owner).toBe(ANNE);
  });

  it('is the one of its parent for a child', async () => {
    const tenantId = randomUUID();
    const parent = await startTask(stores, { ...newTask({ tenantId }), owner: GUEST });
    const child = { parent, rootTaskId: parent.taskId, maxTasks: 5 };
    const [made1] = await made(tenantId, { owner: BERT, child });
    expect((await stores.tasks.get(tenantId, made1!.task.id))?.owner).toBe(GUEST);
  });

  it('is who may cancel it', async () => {
    const tenantId = randomUUID();
    const [anne, none] = await made(tenantId, { owner: ANNE }, {});
    const cancel = (task: NewTask, own: OwnTasks, metadata?: object) =>
      stores.tasks.cancel(tenantId, null, task.task.id, { own, metadata });
    const refused = { ok: false, reason: 'not-found' };
    expect(await cancel(anne!, tasksOf(BERT))).toEqual(refused);
    expect(await cancel(anne!, tasksOf(BERT), { note: 'mine' })).toEqual(refused);
    expect(await cancel(none!, tasksOf(GUEST, false))).toEqual(refused);
    expect((await stores.tasks.get(tenantId, anne!.task.id))?.sequence).toBe(1);
    expect(await cancel(anne!, tasksOf(ANNE))).toMatchObject({ ok: true });
    expect(await cancel(none!, tasksOf(BERT))).toMatchObject({ ok: true });
  });
});

describe('a list of the tasks of one owner', () => {
  it('goes page by page, with those of earlier releases or without, and counts no others', async () => {
    const tenantId = randomUUID();
    const all = await made(
      tenantId,
      ...Array.from({ length: 12 }, (_, i) => {
        const timestamp = new Date(1e12 + i).toISOString();
        const status = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp };
        return { ...newTask({ tenantId, task: { status } }), owner: [ANNE, BERT, null][i % 3]! };
      }),
    );
    const ids = (...owners: (string | null)[]) =>
      new Set(all.filter(({ owner = null }) => owners.includes(owner)).map(({ task }) => task.id));
    const cases: [OwnTasks, Set<string>][] = [
      [tasksOf(ANNE), ids(ANNE, null)],
      [tasksOf(ANNE, false), ids(ANNE)],
      [tasksOf(GUEST, false), ids()],
      [tasksOf(GUEST), ids(null)],
    ];
    for (const [own, expected] of cases) {
      const seen: string[] = [];
      let after: { statusAt: Date; taskId: string } | undefined;
      for (let more = true; more;) {
        const page = await stores.tasks.list({ tenantId, own, pageSize: 3, after, includeArtifacts: false });
        seen.push(...page.tasks.map(({ task }) => task.id));
        expect(page.total).toBe(expected.size);
        const last = page.tasks.at(-1)?.task;
        after = last && { statusAt: new Date(last.status!.timestamp!), taskId: last.id };
        more = page.more;
      }
      expect(seen).toHaveLength(expected.size);
      expect(new Set(seen)).toEqual(expected);
      expect(seen).toEqual(
        all
          .map(({ task }) => task.id)
          .filter((id) => expected.has(id))
          .reverse(),
      );
    }
  });

  it('is counted in slices', async () => {
    const tenantId = randomUUID();
    await made(tenantId, { owner: ANNE }, { owner: BERT }, {}, { owner: ANNE }, { owner: ANNE });
    const count = async (own: OwnTasks): Promise<number> => {
      let [tasks, cursor] = [0, { state: 0 } as Parameters<typeof stores.tasks.countSlice>[1] | undefined];
      while (cursor) {
        const slice = await stores.tasks.countSlice({ tenantId, own }, cursor, 2);
        [tasks, cursor] = [tasks + slice.tasks, slice.cursor];
      }
      return tasks;
    };
    expect([
      await count(tasksOf(ANNE)),
      await count(tasksOf(ANNE, false)),
      await count(tasksOf(GUEST)),
    ]).toEqual([4, 3, 1]);
  });

  it('of dead letters has those of the owner alone', async () => {
    const tenantId = randomUUID();
    const letters = new DeadLetterStore(stores.database);
    const runs = await Promise.all(
      [ANNE, BERT, null].map((owner) => startTask(stores, { ...newTask({ tenantId }), owner })),
    );
    for (const { taskId, runId } of runs) {
      await sql(
        stores,
        `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
         VALUES ('${tenantId}', '${runId}', '${taskId}', 'echo', 'it died', 3)`,
      );
    }
    const owners = async (own?: OwnTasks) =>
      (await letters.list(tenantId, { limit: 10, own })).map(({ owner }) => owner ?? 'nobody').sort();
    expect(await owners()).toEqual(['nobody', ANNE, BERT]);
    expect(await owners(tasksOf(ANNE))).toEqual(['nobody', ANNE]);
    expect(await owners(tasksOf(ANNE, false))).toEqual([ANNE]);
  });
});

describe('a context that several use', () => {
  it('is a conversation of each of them', async () => {
    const tenantId = randomUUID();
    const contextId = 'main';
    const createFor = async (owner: string | null): Promise<NewTask> => {
      const input = newTask({ tenantId, task: { contextId } });
      await endTurn(stores, await startTask(stores, { ...input, owner }), 2);
      return input;
    };
    const all = [
      await createFor(null),
      await createFor(ANNE),
      await createFor(GUEST),
      await createFor(BERT),
      await createFor(ANNE),
    ];
    const [old, anne, guest, bert] = all.map(({ task }) => task.id);
    const earlier = async (owner: string | null) => {
      const [last] = await made(tenantId, { ...newTask({ tenantId, task: { contextId } }), owner });
      const found = await stores.tasks.listContext(tenantId, 'echo', contextId, last!.task.id, 10);
      await stores.tasks.cancel(tenantId, null, last!.task.id);
      await sql(stores, `DELETE FROM tasks WHERE tenant_id = '${tenantId}' AND id = '${last!.task.id}'`);
      return found.map(({ task }) => task.id);
    };
    expect(await earlier(ANNE)).toEqual([old, anne, all[4]!.task.id]);
    expect(await earlier(BERT)).toEqual([old, bert]);
    expect(await earlier(GUEST)).toEqual([guest]);
    expect(await earlier('guest:open.example:other')).toEqual([]);
    expect(await earlier(null)).toEqual([old]);
  });
});

describe('the names that callers give', () => {
  const aliased = (tenantId: string, owner: string | null, previousTaskId?: string): NewTask => ({
    ...newTask({ tenantId }),
    owner,
    alias: { profile: 'orloj', clientId: 'job-1', ...(previousTaskId && { previousTaskId }) },
  });
  const named = async (tenantId: string, own: OwnTasks) =>
    (await stores.tasks.findAlias({ tenantId, profile: 'orloj', clientId: 'job-1', own }))?.taskId;

  it('are their own: the same id of two is two tasks', async () => {
    const tenantId = randomUUID();
    const [anne, guest] = [aliased(tenantId, ANNE), aliased(tenantId, GUEST)];
    expect(await stores.tasks.create(anne)).toMatchObject({ created: true });
    expect(await stores.tasks.create(guest)).toMatchObject({ created: true });
    expect(await stores.tasks.create(aliased(tenantId, GUEST))).toMatchObject({
      created: false,
      taskId: guest.task.id,
    });
    expect(await named(tenantId, tasksOf(ANNE))).toBe(anne.task.id);
    expect(await named(tenantId, tasksOf(GUEST, false))).toBe(guest.task.id);
    expect(await named(tenantId, tasksOf(BERT))).toBeUndefined();
  });

  it('that an earlier release has stored are found for tokens, until they name something new', async () => {
    const tenantId = randomUUID();
    const before = aliased(tenantId, null);
    await stores.tasks.create(before);
    expect(await named(tenantId, tasksOf(ANNE))).toBe(before.task.id);
    expect(await named(tenantId, tasksOf(GUEST, false))).toBeUndefined();
    const next = aliased(tenantId, ANNE, before.task.id);
    expect(await stores.tasks.create(next)).toMatchObject({ created: true });
    expect(await named(tenantId, tasksOf(ANNE))).toBe(next.task.id);
    expect(await named(tenantId, tasksOf(BERT))).toBe(before.task.id);
  });

  const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
  const EARLIER = hash('as the release before knows it');
  const key = (own: string, more: Partial<MessageKey> = {}): MessageKey => ({
    hash: hash(own),
    earlierHash: EARLIER,
    content: null,
    hours: 24,
    ...more,
  });

  it('a message that an earlier release has stored joins its task, also as the next turn', async () => {
    const tenantId = randomUUID();
    const [before] = await made(tenantId, { key: { hash: EARLIER, content: null, hours: 24 } });
    const again = { ...newTask({ tenantId }), owner: ANNE, key: key(ANNE) };
    const joined = { created: false, taskId: before!.task.id };
    expect(await stores.tasks.create(again)).toMatchObject(joined);
    expect(await stores.tasks.create({ ...newTask({ tenantId }), key: key(ANNE) })).toMatchObject(joined);
    expect(await stores.tasks.earlierTurn(tenantId, key(BERT))).toMatchObject({ taskId: before!.task.id });
    const guest = { hash: hash(GUEST), content: null, hours: 24 };
    expect(await stores.tasks.create({ ...newTask({ tenantId }), key: guest })).toMatchObject({
      created: true,
    });
    // The task is gone: the message is a new one.
    const gone = key(ANNE, { goneTaskId: before!.task.id });
    expect(await stores.tasks.create({ ...newTask({ tenantId }), key: gone })).toMatchObject({
      created: true,
    });
    await sql(stores, `UPDATE message_keys SET expires_at = now() WHERE tenant_id = '${tenantId}'`);
    const late = { ...newTask({ tenantId }), key: key(BERT) };
    expect(await stores.tasks.create(late)).toMatchObject({ created: true });
  });

  it('a next turn that an earlier release has stored is not made again', async () => {
    const tenantId = randomUUID();
    const asks = TaskState.TASK_STATE_INPUT_REQUIRED;
    const run = await startTask(stores, { ...newTask({ tenantId }), owner: ANNE });
    await endTurn(stores, run, 2, asks);
    const turn = {
      tenantId,
      agentId: 'echo',
      taskId: run.taskId,
      extensions: [],
      message: textMessage('yes'),
    };
    const runId = randomUUID();
    const first = await stores.tasks.continue({
      ...turn,
      runId,
      key: { hash: EARLIER, content: null, hours: 24 },
    });
    expect(first.ok).toBe(true);
    const second = await stores.tasks.continue({ ...turn, runId: randomUUID(), key: key(ANNE) });
    expect(second).toMatchObject({ ok: false, reason: 'repeated', earlier: { taskId: run.taskId } });
    // Later a worker of the last release claims the run, which does not read the owner.
    const again = await stores.runs.claim(tenantId, runId, 'worker', 30_000);
    await endTurn(stores, again!, again!.snapshot.sequence, asks);
    await sql(stores, `UPDATE message_keys SET expires_at = now() WHERE tenant_id = '${tenantId}'`);
    const late = await stores.tasks.continue({ ...turn, runId: randomUUID(), key: key(BERT) });
    expect(late).toMatchObject({ ok: true });
  });
});
