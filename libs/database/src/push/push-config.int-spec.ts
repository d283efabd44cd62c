import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Actor } from '../audit/audit-records.js';
import { endTurn, newTask, openStores, sql, startTask, type Stores, textMessage } from '../stores.fixture.js';
import { PushDeliveryStore } from './push-delivery.store.js';
import { LimitReachedError } from '../tenants/limit-reached-error.js';
import { type NewPushConfig, PushConfigStore, type TurnPush } from './push-config.store.js';
import { PushConfigTakenError } from './push-config-taken-error.js';

let stores: Stores;
let configs: PushConfigStore;

beforeAll(async () => {
  stores = await openStores();
  configs = new PushConfigStore(stores.database);
});
afterAll(() => stores.close());

const OWNER: Actor = { kind: 'token', key: 'token:owner' };
const OTHER: Actor = { kind: 'token', key: 'token:other' };

const push = (id: string, more: Partial<NewPushConfig> = {}, max: number | null = null): TurnPush => ({
  config: { id, url: `https://example.com/${id}`, protocol: '1.0', authScheme: null, sealed: null, ...more },
  max,
});

const sealed = (keyId: string) => ({ keyId, nonce: Buffer.from('n'), ciphertext: Buffer.from('secret') });

async function task(
  tenantId?: string,
): Promise<{ tenantId: string; taskId: string; runId: string; attempt: number }> {
  return startTask(stores, { ...newTask(tenantId === undefined ? {} : { tenantId }), owner: OWNER.key });
}

const rows = (taskId: string): Promise<object[]> =>
  sql(
    stores,
    `SELECT id, url, key_id, state, delivered_sequence, head_sequence, due_at IS NOT NULL AS is_due, failures, lease_count,
       lease_owner FROM push_configs WHERE task_id = '${taskId}' ORDER BY id`,
  );

const countOf = async (taskId: string): Promise<unknown> =>
  (
    (await sql(stores, `SELECT push_configs FROM tasks WHERE id = '${taskId}'`)) as { push_configs: number }[]
  )[0]?.push_configs;

const records = (tenantId: string): Promise<object[]> =>
  sql(
    stores,
    `SELECT action, actor, target, detail FROM audit_records WHERE tenant_id = '${tenantId}' ORDER BY at`,
  );

it('a config gets the events that follow, and its task counts it', async () => {
  const run = await task();
  expect(await configs.put(run, push('b', { authScheme: 'Bearer', sealed: sealed('k') }), OWNER)).toBe(true);
  expect(await configs.put(run, push('a'), OWNER)).toBe(true);
  const fresh = { state: 'active', delivered_sequence: 2, head_sequence: 2, is_due: false };
  expect(await rows(run.taskId)).toMatchObject([
    { id: 'a', key_id: null, ...fresh },
    { id: 'b', key_id: 'k', ...fresh },
  ]);
  expect(await countOf(run.taskId)).toBe(2);
  await endTurn(stores, run, 2);
  expect(await rows(run.taskId)).toMatchObject([
    { delivered_sequence: 2, head_sequence: 3, is_due: true },
    { delivered_sequence: 2, head_sequence: 3, is_due: true },
  ]);
  const { tenantId, taskId } = run;
  const shown = { id: 'b', url: 'https://example.com/b', authScheme: 'Bearer' };
  expect(await configs.find({ tenantId, taskId, id: 'b' })).toEqual(shown);
  expect(await configs.find({ tenantId, taskId, id: '' })).toEqual(shown);
  expect(await configs.find({ tenantId: randomUUID(), taskId, id: 'b' })).toBeUndefined();
  expect((await configs.list(tenantId, taskId, '', 10)).map(({ id }) => id)).toEqual(['a', 'b']);
  expect((await configs.list(tenantId, taskId, '', 1)).map(({ id }) => id)).toEqual(['a']);
  expect(await configs.list(tenantId, taskId, 'a', 10)).toEqual([shown]);
});

it('one that is set again goes on where it was, and a delivery under way no longer counts', async () => {
  const run = await task();
  await configs.put(run, push('a'), OWNER);
  await endTurn(stores, run, 2);
  await sql(
    stores,
    `UPDATE push_configs SET state = 'dead', failures = 9, lease_owner = 'w', lease_count = 4, due_at = NULL
     WHERE task_id = '${run.taskId}'`,
  );
  await configs.put(run, push('a', { url: 'https://example.org/' }), OWNER);
  expect(await rows(run.taskId)).toEqual([
    {
      id: 'a',
      url: 'https://example.org/',
      key_id: null,
      state: 'active',
      failures: 0,
      is_due: true,
      delivered_sequence: 2,
      head_sequence: 3,
      lease_count: 5,
      lease_owner: null,
    },
  ]);
  expect(await countOf(run.taskId)).toBe(1);
});

it('a deleted one is gone, and deleting it again changes nothing', async () => {
  const run = await task();
  const { tenantId, taskId } = run;
  await configs.put(run, push('a'), OWNER);
  await configs.put(run, push('b'), OWNER);
  expect(await configs.delete({ tenantId, taskId, id: 'a' }, OWNER)).toBe(true);
  expect(await configs.delete({ tenantId, taskId, id: 'a' }, OWNER)).toBe(true);
  expect(await rows(taskId)).toMatchObject([{ id: 'b' }]);
  expect(await countOf(taskId)).toBe(1);
  expect(await configs.delete({ tenantId: randomUUID(), taskId, id: 'b' }, OWNER)).toBe(false);
  expect(await rows(taskId)).toMatchObject([{ id: 'b' }]);
});

it('one of another task with the same id is another config', async () => {
  const run = await task();
  const { tenantId, taskId } = run;
  const other = await task(tenantId);
  await configs.put(run, push('a'), OWNER);
  await configs.put(other, push('a', { url: 'https://example.org/' }), OWNER);
  const find = (id: string) => configs.find({ tenantId, taskId: id, id: 'a' });
  expect([(await find(taskId))?.url, (await find(other.taskId))?.url]).toEqual([
    'https://example.com/a',
    'https://example.org/',
  ]);
  await configs.delete({ tenantId, taskId, id: 'a' }, OWNER);
  expect([await rows(taskId), await countOf(taskId)]).toEqual([[], 0]);
  expect([await rows(other.taskId), await countOf(other.taskId)]).toMatchObject([
    [{ id: 'a', state: 'active' }],
    1,
  ]);
});

it('one that a worker delivers to is deleted when its request has ended: nothing follows', async () => {
  const run = await task();
  const { tenantId, taskId } = run;
  await configs.put(run, push('a'), OWNER);
  await endTurn(stores, run, 2);
  const deliveries = new PushDeliveryStore(stores.database);
  const limits = { limit: 10, perHost: 10, perTenant: 10 };
  const mine = (await deliveries.claim('w', 600_000, limits)).find((claimed) => claimed.taskId === taskId)!;
  let isDeleted = false;
  const remove = () => configs.delete({ tenantId, taskId, id: 'a' }, OTHER);
  const deleting = remove().then(() => (isDeleted = true));
  const other = await task(tenantId);
  await configs.put(other, push('a'), OWNER);
  while (await configs.find({ tenantId, taskId, id: 'a' })) await setImmediate();
  expect(await configs.find({ tenantId, taskId, id: '' })).toBeUndefined();
  expect(await configs.list(tenantId, taskId, '', 10)).toEqual([]);
  expect(await deliveries.ofTask(tenantId, taskId)).toEqual([]);
  expect(await deliveries.advance(mine, 3, 600_000)).toBeUndefined();
  // It waits for no request but its own.
  await configs.delete({ tenantId, taskId: other.taskId, id: 'a' }, OWNER);
  const again = remove();
  expect(isDeleted).toBe(false);
  await deliveries.release(mine);
  await Promise.all([deleting, again]);
  expect(await records(tenantId)).toMatchObject([{ action: 'push.delete' }]);
  expect([await rows(taskId), await countOf(taskId)]).toEqual([[], 0]);
});

it('one that is set again is stored when the request to its former receiver has ended', async () => {
  const run = await task();
  const { tenantId, taskId } = run;
  await configs.put(run, push('a'), OWNER);
  await endTurn(stores, run, 2);
  const deliveries = new PushDeliveryStore(stores.database);
  const limits = { limit: 10, perHost: 10, perTenant: 10 };
  const claim = async () =>
    (await deliveries.claim('w', 600_000, limits)).filter((claimed) => claimed.taskId === taskId);
  const [mine] = await claim();
  let isSet = false;
  const put = (url: string) => configs.put(run, push('a', { url }), OWNER);
  const setting = Promise.all([put('https://b.example/'), put('https://c.example/')]).then(
    () => (isSet = true),
  );
  while ((await configs.find({ tenantId, taskId, id: 'a' }))?.url === 'https://example.com/a')
    await setImmediate();
  expect([await claim(), await deliveries.advance(mine!, 3, 600_000), isSet]).toEqual([[], undefined, false]);
  await deliveries.release(mine!);
  await setting;
  const [next] = await claim();
  expect(next).toMatchObject({
    url: expect.stringMatching(/[bc]\.example/) as string,
    delivered: 2,
    head: 3,
  });
  // What the first worker says once more ends no lease but its own.
  await deliveries.release(mine!);
  expect(await deliveries.advance(next!, 3, 600_000)).toBe(3);
});

it('there are no more than the limit, however many come at once, and none of a task that is not there', async () => {
  const run = await task();
  const puts = await Promise.allSettled(
    ['a', 'b', 'c', 'd', 'e'].map((id) => configs.put(run, push(id, {}, 2), OWNER)),
  );
  const refused = puts.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
  expect(refused).toEqual([1, 2, 3].map(() => new LimitReachedError('pushConfigs', 2)));
  expect([(await rows(run.taskId)).length, await countOf(run.taskId)]).toEqual([2, 2]);
  const [{ id } = { id: '' }] = await configs.list(run.tenantId, run.taskId, '', 1);
  expect(await configs.put(run, push(id, { url: 'https://other' }, 2), OWNER)).toBe(true);
  expect(await configs.put({ tenantId: run.tenantId, taskId: randomUUID() }, push('a'), OWNER)).toBe(false);
  expect(await configs.put({ tenantId: run.tenantId, taskId: 'nonsense' }, push('a'), OWNER)).toBe(false);
  expect(await configs.put({ ...run, tenantId: randomUUID() }, push('a'), OWNER)).toBe(false);
});

it('those of webhooks are out of reach', async () => {
  const run = await task();
  const { tenantId, taskId } = run;
  await sql(
    stores,
    `INSERT INTO push_configs (tenant_id, task_id, id, webhook_id, url, protocol, delivered_sequence, head_sequence)
     VALUES ('${tenantId}', '${taskId}', 'w', gen_random_uuid(), 'https://w', 'webhook', 2, 2)`,
  );
  await expect(configs.put(run, push('w'), OWNER)).rejects.toThrow(PushConfigTakenError);
  await configs.delete({ tenantId, taskId, id: 'w' }, OWNER);
  expect(await configs.find({ tenantId, taskId, id: 'w' })).toBeUndefined();
  expect(await configs.find({ tenantId, taskId, id: '' })).toBeUndefined();
  await configs.put(run, push('a', {}, 1), OWNER);
  expect((await configs.list(tenantId, taskId, '', 10)).map(({ id }) => id)).toEqual(['a']);
  expect([(await rows(taskId)).length, await countOf(taskId)]).toEqual([2, 2]);
});

it('who is not the owner leaves a record, without the path of the URL', async () => {
  const run = await task();
  const { tenantId, taskId } = run;
  await configs.put(run, push('mine'), OWNER);
  await configs.put(run, push('a'), OTHER);
  await configs.delete({ tenantId, taskId, id: 'a' }, OTHER);
  await configs.delete({ tenantId, taskId, id: 'a' }, OTHER);
  const by = { actor: OTHER.key, target: taskId };
  expect(await records(tenantId)).toEqual([
    { ...by, action: 'push.set', detail: { id: 'a', url: 'https://example.com', owner: OWNER.key } },
    { ...by, action: 'push.delete', detail: { id: 'a', owner: OWNER.key } },
  ]);
});

describe('a config that comes with a message', () => {
  it('gets its turn from the first event on', async () => {
    const input = { ...newTask(), push: push('a') };
    const run = await startTask(stores, input);
    expect(await rows(run.taskId)).toMatchObject([{ delivered_sequence: 0, head_sequence: 2, is_due: true }]);
    await endTurn(stores, run, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
    const next = { agentId: 'echo', runId: randomUUID(), message: textMessage('more'), extensions: [] };
    const { tenantId, taskId } = run;
    await stores.tasks.continue({ tenantId, taskId, ...next, push: push('b') });
    expect(await rows(run.taskId)).toMatchObject([
      { id: 'a', delivered_sequence: 0, head_sequence: 4, is_due: true },
      { id: 'b', delivered_sequence: 3, head_sequence: 4, is_due: true },
    ]);
    expect(await countOf(taskId)).toBe(2);
  });

  it('is written with the turn or not at all, like the turn', async () => {
    const input = { ...newTask(), push: push('a', {}, 0) };
    await expect(stores.tasks.create(input)).rejects.toThrow(LimitReachedError);
    expect(await stores.tasks.get(input.tenantId, input.task.id)).toBeUndefined();
    expect(await rows(input.task.id)).toEqual([]);
    const run = await task();
    const next = { agentId: 'echo', runId: randomUUID(), message: textMessage('more'), extensions: [] };
    const { tenantId, taskId } = run;
    const refused = await stores.tasks.continue({ tenantId, taskId, ...next, push: push('b') });
    expect([refused.ok, await rows(taskId)]).toEqual([false, []]);
  });
});
