import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { ContextStateStore, RetentionStore, type RunKey } from '../index.js';
import { endTurn, newTask, openStores, sql, startTask, type Stores } from '../stores.fixture.js';

let stores: Stores;
let state: ContextStateStore;
let tenantId: string;
beforeAll(async () => {
  stores = await openStores(4);
  state = new ContextStateStore(stores.database);
});
beforeEach(() => (tenantId = randomUUID()));
afterAll(async () => stores.close());

/** A running task of a context. */
function start(
  contextId: string,
  { owner, ...of }: { tenantId?: string; agentId?: string; owner?: string } = {},
) {
  const input = newTask({ tenantId, ...of, task: { contextId } });
  return startTask(stores, { ...input, ...(owner !== undefined && { owner }) });
}

const set = (run: RunKey, key: string, value: unknown, expected?: number, writer = randomUUID()) =>
  state.write(run, {
    key,
    value: JSON.stringify(value),
    writer,
    ...(expected !== undefined && { expected }),
  });

const ended = async (run: RunKey): Promise<void> => {
  await endTurn(stores, run, 2, TaskState.TASK_STATE_COMPLETED, []);
  await sql(stores, `UPDATE tasks SET status_at = now() - interval '9 days' WHERE id = '${run.taskId}'`);
};

describe('the state of a context', () => {
  it('is what its tasks have written, byte for byte; a version that is not the current one is refused', async () => {
    const context = randomUUID();
    const [one, two] = [await start(context), await start(context)];
    const hostile = { text: 'nul \0, "quotes", \ud800 and é', n: 0.1 };
    expect(await state.read(one, 'a')).toBeUndefined();
    expect(await set(one, 'a', hostile, 0)).toEqual({ outcome: 'written', version: 1 });
    expect(await state.read(two, 'a')).toEqual({ value: JSON.stringify(hostile), version: 1 });
    expect(await set(two, 'a', 2, 0)).toEqual({
      outcome: 'conflict',
      current: { value: JSON.stringify(hostile), version: 1 },
    });
    expect(await set(two, 'a', 2, 1)).toEqual({ outcome: 'written', version: 2 });
    expect(await set(one, 'a', 3)).toEqual({ outcome: 'written', version: 3 });
    expect(await set(one, 'b', 1, 4)).toEqual({ outcome: 'conflict', current: undefined });
  });

  it('has one of two writes that expect the same version', async () => {
    const run = await start(randomUUID());
    await set(run, 'a', 0);
    const results = await Promise.all([1, 2, 3].map((value) => set(run, 'a', value, 1)));
    expect(results.map(({ outcome }) => outcome).toSorted()).toEqual(['conflict', 'conflict', 'written']);
  });

  it('has a write once that is repeated, and none of an attempt that is not current or of an ended task', async () => {
    const run = await start(randomUUID());
    const writer = randomUUID();
    for (let i = 0; i < 2; i++)
      expect(await set(run, 'a', 1, 0, writer)).toEqual({ outcome: 'written', version: 1 });
    // A write that expects no version is not repeated either.
    const further = randomUUID();
    for (let i = 0; i < 2; i++)
      expect(await set(run, 'a', 2, undefined, further)).toEqual({ outcome: 'written', version: 2 });
    expect(await set({ ...run, attempt: 2 }, 'a', 2)).toEqual({ outcome: 'refused' });
    await ended(run);
    expect(await set(run, 'a', 2)).toEqual({ outcome: 'refused' });
  });

  it('has no write of a run whose task is canceled while the write waits', async () => {
    const run = await start(randomUUID());
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    const { written } = await stores.database.inSystem(async (transaction) => {
      const cancel = `UPDATE tasks SET state = ${TaskState.TASK_STATE_CANCELED} WHERE id = $1`;
      await transaction.query({ text: cancel }, [run.taskId]);
      let done = 0;
      const writing = set(run, 'a', 'late').finally(() => (done += 1));
      while (done + (await sql(stores, waiting)).length === 0);
      return { written: writing };
    });
    expect(await written).toEqual({ outcome: 'refused' });
    expect(await state.read(run, 'a')).toBeUndefined();
  });

  it('is of one tenant, agent, owner and context', async () => {
    const context = randomUUID();
    const run = await start(context, { owner: 'token:1' });
    await set(run, 'a', 1);
    const others = [
      await start(context, { owner: 'token:1', tenantId: randomUUID() }),
      await start(context, { owner: 'token:1', agentId: randomUUID() }),
      await start(context, { owner: 'token:2' }),
      await start(context),
      await start(randomUUID(), { owner: 'token:1' }),
    ];
    for (const other of others) {
      expect(await state.read(other, 'a')).toBeUndefined();
      expect(await set(other, 'a', 2, 0)).toMatchObject({ outcome: 'written' });
    }
    expect(await state.read(run, 'a')).toEqual({ value: '1', version: 1 });
  });

  it('has at most 64 keys', async () => {
    const run = await start(randomUUID());
    for (let i = 0; i < 64; i++) await set(run, `key-${i}`, i);
    expect(await set(run, 'one more', 1)).toEqual({ outcome: 'full' });
    expect(await set(run, 'key-3', 1)).toEqual({ outcome: 'written', version: 2 });
  });

  it('is deleted with the last task of its agent, owner and context', async () => {
    const context = randomUUID();
    const [first, last] = [await start(context), await start(context)];
    const other = await start(context, { owner: 'token:2' });
    for (const run of [first, other]) await set(run, 'a', 1);
    const retention = new RetentionStore(stores.database);
    const rows = async (): Promise<number> =>
      (await sql(stores, `SELECT 1 FROM context_state WHERE tenant_id = '${tenantId}'`)).length;
    await ended(first);
    await retention.expire([{ tenantId, days: 7 }], 10);
    expect(await rows()).toBe(2);
    await ended(last);
    await retention.expire([{ tenantId, days: 7 }], 10);
    expect(await rows()).toBe(1);
    expect(await state.read(other, 'a')).toEqual({ value: '1', version: 1 });
  });
});
