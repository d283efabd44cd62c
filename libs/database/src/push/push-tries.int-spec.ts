import { randomUUID } from 'node:crypto';
import type { Actor } from '../audit/audit-records.js';
import { newTask, openStores, sql, startTask, type Stores } from '../stores.fixture.js';
import { PushConfigStore } from './push-config.store.js';
import { type ClaimedPush, PushDeliveryStore } from './push-delivery.store.js';

const OWNER: Actor = { kind: 'token', key: 'token:owner' };

let stores: Stores;
let deliveries: PushDeliveryStore;
beforeAll(async () => {
  stores = await openStores();
  deliveries = new PushDeliveryStore(stores.database);
});
afterAll(() => stores.close());

describe('the tries of a push receiver', () => {
  const claim = async (): Promise<ClaimedPush> =>
    (await deliveries.claim('w', 600_000, { limit: 9, perHost: 9, perTenant: 9 }))[0]!;

  it('are the newest ones with their answers, and name no path and no password', async () => {
    const task = await startTask(stores, { ...newTask(), owner: OWNER.key });
    const { tenantId, taskId } = task;
    const config = {
      id: 'c',
      url: 'https://ann:secret@example.com:8443/hook?token=secret',
      protocol: '1.0' as const,
      authScheme: null,
      sealed: null,
    };
    await new PushConfigStore(stores.database).put(task, { config, max: null }, OWNER);
    const read = () => deliveries.ofTask(tenantId, taskId);
    const receiver = { configId: 'c', webhookId: null, host: 'example.com:8443', state: 'active' };
    expect(await read()).toMatchObject([{ ...receiver, isBehind: false, tries: [] }]);
    await stores.tasks.cancel(tenantId, null, taskId);
    expect(await read()).toMatchObject([{ ...receiver, isBehind: true, tries: [] }]);
    const retry = { retryMs: 0, giveUpHours: 99, isGone: false };
    for (let i = 0; i < 11; i++)
      await deliveries.fail(await claim(), { ...retry, status: 500 + i, error: 'x'.repeat(500), ms: i });
    const now = await claim();
    // A part of the log that has nothing for the receiver is no try.
    await deliveries.advance(now, now.head - 1, 600_000);
    const exchange = { sequence: 2, headers: { a: 'b' }, body: '\\u0000', bytes: 6, answer: null };
    await deliveries.advance(now, now.head, 600_000, {
      status: 204,
      ms: 70,
      exchange: JSON.stringify(exchange),
    });
    const after = (await read())[0];
    const tries = after?.tries ?? [];
    expect(after?.isBehind).toBe(false);
    expect(tries.map(({ at: _, ...each }) => each)).toEqual([
      ...Array.from({ length: 9 }, (_, i) => ({ status: 502 + i, error: 'x'.repeat(200), ms: 2 + i })),
      { status: 204, error: null, ms: 70, exchange },
    ]);
    expect(Math.abs(Date.now() - Number(tries[0]?.at))).toBeLessThan(600_000);
    expect(await deliveries.ofTask(randomUUID(), taskId)).toEqual([]);
  });

  it('end when the receiver has failed for too long since the first failure, however often it has failed since', async () => {
    const task = await startTask(stores, { ...newTask(), owner: OWNER.key });
    const { tenantId, taskId } = task;
    const url = 'https://example.com/hook';
    const config = { id: 'c', url, protocol: '1.0' as const, authScheme: null, sealed: null };
    await new PushConfigStore(stores.database).put(task, { config, max: null }, OWNER);
    await stores.tasks.cancel(tenantId, null, taskId);
    const failure = { status: 500, error: 'x', ms: 1, retryMs: 0, giveUpHours: 3, isGone: false };
    const fail = async () => deliveries.fail(await claim(), failure);
    expect(await fail()).toBe('active');
    const since = (hours: number) =>
      sql(
        stores,
        `UPDATE push_configs SET failing_since = failing_since - ${hours} * interval '1 hour' WHERE task_id = '${taskId}'`,
      );
    await since(2);
    expect(await fail()).toBe('active');
    await since(2);
    expect((await deliveries.count()).dead).toBe(0);
    expect(await fail()).toBe('dead');
    expect((await deliveries.count()).dead).toBe(1);
  });

  it('that wait for their receiver end by the time of their own failures, without a try', async () => {
    const { tenantId } = newTask();
    const add = async (failingHours: number) => {
      const task = await startTask(stores, { ...newTask({ tenantId }), owner: OWNER.key });
      const url = 'https://example.com/hook';
      const config = { id: 'c', url, protocol: '1.0' as const, authScheme: null, sealed: null };
      await new PushConfigStore(stores.database).put(task, { config, max: null }, OWNER);
      await stores.tasks.cancel(tenantId, null, task.taskId);
      const claimed = await claim();
      const since = `failing_since = now() - ${failingHours} * interval '1 hour'`;
      await sql(stores, `UPDATE push_configs SET ${since} WHERE task_id = '${task.taskId}'`);
      return claimed;
    };
    const postponed = { error: 'no answer yet', waitMs: 0, giveUpHours: 3 };
    const claimed = [await add(5), await add(1), await add(5)];
    const [long, short, other] = claimed as [ClaimedPush, ClaimedPush, ClaimedPush];
    expect(await deliveries.postpone(short, postponed)).toBe('active');
    expect(await deliveries.postpone(other, postponed)).toBe('dead');
    expect(await deliveries.postpone({ ...long, lease: long.lease - 1 }, postponed)).toBeUndefined();
    for (const { taskId } of claimed)
      expect(await deliveries.ofTask(tenantId, taskId)).toMatchObject([{ tries: [] }]);
  });
});
