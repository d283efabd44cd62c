import { TaskState } from '@baton/a2a';
import { Database, PushDeliveryStore, WebhookDeliveryStore } from '@baton/database';
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
let receivers: Receiver[];
let workers: PushWorkerFixture[];

beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 6 });
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});
beforeEach(() => {
  [receivers, workers] = [[], []];
});
afterEach(async () => {
  for (const receiver of receivers) receiver.close();
  await Promise.all(workers.map((worker) => worker.stop()));
  // What one test leaves must be nothing to the workers of the next.
  await database.systemQuery({ text: 'DELETE FROM push_configs' }, []);
});

async function receiver(answer?: Receiver['answer']): Promise<Receiver> {
  const started = await Receiver.start();
  if (answer) started.answer = answer;
  receivers.push(started);
  return started;
}

function worker(settings: Record<string, string> = {}): PushWorkerFixture {
  const started = new PushWorkerFixture(database, testDatabase.url, `w${workers.length}`, settings);
  workers.push(started);
  return started.start();
}

type Task = RunningTask;

type ConfigRow = Awaited<ReturnType<typeof configOf>>;

/** The row of a config once it is as a test needs it. */
const configWhen = async (task: Task, isSo: (row: ConfigRow) => boolean, id = 'a'): Promise<ConfigRow> => {
  const { row } = await until(async () => {
    const found = await configOf(database, task, id);
    return isSo(found) && { row: found };
  });
  return row;
};

const untilDelivered = (task: Task, sequence: number, id = 'a') =>
  configWhen(task, (config) => config?.delivered === sequence && !config.isLeased, id);

const statusOf = ({ json }: Receiver['received'][number]): unknown =>
  (json.task as { status?: { state?: string } } | undefined)?.status?.state ??
  (json.statusUpdate as { status?: { state?: string } } | undefined)?.status?.state;

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

describe('a config of 1.0', () => {
  it('gets each event once, in order, from the first to the last', async () => {
    const hook = await receiver();
    const task = await RunningTask.start(database, { traceparent: TRACEPARENT });
    await addConfig(database, task, { url: hook.url });
    worker();
    await task.say('a', 'b', 'c');
    await task.say('d');
    await task.end();
    expect(await untilDelivered(task, 7)).toEqual({
      state: 'active',
      mode: 'each',
      delivered: 7,
      head: 7,
      failures: 0,
      status: 200,
      error: null,
      isDue: false,
      isLeased: false,
    });
    expect(hook.sequences).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(hook.received.map((one) => Object.keys(one.json)[0])).toEqual([
      'task',
      'statusUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'statusUpdate',
    ]);
    expect(statusOf(hook.received[6]!)).toBe('TASK_STATE_COMPLETED');
    expect(hook.received[2]!.headers).toMatchObject({
      'content-type': 'application/a2a+json',
      'a2a-version': '1.0',
      'baton-task': task.taskId,
      'baton-sequence': '3',
      'webhook-id': `${task.taskId}:a:3`,
      traceparent: TRACEPARENT,
    });
  });

  it('that is made later gets the events after it', async () => {
    const hook = await receiver();
    const task = await RunningTask.start(database);
    await task.say('a');
    await addConfig(database, task, { url: hook.url, after: 3 });
    const { take } = { take: worker() };
    await task.say('b');
    await take.wake(task.tenantId, task.taskId);
    await untilDelivered(task, 4);
    expect(hook.sequences).toEqual([4]);
  });
});

it('a config of 0.3 gets tasks: one for each status, and one for what follows', async () => {
  const hook = await receiver();
  const task = await RunningTask.start(database);
  await addConfig(database, task, { url: hook.url, protocol: '0.3' });
  await task.say('a', 'b');
  worker();
  await untilDelivered(task, 4);
  expect(hook.sequences).toEqual([1, 2, 4]);
  expect(hook.received[2]!.headers).toMatchObject({
    'content-type': 'application/json',
    'a2a-version': '0.3',
    'baton-first-sequence': '3',
  });
  await task.say('c');
  await task.end();
  await untilDelivered(task, 6);
  expect(hook.received.map(statusOf)).toEqual([undefined, undefined, undefined, undefined]);
  const states = hook.received.map(({ json }) => (json as { status: { state: string } }).status.state);
  expect(states).toEqual(['submitted', 'working', 'working', 'completed']);
  expect(hook.received.at(-1)!.json).toMatchObject({
    kind: 'task',
    id: task.taskId,
    artifacts: [{ parts: [{ text: 'a' }, { text: 'b' }, { text: 'c' }] }],
  });
});

describe('a native webhook', () => {
  const BATON_MASTER_KEY = randomBytes(32).toString('base64');
  const by = { kind: 'token', key: 'token:test' } as const;
  let fixture: PushWorkerFixture;
  let tenantId: string;
  let hook: Receiver;
  beforeEach(async () => {
    [fixture, hook, tenantId] = [worker({ BATON_MASTER_KEY }), await receiver(), randomUUID()];
    const text = `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${tenantId}')`;
    await database.systemQuery({ text }, []);
  });

  async function create(more: { states?: TaskState[] } = {}): Promise<{ id: string; secret: string }> {
    const id = randomUUID();
    const { secret, sealed } = fixture.secrets.create({ tenantId, id });
    const spec = { tenantId, id, url: hook.url, agents: [], states: [], enabled: true, ...more };
    await fixture.webhooks.create(spec, sealed, by);
    return { id, secret };
  }
  const webhookGot = (task: Task, id: string, sequence: number) =>
    untilDelivered(task, sequence, `webhook:${id}`);
  const verifies = (secret: string, { headers, json }: Receiver['received'][number]): boolean => {
    try {
      new Webhook(secret).verify(JSON.stringify(json), headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };

  it('gets the changes of the task’s state, and nothing else, signed with its secret', async () => {
    const { id, secret } = await create();
    const task = await RunningTask.start(database, { tenantId });
    await webhookGot(task, id, 2);
    await task.say('a');
    await task.work();
    await webhookGot(task, id, 4);
    await task.end();
    await webhookGot(task, id, 5);
    const states = hook.received.map(({ json }) => (json.data as { state: string }).state);
    expect([hook.sequences, states]).toEqual([
      [1, 2, 5],
      ['submitted', 'working', 'completed'],
    ]);
    const last = hook.received.at(-1)!;
    expect(last.headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': `${task.taskId}:webhook%3A${id}:5`,
    });
    expect(last.json).toEqual({
      type: 'task.state_changed',
      timestamp: expect.any(String),
      data: {
        webhook_id: id,
        task_id: task.taskId,
        context_id: '',
        agent: 'echo',
        state: 'completed',
        sequence: 5,
        event: { statusUpdate: expect.objectContaining({ taskId: task.taskId }) },
      },
    });
    for (const each of hook.received) expect(verifies(secret, each)).toBe(true);
  });

  it('gets states whose messages have characters that Postgres cannot read, or resemble a status', async () => {
    const { id } = await create();
    const text = 'nul \u0000, half \ud800, "status":{"state":"TASK_STATE_FAILED"}';
    const task = await RunningTask.start(database, { tenantId, text });
    await webhookGot(task, id, 2);
    await task.work(text);
    await webhookGot(task, id, 3);
    await task.end();
    await webhookGot(task, id, 4);
    expect(hook.sequences).toEqual([1, 2, 4]);
  });

  it('gets its own states alone', async () => {
    const { id } = await create({ states: [TaskState.TASK_STATE_COMPLETED] });
    const task = await RunningTask.start(database, { tenantId });
    await task.end();
    await webhookGot(task, id, 3);
    expect(hook.sequences).toEqual([3]);
  });

  it('shows its owner the request and the answer, without secrets', async () => {
    const { id, secret } = await create();
    const key = secret.replace('whsec_', '');
    hook.answer = (response, { headers }) =>
      response
        .writeHead(500)
        .end(`no room, signed ${String(headers['webhook-signature'])} with ${key}\0${'é'.repeat(2_000)}`);
    const task = await RunningTask.start(database, { tenantId });
    await configWhen(task, (config) => config?.failures === 1, `webhook:${id}`);
    const store = new WebhookDeliveryStore(database);
    const [first] = await store.tries(tenantId, id, task.taskId);
    expect(first).toMatchObject({ status: 500, error: 'it answered HTTP 500' });
    const { headers, body, answer, sequence } = first!.exchange!;
    const sent = hook.received[0]!;
    expect(sequence).toBe(1);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'webhook-id': sent.headers['webhook-id'],
      'webhook-signature': '(hidden)',
    });
    expect(JSON.stringify(sent.json).slice(0, 600)).toBe(body);
    expect(answer).toBe('no room, signed (hidden) with (hidden)'.padEnd(400, 'é'));
    expect(await store.tries(randomUUID(), id, task.taskId)).toEqual([]);
  });

  it('gets events at its new address, with its new secret', async () => {
    const { id, secret } = await create();
    const task = await RunningTask.start(database, { tenantId });
    await webhookGot(task, id, 2);
    const other = await receiver();
    await fixture.webhooks.change(tenantId, id, { url: other.url }, by);
    let next = '';
    await fixture.webhooks.rotate(
      tenantId,
      id,
      (before) => {
        const made = fixture.secrets.rotate({ tenantId, id }, before, 60_000);
        next = made.secret;
        return made.sealed;
      },
      by,
    );
    await task.end();
    await webhookGot(task, id, 3);
    expect([hook.sequences, other.sequences]).toEqual([[1, 2], [3]]);
    expect([secret, next].map((each) => verifies(each, other.received[0]!))).toEqual([true, true]);
  });

  it('gets nothing while it is disabled, nor later of that time', async () => {
    const { id } = await create();
    const task = await RunningTask.start(database, { tenantId });
    await webhookGot(task, id, 2);
    await fixture.webhooks.change(tenantId, id, { enabled: false }, by);
    await task.end();
    await webhookGot(task, id, 3);
    await fixture.webhooks.change(tenantId, id, { enabled: true }, by);
    expect(hook.sequences).toEqual([1, 2]);
  });

  it('gets nothing after it was deleted, not even what failed before', async () => {
    hook.answer = (response) => void response.writeHead(500).end();
    const { id } = await create();
    const task = await RunningTask.start(database, { tenantId });
    await hook.reach(1);
    await fixture.webhooks.remove(tenantId, id, by);
    const after = hook.received.length;
    await task.end();
    // Another webhook gets another task: all due configs were claimed by then.
    hook.answer = (response) => void response.end();
    const { id: second } = await create();
    const next = await RunningTask.start(database, { tenantId });
    await next.end();
    await webhookGot(next, second, 3);
    const late = hook.received.slice(after).filter(({ headers }) => headers['webhook-id']?.includes(id));
    expect(late).toEqual([]);
    expect(await configOf(database, task, `webhook:${id}`)).toBeUndefined();
  });

  it.each([
    ['newest', [1, 3], { data: { state: 'completed', sequence: 3 } }],
    [
      'batch',
      [1, 3],
      { events: [{ data: { state: 'working' } }, { data: { state: 'completed' } }], sequences: [2, 3] },
    ],
  ])('gets the events of a wait in the mode "%s" if it asks for them', async (mode, sequences, body) => {
    let finish = (): void => undefined;
    hook.answer = (response, { sequence }) => {
      finish = () => void response.setHeader('baton-push-mode', mode).end();
      if (sequence !== 1) finish();
    };
    const { id, secret } = await create();
    const task = await RunningTask.start(database, { tenantId });
    await hook.reach(1);
    await task.end();
    finish();
    await webhookGot(task, id, 3);
    expect(hook.sequences).toEqual(sequences);
    expect(hook.received[1]!.json).toMatchObject(body);
    expect(verifies(secret, hook.received[1]!)).toBe(true);
  });

  it.each<[string, (id: string, to: string) => Promise<unknown>, number[]]>([
    ['deleted', (id) => fixture.webhooks.remove(tenantId, id, by), []],
    ['disabled', (id) => fixture.webhooks.change(tenantId, id, { enabled: false }, by), []],
    ['moved', (id, url) => fixture.webhooks.change(tenantId, id, { url }, by), [1, 2, 3]],
  ])(
    'that is %s while a request is under way waits for its end, and sends no other there',
    async (_, change, moved) => {
      let finish = (): void => undefined;
      hook.answer = (response) => (finish = () => void response.end());
      const { id } = await create();
      const other = await receiver();
      const task = await RunningTask.start(database, { tenantId });
      await task.end();
      await hook.reach(1);
      let isChanged = false;
      const changing = change(id, other.url).then(() => (isChanged = true));
      const revoked = `SELECT FROM push_configs WHERE webhook_id = '${id}' AND lease_owner IS NULL AND lease_until > now()`;
      await until(async () => (await database.systemQuery({ text: revoked }, [])).length > 0);
      expect(isChanged).toBe(false);
      finish();
      await changing;
      if (moved.length > 0) await webhookGot(task, id, 3);
      expect([hook.sequences, other.sequences]).toEqual([[1], moved]);
    },
  );
});

it('a suspended tenant gets nothing more until it is resumed; then nothing is missing', async () => {
  let finish = (): void => undefined;
  const hook = await receiver((response, { sequence }) => {
    finish = () => void response.end();
    if (sequence !== 1) finish();
  });
  const other = await receiver();
  const task = await RunningTask.start(database);
  const suspend = (at: string) =>
    database.systemQuery(
      {
        text: `INSERT INTO tenants (id, slug, suspended_at) VALUES ('${task.tenantId}', '${task.tenantId}', ${at})
          ON CONFLICT (id) DO UPDATE SET suspended_at = ${at}`,
      },
      [],
    );
  await addConfig(database, task, { url: hook.url });
  const working = worker();
  await hook.reach(1);
  await suspend('now()');
  finish();
  const waits = await configWhen(task, (config) => config?.isLeased === false);
  expect(waits).toMatchObject({ delivered: 1, isDue: true, failures: 0, state: 'active' });
  await task.end();
  // Another tenant gets its event: this one was passed over.
  const next = await RunningTask.start(database);
  await addConfig(database, next, { url: other.url });
  await untilDelivered(next, 2);
  await working.wake(task.tenantId, task.taskId);
  expect([hook.sequences, other.sequences]).toEqual([[1], [1, 2]]);
  await suspend('NULL');
  await untilDelivered(task, 3);
  expect(hook.sequences).toEqual([1, 2, 3]);
});

describe('a delivery that fails', () => {
  it.each([500, 302, 404])('with HTTP %d is repeated in order until it is taken', async (status) => {
    let failures = 3;
    const hook = await receiver((response, { sequence }) => {
      if (sequence === 2 && failures-- > 0) response.writeHead(status, { location: '/elsewhere' }).end();
      else response.end();
    });
    const task = await RunningTask.start(database);
    await addConfig(database, task, { url: hook.url });
    worker();
    await task.end();
    const config = await untilDelivered(task, 3);
    expect(hook.sequences).toEqual([1, 2, 2, 2, 2, 3]);
    expect(new Set(hook.received.slice(1, 5).map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    expect(config).toMatchObject({ failures: 0, error: null });
  });

  it('waits as long as the receiver asks', async () => {
    const times: number[] = [];
    const hook = await receiver((response) => {
      times.push(performance.now());
      if (times.length === 1) response.writeHead(429, { 'retry-after': '1' });
      response.end();
    });
    const task = await RunningTask.start(database);
    await addConfig(database, task, { url: hook.url, after: 1 });
    worker({ PUSH_FIRST_RETRY_MS: '1', PUSH_MAX_RETRY_MS: '60000' });
    await untilDelivered(task, 2);
    expect(times[1]! - times[0]!).toBeGreaterThan(950);
  });

  it('with HTTP 410 ends the config', async () => {
    const hook = await receiver((response) => response.writeHead(410).end());
    const task = await RunningTask.start(database);
    await addConfig(database, task, { url: hook.url });
    worker();
    const config = await configWhen(task, (found) => found?.state === 'ended');
    await task.end();
    expect(config).toMatchObject({ delivered: 0, status: 410, isDue: false, isLeased: false });
    expect(await configOf(database, task)).toMatchObject({ head: 2, isDue: false });
    expect(hook.sequences).toEqual([1]);
  });

  it('all the time is given up, and keeps its place', async () => {
    const hook = await receiver((response) => response.writeHead(503).end());
    const task = await RunningTask.start(database);
    await addConfig(database, task, { url: hook.url, after: 1 });
    const { metrics } = worker({ PUSH_GIVE_UP_HOURS: '0' });
    const config = await configWhen(task, (found) => found?.state === 'dead');
    expect(config).toMatchObject({ delivered: 1, head: 2, failures: 2, status: 503, isDue: false });
    expect(config?.error).toBe('it answered HTTP 503');
    const { body } = await metrics.render();
    expect(body).toMatch(/^baton_push_deliveries_total{outcome="failed"} 1$/m);
    expect(body).toMatch(/^baton_push_deliveries_total{outcome="dead"} 1$/m);
    expect(body).toMatch(/^baton_push_dead 1$/m);
  });

  it('because no server listens, the address is private, the egress rules forbid it or the port is wrong, has that reason', async () => {
    const gone = await receiver();
    const { url } = gone;
    gone.close();
    const hook = await receiver();
    const errorOf = async (to: string) => {
      const task = await RunningTask.start(database);
      await addConfig(database, task, { url: to, after: 1 });
      const found = await configWhen(task, (config) => (config?.failures ?? 0) > 0);
      return found?.error;
    };
    const started = worker();
    expect(await errorOf(url)).toBe('it refused the connection');
    expect(await errorOf('http://10.0.0.1/hook')).toMatch(/private|not (a )?public|allow/i);
    expect(await errorOf('http://127.0.0.1:25/')).toMatch(/port/);
    started.egress = { allow: [], deny: ['127.0.0.1'] };
    expect(await errorOf(hook.url)).toMatch(/egress_deny/);
    expect(hook.received).toEqual([]);
  });

  it('because the receiver hangs is over after the time-out', async () => {
    const hook = await receiver(() => undefined);
    const task = await RunningTask.start(database);
    await addConfig(database, task, { url: hook.url, after: 1 });
    worker({ PUSH_TIMEOUT_MS: '200' });
    const config = await configWhen(task, (found) => (found?.failures ?? 0) > 0);
    expect(config?.error).toBe('it did not answer within 200 ms');
  });
});

it('a huge answer counts by its status, and is not read', async () => {
  let written = 0;
  const hook = await receiver((response) => {
    const more = (): void => {
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024))) written += 64 * 1024;
    };
    response.writeHead(200).on('drain', more);
    more();
  });
  const task = await RunningTask.start(database);
  await addConfig(database, task, { url: hook.url });
  worker({ PUSH_RESPONSE_BYTES: '1000' });
  await untilDelivered(task, 2);
  expect(hook.sequences).toEqual([1, 2]);
  expect(written).toBeLessThan(64 * 1024 * 1024);
});

describe('a receiver that asks for another mode', () => {
  const asking = (mode: string) => receiver((response) => response.setHeader('baton-push-mode', mode).end());

  it('gets the newest state alone when several events wait', async () => {
    const hook = await asking('newest');
    const task = await RunningTask.start(database);
    await task.say('a', 'b', 'c');
    await addConfig(database, task, { url: hook.url });
    worker();
    await untilDelivered(task, 5);
    expect(hook.sequences).toEqual([1, 5]);
    expect(hook.received[1]!.headers['baton-first-sequence']).toBe('2');
    expect(hook.received[1]!.json).toMatchObject({ task: { artifacts: [{ artifactId: 'reply' }] } });
    await task.end();
    await untilDelivered(task, 6);
    expect(hook.received[2]!.json).toMatchObject({ statusUpdate: {} });
    expect(await configOf(database, task)).toMatchObject({ mode: 'newest' });
  });

  it('gets all waiting events in one request', async () => {
    const hook = await asking('batch');
    const task = await RunningTask.start(database);
    await task.say('a', 'b', 'c');
    await addConfig(database, task, { url: hook.url });
    worker();
    await untilDelivered(task, 5);
    expect(hook.sequences).toEqual([1, 5]);
    const { events, sequences } = hook.received[1]!.json as { events: object[]; sequences: number[] };
    expect(events.map((event) => Object.keys(event)[0])).toEqual([
      'statusUpdate',
      'artifactUpdate',
      'artifactUpdate',
      'artifactUpdate',
    ]);
    expect(sequences).toEqual([2, 3, 4, 5]);
  });

  it('gets each event as long as it asks for nothing that is known', async () => {
    const hook = await asking('everything');
    const task = await RunningTask.start(database);
    await addConfig(database, task, { url: hook.url });
    worker();
    await untilDelivered(task, 2);
    expect(hook.sequences).toEqual([1, 2]);
  });
});

describe('a worker', () => {
  it('that dies between the answer and the cursor leaves one request that comes twice', async () => {
    const hook = await receiver();
    const task = await RunningTask.start(database);
    await task.say('a', 'b');
    await addConfig(database, task, { url: hook.url });
    // It has sent event 1 and has not stored that.
    const store = new PushDeliveryStore(database);
    const [claimed] = await store.claim('dead', 300, { limit: 1, perHost: 1, perTenant: 1 });
    await fetch(hook.url, { method: 'POST', body: '{}', headers: { 'baton-sequence': '1' } });
    worker();
    await untilDelivered(task, 4);
    expect(hook.sequences).toEqual([1, 1, 2, 3, 4]);
    // What it says later counts no more.
    expect(await store.advance(claimed!, 1, 1_000)).toBeUndefined();
    expect(
      await store.fail(claimed!, {
        status: null,
        error: '',
        ms: 5,
        retryMs: 1,
        giveUpHours: 0,
        isGone: true,
      }),
    ).toBeUndefined();
    await store.release(claimed!);
    expect(await configOf(database, task)).toMatchObject({ state: 'active', delivered: 4, isDue: false });
  });

  it('that shuts down lets a request end, and begins no other', async () => {
    let finish = (): void => undefined;
    const hook = await receiver((response) => (finish = () => void response.end()));
    const task = await RunningTask.start(database);
    await addConfig(database, task, { url: hook.url });
    const stopping = worker();
    await hook.reach(1);
    const stopped = stopping.stop();
    finish();
    await stopped;
    expect(hook.sequences).toEqual([1]);
    expect(await configOf(database, task)).toMatchObject({
      delivered: 1,
      isDue: true,
      isLeased: false,
      failures: 0,
    });
  });

  it('gives back a config whose receiver takes longer than the grace time', async () => {
    const hook = await receiver(() => undefined);
    const task = await RunningTask.start(database);
    await addConfig(database, task, { url: hook.url });
    const stopping = worker({ WORKER_GRACE_MS: '50' });
    await hook.reach(1);
    await stopping.stop();
    expect(await configOf(database, task)).toMatchObject({
      delivered: 0,
      isDue: true,
      isLeased: false,
      failures: 0,
    });
  });
});

describe('a slow receiver', () => {
  it('holds up no other, neither of its own tenant nor of others', async () => {
    const slow = await receiver(() => undefined);
    const fast = await receiver();
    const tenantId = randomUUID();
    const tasks = await Promise.all(
      Array.from({ length: 12 }, () => RunningTask.start(database, { tenantId })),
    );
    for (const task of tasks) await addConfig(database, task, { url: slow.url, after: 1 });
    worker({ PUSH_PER_HOST: '2', PUSH_CONCURRENCY: '4' });
    await slow.reach(2);
    const own = await RunningTask.start(database, { tenantId });
    await addConfig(database, own, { url: fast.url });
    const others = await RunningTask.start(database);
    await addConfig(database, others, { url: fast.url });
    await Promise.all([untilDelivered(own, 2), untilDelivered(others, 2)]);
    expect(slow.received).toHaveLength(2);
  });
});

describe('claims', () => {
  const store = (): PushDeliveryStore => new PushDeliveryStore(database);
  const limits = { limit: 100, perHost: 100, perTenant: 100 };

  /** Due configs of one tenant. */
  async function due(tenantId: string, count: number, url = 'https://a.example/'): Promise<void> {
    for (let i = 0; i < count; i++) {
      const task = await RunningTask.start(database, { tenantId });
      await addConfig(database, task, { url: `${url}${i}` });
    }
  }

  const tenantsOf = (claimed: { tenantId: string }[]): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const { tenantId } of claimed) counts[tenantId] = (counts[tenantId] ?? 0) + 1;
    return counts;
  };

  it('go to the tenant with the fewest leases first', async () => {
    const [many, few] = [randomUUID(), randomUUID()];
    await due(many, 8);
    await due(few, 2);
    expect(tenantsOf(await store().claim('a', 60_000, { ...limits, limit: 4 }))).toEqual({
      [many]: 2,
      [few]: 2,
    });
    await due(few, 4);
    expect(tenantsOf(await store().claim('a', 60_000, { ...limits, limit: 4 }))).toEqual({
      [many]: 2,
      [few]: 2,
    });
  });

  it('keep the limits per host and per tenant, over all workers', async () => {
    const [one, other] = [randomUUID(), randomUUID()];
    await due(one, 6);
    await due(other, 2, 'https://A.example/x');
    await due(other, 1, 'https://b.example/');
    const perHost = { ...limits, perHost: 3 };
    const claims = await Promise.all(['a', 'b', 'c'].map((id) => store().claim(id, 60_000, perHost)));
    const hosts = claims.flat().map(({ url }) => new URL(url).host);
    expect(hosts.filter((host) => host === 'a.example')).toHaveLength(3);
    expect(hosts.filter((host) => host === 'b.example')).toHaveLength(1);
    const perTenant = await store().claim('d', 60_000, { ...limits, perTenant: 3 });
    const taken = tenantsOf([...claims.flat(), ...perTenant]);
    expect(Math.max(...Object.values(taken))).toBe(3);
  });

  it('never give one config to two workers', async () => {
    await due(randomUUID(), 20);
    const claims = await Promise.all(
      ['a', 'b', 'c', 'd'].map((id) => store().claim(id, 60_000, { ...limits, limit: 8 })),
    );
    const ids = claims.flat().map(({ taskId }) => taskId);
    expect(ids).toHaveLength(20);
    expect(new Set(ids).size).toBe(20);
  });
});

describe('a receiver that has never taken a delivery of the tenant', () => {
  const CONFIGS = 40;
  /** Short pauses, which double from 200 ms. */
  const PACED = { PUSH_FIRST_RETRY_MS: '400', PUSH_MAX_RETRY_MS: '60000', PUSH_PER_HOST: '1' };

  /** As many tasks of one tenant, each with a config for the receiver. */
  async function direct(at: Receiver, tenantId = randomUUID()): Promise<Task[]> {
    const tasks: Task[] = [];
    for (let i = 0; i < CONFIGS; i++) {
      const task = await RunningTask.start(database, { tenantId });
      await addConfig(database, task, { url: at.url });
      tasks.push(task);
    }
    return tasks;
  }

  it('gets the tries of one config for all its configs, and each config has the reason', async () => {
    const victim = await receiver((response) => void response.writeHead(405).end());
    const tasks = await direct(victim);
    worker(PACED);
    await victim.reach(2);
    const waiting = await Promise.all(
      tasks.map((task) => configWhen(task, (config) => config?.error !== null && !config!.isLeased)),
    );
    // 40 configs by themselves would have sent 40 requests before any of them sends its second one.
    expect(victim.received.length).toBeLessThan(CONFIGS / 2);
    const reasons = waiting.map((config) => config?.error);
    expect(reasons).toContain('it answered HTTP 405');
    expect(reasons).toContain(
      'the receiver has not taken any delivery of this tenant yet, and another config tries it',
    );
  });

  it('gets everything once it has taken one, and other tenants never wait for it', async () => {
    let isOpen = false;
    const late = await receiver((response) => void response.writeHead(isOpen ? 200 : 503).end());
    const tasks = await direct(late);
    worker({ ...PACED, PUSH_MAX_RETRY_MS: '800' });
    await late.reach(2);
    isOpen = true;
    const other = await RunningTask.start(database);
    await addConfig(database, other, { url: late.url });
    await untilDelivered(other, 2);
    for (const task of tasks) await untilDelivered(task, 2);
  });
});
