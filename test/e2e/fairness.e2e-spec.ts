import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { Hold } from '../support/hold.js';
import { DRIVERS } from '../support/index.js';
import { driversOf, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';
import { LOG } from '../support/log-sql.js';
import { until } from '../support/until.js';

const CONCURRENCY = 2;
const SLOTS = 2 * CONCURRENCY;
/** Slots that stay free for tenants without a run in flight. */
const RESERVED = 1;
/** Most runs that are on the queue or running while others wait. */
const CAPACITY = SLOTS + 4;
const CALLERS = 10;

describe.each(driversOf('redis'))('tenants on %s', (driver) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-counter-'));
  const COUNTER_FILE = join(folder, 'counter');
  const hold = new Hold();
  let stack: Stack;

  beforeAll(async () => {
    const env = {
      ...hold.env,
      COUNTER_FILE,
      EXECUTOR_WRITE: folder,
      WORKER_CONCURRENCY: String(CONCURRENCY),
      ...CRASH_SETTINGS,
    };
    stack = await Stack.start({ driver, apis: 2, workers: 2, env });
  });
  afterAll(async () => {
    await stack.stop();
    rmSync(folder, { recursive: true, force: true });
    hold.remove();
  });

  /** One caller per API. */
  const callersOf = ({ token }: TestTenant, agent = 'echo'): RawCaller[] =>
    [0, 1].map((api) => new RawCaller(stack.url(api, agent), token));

  /** Has tasks accepted over both APIs and does not wait for them; their ids. */
  async function accept(callers: RawCaller[], count: number, metadata?: object): Promise<string[]> {
    const ids: string[] = [];
    let left = count;
    const caller = async (_: unknown, i: number): Promise<void> => {
      while (left-- > 0) {
        const params = { ...sendParams('work', { metadata }), configuration: { returnImmediately: true } };
        const { result } = await callers[i % callers.length]!.call('SendMessage', params);
        ids.push(result!.task.id as string);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    return ids;
  }

  /** Resolves when the tasks have ended; in which states. */
  async function ends(callers: RawCaller[], ids: string[]): Promise<Set<string>> {
    const states = new Set<string>();
    const open = [...ids];
    const follow = async (): Promise<void> => {
      for (let id = open.pop(); id !== undefined; id = open.pop()) {
        let state = '';
        for await (const { data } of callers[0]!.stream('SubscribeToTask', { id }, 0)) {
          state = (data.result?.statusUpdate?.status.state as string | undefined) ?? state;
        }
        states.add(state);
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, follow));
    return states;
  }

  async function rows<T>(text: string, values: unknown[] = []): Promise<T[]> {
    const client = new Client({ connectionString: stack.database.url });
    await client.connect();
    try {
      await client.query(`SET baton.tenant = 'system'`);
      return (await client.query(text, values)).rows as T[];
    } finally {
      await client.end();
    }
  }

  nightlyIt(
    'a single task begins when the next slots are free, however many tasks of another tenant wait',
    async () => {
      const [flooding, single] = [await stack.createTenant(), await stack.createTenant()];
      const flood = callersOf(flooding);
      const ids = await accept(flood, 120, { echo: { delayMs: 300 } });
      for (const caller of callersOf(single)) {
        const { result } = await caller.call('SendMessage', sendParams('me too'));
        expect(result!.task.status.state).toBe('TASK_STATE_COMPLETED');
        // The order of events: how many of the others' runs began after it was accepted and before it began itself.
        const [order] = await rows<{ before: number; waiting: number }>(
          `SELECT count(*) FILTER (WHERE o.created_at > mine.accepted AND o.created_at < mine.begun)::int AS before,
           (SELECT count(*)::int FROM runs WHERE state = 'queued' AND enqueued_at IS NULL) AS waiting
         FROM ${LOG} o, (
           SELECT (SELECT created_at FROM tasks WHERE id = $1) AS accepted, created_at AS begun
           FROM ${LOG} e WHERE task_id = $1 AND sequence = 2) mine
         WHERE o.sequence = 2`,
          [result!.task.id],
        );
        expect(order!.waiting).toBeGreaterThan(20);
        expect(order!.before).toBeLessThanOrEqual(CAPACITY);
      }
      expect(await ends(flood, ids)).toEqual(new Set(['TASK_STATE_COMPLETED']));
    },
  );

  it('a tenant with nothing running begins at once, however many long tasks of another run and wait', async () => {
    const [flooding, single] = [await stack.createTenant(), await stack.createTenant()];
    const flood = callersOf(flooding);
    // The workers know of each other after a heartbeat.
    const reserved = 'SELECT FROM workers HAVING sum(reserved_slots) = $1';
    await until(async () => (await rows(reserved, [RESERVED])).length > 0);
    const metadata = { echo: { delayMs: 600_000 } };
    // Its first run takes no reserved slot then.
    const first = await accept(flood, 1, metadata);
    for await (const { data } of flood[0]!.stream('SubscribeToTask', { id: first[0]! }, 1)) {
      expect(data.result?.statusUpdate?.status.state).toBe('TASK_STATE_WORKING');
      break;
    }
    const ids = [...first, ...(await accept(flood, 60, metadata))];
    /** How many of the other tenant's runs are at work and over, and whether some are on the queue. */
    const floodNow = async () => {
      const [now] = await rows<{ running: number; isQueued: boolean; over: number }>(
        `SELECT count(*) FILTER (WHERE state = 'running')::int AS running,
           count(*) FILTER (WHERE state = 'queued' AND enqueued_at IS NOT NULL) > 0 AS "isQueued",
           count(*) FILTER (WHERE state NOT IN ('running', 'queued'))::int AS over
         FROM runs r JOIN tenants t ON t.id = r.tenant_id WHERE t.slug = $1`,
        [flooding.slug],
      );
      return now!;
    };
    const busy = { running: SLOTS - RESERVED, isQueued: true, over: 0 };
    await until(async () => JSON.stringify(await floodNow()) === JSON.stringify(busy));
    const callers = callersOf(single);
    for (let i = 0; i < 20; i++) {
      const { result } = await callers[i % 2]!.call('SendMessage', sendParams('me too'));
      expect(result!.task.status.state).toBe('TASK_STATE_COMPLETED');
    }
    // A run that sleeps is queued anew. It waits neither for a slot of a worker nor for one to be dispatched.
    const stepper = new RawCaller(stack.url(0, 'stepper'), single.token);
    const ops = [{ op: 'sleep', name: 'a', for: '200ms' }, { op: 'ask', name: 'b', question: 'Well?' }]; // prettier-ignore
    const asked = await stepper.call('SendMessage', sendParams(JSON.stringify({ ops })));
    const { id: taskId, contextId, status } = asked.result!.task;
    expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const continued = await stepper.call('SendMessage', sendParams('yes', { taskId, contextId }));
    expect(continued.result!.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(await floodNow()).toEqual(busy);
    await Promise.all(ids.map((id) => flood[0]!.call('CancelTask', { id })));
  });

  // Postgres alone decides this: once is enough.
  if (driver === DRIVERS[0]) {
    it('a tenant never has more runs at once than it may, over all workers', async () => {
      const tenant = await stack.createTenant();
      await stack.baton('tenants', 'limits', tenant.slug, '--runs-at-once', '3');
      const callers = callersOf(tenant, 'counter');
      hold.hold();
      writeFileSync(COUNTER_FILE, '');
      const ids = await accept(callers, 60);
      const written = () => readFileSync(COUNTER_FILE, 'utf8').trim().split('\n');
      // As many as may run do run, however slow a worker is.
      await until(() => written().length >= 3);
      hold.release();
      expect(await ends(callers, ids)).toEqual(new Set(['TASK_STATE_COMPLETED']));
      const notes = written();
      let atOnce = 0;
      let most = 0;
      for (const note of notes) {
        atOnce += note === 'begin' ? 1 : -1;
        most = Math.max(most, atOnce);
      }
      expect({ notes: notes.length, atOnce, most }).toEqual({ notes: 120, atOnce: 0, most: 3 });
    });

    it('a tenant is refused tasks beyond those that may wait, and nothing of them is left', async () => {
      const tenant = await stack.createTenant();
      await stack.baton('tenants', 'limits', tenant.slug, '--runs-at-once', '1', '--tasks-waiting', '2');
      const callers = callersOf(tenant);
      const configuration = { returnImmediately: true };
      const metadata = { echo: { delayMs: 600_000 } };
      const send = (caller: RawCaller) =>
        fetch(caller.url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            authorization: `Bearer ${tenant.token}`,
            'a2a-version': '1.0',
          },
          body: JSON.stringify({
            jsonrpc: '2.0',
            id: 1,
            method: 'SendMessage',
            params: { ...sendParams('work', { metadata }), configuration },
          }),
        });
      const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => send(callers[i % 2]!)));
      expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
      const refused = answers.filter(({ status }) => status === 429);
      expect(refused).toHaveLength(9);
      expect(refused[0]!.headers.get('retry-after')).toBe('1');
      expect(await refused[0]!.json()).toMatchObject({
        error: { code: -32029, message: expect.stringContaining('tasksWaiting') as string },
      });
      const tasks = await rows<{ id: string; waits: boolean }>(
        `SELECT r.task_id AS id, r.enqueued_at IS NULL AS waits FROM runs r
       JOIN tenants t ON t.id = r.tenant_id WHERE t.slug = $1
         ORDER BY r.enqueued_at NULLS LAST, r.created_at, r.id`,
        [tenant.slug],
      );
      // Two APIs accept at once: the one whose transaction ends first need not have begun first.
      expect(tasks.map(({ waits }) => waits)).toEqual([false, true, true]);
      // A canceled task leaves its place to the one that has waited longest.
      const [first, second, third] = tasks.map(({ id }) => id);
      await callers[0]!.call('CancelTask', { id: first });
      for await (const { data } of callers[1]!.stream('SubscribeToTask', { id: second }, 1)) {
        expect(data.result?.statusUpdate?.status.state).toBe('TASK_STATE_WORKING');
        break;
      }
      for (const id of [third, second]) await callers[0]!.call('CancelTask', { id });
    });
  }

  nightlyIt('every task ends though a worker is killed and what is on the queue is lost', async () => {
    const [one, other] = [await stack.createTenant(), await stack.createTenant()];
    await stack.baton('tenants', 'limits', other.slug, '--runs-at-once', '2');
    const floods = [callersOf(one), callersOf(other)];
    const metadata = { echo: { delayMs: 100 } };
    const [ids, others] = await Promise.all([
      accept(floods[0]!, 120, metadata),
      accept(floods[1]!, 30, metadata),
    ]);
    await stack.killWorkers([stack.workers[0]!]);
    if (driver === 'redis') await stack.redis!.flush();
    await stack.addWorker();
    expect(await ends(floods[0]!, ids)).toEqual(new Set(['TASK_STATE_COMPLETED']));
    expect(await ends(floods[1]!, others)).toEqual(new Set(['TASK_STATE_COMPLETED']));
  });
});
