import { Database, DeadPushStore, OPERATOR_ACTOR } from '@baton/database';
import { randomBytes, randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { until } from '../../../../test/support/until.js';
import { addConfig, configOf } from './push-config.fixture.js';
import { PushWorkerFixture } from './push-worker.fixture.js';
import { Receiver } from './receiver.fixture.js';
import { RunningTask } from './running-task.fixture.js';

let testDatabase: TestDatabase;
let database: Database;
let store: DeadPushStore;

beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 4 });
  store = new DeadPushStore(database);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

it('a config that was given up continues where it stopped when it is redelivered', async () => {
  const hook = await Receiver.start();
  hook.answer = (response, { sequence }) => response.writeHead(sequence === 2 ? 503 : 200).end();
  const worker = new PushWorkerFixture(database, testDatabase.url, 'w', { PUSH_GIVE_UP_HOURS: '0' }).start();
  try {
    const task = await RunningTask.start(database);
    const { tenantId, taskId } = task;
    await addConfig(database, task, { url: hook.url });
    await until(async () => (await configOf(database, task))?.state === 'dead');
    await task.end();
    expect(await store.list(tenantId, { limit: 10 })).toEqual([
      {
        tenantId,
        taskId,
        configId: 'a',
        agentId: 'echo',
        isWebhook: false,
        receiver: new URL(hook.url).origin,
        status: 503,
        error: 'it answered HTTP 503',
        failures: 2,
        failingSince: expect.any(Date) as Date,
        waiting: 2,
      },
    ]);
    hook.answer = (response) => void response.end();
    expect(await store.findTenant(taskId)).toBe(tenantId);
    expect(await store.redeliver({ tenantId, taskId }, 'another', OPERATOR_ACTOR)).toEqual([]);
    expect(await store.redeliver({ tenantId, taskId }, undefined, OPERATOR_ACTOR)).toEqual(['a']);
    expect(await store.redeliver({ tenantId, taskId }, undefined, OPERATOR_ACTOR)).toEqual([]);
    await until(async () => (await configOf(database, task))?.delivered === 3);
    expect(hook.sequences).toEqual([1, 2, 2, 2, 3]);
    expect(await store.findTenant(taskId)).toBeUndefined();
  } finally {
    hook.close();
    await worker.stop();
  }
});

it('the events that a webhook did not get are redelivered as well, signed with its secret', async () => {
  const hook = await Receiver.start();
  hook.answer = (response, { sequence }) => response.writeHead(sequence === 2 ? 503 : 200).end();
  const settings = { PUSH_GIVE_UP_HOURS: '0', BATON_MASTER_KEY: randomBytes(32).toString('base64') };
  const worker = new PushWorkerFixture(database, testDatabase.url, 'w', settings).start();
  try {
    const [tenantId, id] = [randomUUID(), randomUUID()];
    const text = `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${tenantId}')`;
    await database.systemQuery({ text }, []);
    const { secret, sealed } = worker.secrets.create({ tenantId, id });
    const spec = { tenantId, id, url: hook.url, agents: [], states: [], enabled: true };
    await worker.webhooks.create(spec, sealed, { kind: 'token', key: 'token:test' });
    const task = await RunningTask.start(database, { tenantId });
    const { taskId } = task;
    const configId = `webhook:${id}`;
    await until(async () => (await configOf(database, task, configId))?.state === 'dead');
    await task.end();
    expect(await store.list(tenantId, { limit: 10 })).toEqual([
      expect.objectContaining({ taskId, configId, isWebhook: true, status: 503, failures: 2, waiting: 2 }),
    ]);
    hook.answer = (response) => void response.end();
    expect(await store.redeliver({ tenantId, taskId }, undefined, OPERATOR_ACTOR)).toEqual([configId]);
    await until(async () => (await configOf(database, task, configId))?.delivered === 3);
    expect(hook.sequences).toEqual([1, 2, 2, 2, 3]);
    const { json, headers } = hook.received.at(-1)!;
    expect(new Webhook(secret).verify(JSON.stringify(json), headers as Record<string, string>)).toMatchObject(
      {
        data: { webhook_id: id, state: 'completed' },
      },
    );
  } finally {
    hook.close();
    await worker.stop();
  }
});

it('they have pages, of the tasks that the caller may see', async () => {
  const tenantId = randomUUID();
  for (const ids of ['a', 'bcd', 'e']) {
    const task = await RunningTask.start(database, { tenantId });
    for (const id of ids) await addConfig(database, task, { id, url: 'https://a.example/secret' });
  }
  const give = `UPDATE push_configs SET state = 'dead', failing_since = '2026-01-01' WHERE tenant_id = '${tenantId}'`;
  await database.systemQuery({ text: give }, []);
  const first = await store.list(tenantId, { limit: 3 });
  const rest = await store.listAll({ limit: 3, after: first.at(-1) });
  const keys = [...first, ...rest].map(({ taskId, configId }) => `${taskId} ${configId}`);
  expect(keys).toHaveLength(5);
  expect(keys).toEqual(keys.toSorted().toReversed());
  expect(JSON.stringify(first)).not.toContain('secret');
  expect(await store.list(tenantId, { limit: 3, agentIds: ['other'] })).toEqual([]);
  const own = (unowned: boolean) => store.list(tenantId, { limit: 9, own: { owner: 'token:x', unowned } });
  expect([await own(false), await own(true)].map(({ length }) => length)).toEqual([0, 5]);
  expect(await store.list(randomUUID(), { limit: 3 })).toEqual([]);
});
