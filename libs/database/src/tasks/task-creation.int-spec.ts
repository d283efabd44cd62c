import { LOG } from '../../../../test/support/log-sql.js';
import { createHash, randomUUID } from 'node:crypto';
import { type CreatedTask, Database, type NewTask, type RunQuota, TaskStore } from '../index.js';
import { type Stores, newTask, openStores, sql, startTask } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const hash = (text: string): Buffer => createHash('sha256').update(text).digest();
const keyed = (tenantId: string, said: string): NewTask => ({
  ...newTask({ tenantId }),
  key: { hash: hash(said), content: hash(`content of ${said}`), hours: 24 },
});
const limited = (tenantId: string, quota: Partial<RunQuota>): NewTask => ({
  ...newTask({ tenantId }),
  quota: { maxInFlight: null, maxWaiting: null, exact: true, ...quota },
});

/** Create tasks that arrive at the same moment: they are one group. The outcome of each caller, errors by their name. */
async function create(inputs: readonly NewTask[]): Promise<(CreatedTask | string)[]> {
  const outcomes = await Promise.allSettled(inputs.map((input) => stores.tasks.create(input)));
  return outcomes.map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as Error).name,
  );
}

const created = ({ task }: NewTask, dispatched = true): CreatedTask => ({
  created: true,
  dispatched,
  claimed: undefined,
  mayUseReserved: expect.any(Boolean) as boolean,
  taskId: task.id,
  content: null,
});

interface WrittenTask {
  id: string;
  dispatched: boolean;
  events: number;
  transaction: string;
}

/** The tenant's tasks, oldest first. */
const written = (tenantId: string) =>
  sql(
    stores,
    `SELECT t.id, r.enqueued_at IS NOT NULL AS dispatched, t.xmin::text AS transaction,
       (SELECT count(*)::int FROM ${LOG} e WHERE e.tenant_id = t.tenant_id AND e.task_id = t.id) AS events
     FROM tasks t JOIN runs r ON r.tenant_id = t.tenant_id AND r.id = t.active_run_id AND r.task_id = t.id
     WHERE t.tenant_id = '${tenantId}' ORDER BY t.created_at`,
  ) as Promise<WrittenTask[]>;
const idsOf = (tasks: readonly { id: string }[]): string[] => tasks.map(({ id }) => id);
const transactionsOf = (tasks: readonly WrittenTask[]): number =>
  new Set(tasks.map(({ transaction }) => transaction)).size;

describe('a task that asks for an eager start', () => {
  const claimFor = { workerId: 'worker', leaseMs: 30_000 };

  it('is claimed with its creation', async () => {
    expect(await stores.tasks.create({ ...newTask(), claimFor })).toMatchObject({
      claimed: expect.any(String) as string,
    });
  });

  it('goes through the queue if it is a child', async () => {
    const parent = await startTask(stores);
    const { tenantId, taskId: rootTaskId } = parent;
    const child = { parent, rootTaskId, maxTasks: 9 };
    const input = { ...newTask({ tenantId }), claimFor, child };
    expect(await stores.tasks.create(input)).toMatchObject({ dispatched: true, claimed: undefined });
    expect(await stores.runs.claim(tenantId, input.runId, 'another', 1_000)).toMatchObject({ attempt: 1 });
  });

  it('goes through the queue if it is large', async () => {
    const input = { ...newTask({ text: 'x'.repeat(33 * 1024) }), claimFor };
    expect(await stores.tasks.create(input)).toMatchObject({ dispatched: true, claimed: undefined });
  });
});

describe('tasks that arrive together', () => {
  it('are written in one transaction, in their order', async () => {
    const [one, other] = [randomUUID(), randomUUID()];
    const inputs = [one, other, one, one, other].map((tenantId) => newTask({ tenantId }));
    expect(await create(inputs)).toEqual(inputs.map((input) => created(input)));
    const all = (await Promise.all([one, other].map(written))).flat();
    expect(transactionsOf(all)).toBe(1);
    for (const tenantId of [one, other]) {
      const tasks = all.filter(({ id }) =>
        inputs.some(({ task, tenantId: own }) => task.id === id && own === tenantId),
      );
      const own = inputs.filter((input) => input.tenantId === tenantId);
      expect(idsOf(tasks)).toEqual(own.map(({ task }) => task.id));
      expect(tasks.every(({ events, dispatched }) => events === 1 && dispatched)).toBe(true);
    }
  });

  it('have the ids and keys of their own tenant', async () => {
    const [one, other] = [keyed(randomUUID(), 'the same'), keyed(randomUUID(), 'the same')];
    const twin = { ...other, task: { ...other.task, id: one.task.id } };
    const content = { content: hash('content of the same') };
    expect(await create([one, twin])).toEqual([
      { ...created(one), ...content },
      { ...created(one), ...content },
    ]);
    for (const { tenantId, runId } of [one, twin]) {
      const rows = await sql(
        stores,
        `SELECT active_run_id AS "runId" FROM tasks WHERE tenant_id = '${tenantId}'`,
      );
      expect(rows).toEqual([{ runId }]);
    }
  });

  it('go without those of the same tenant if it has exact limits or they are large, and all are created', async () => {
    const tenantIds = Array.from({ length: 3 }, () => randomUUID());
    const [small, exact, large] = tenantIds as [string, string, string];
    const inputs = [
      newTask({ tenantId: small }),
      limited(exact, { maxInFlight: 5, maxWaiting: 5 }),
      newTask({ tenantId: large, text: 'x'.repeat(40_000) }),
      newTask({ tenantId: large }),
    ];
    expect(await create(inputs)).toEqual(inputs.map((input) => created(input)));
    const [[first], [second], [third, fourth]] = (await Promise.all(tenantIds.map(written))) as [
      WrittenTask[],
      WrittenTask[],
      WrittenTask[],
    ];
    const small1 = [third, fourth].find((task) => task?.id === inputs[3]?.task.id);
    expect(small1?.transaction).toBe(first?.transaction);
    expect(new Set([first, second, third, fourth].map((task) => task?.transaction)).size).toBe(3);
  });

  it('are stored as they would be alone', async () => {
    const tenantId = randomUUID();
    const inputs = ['plain', 'with "quotes", \\ and {braces}', 'null', '\u0000'].map((text, i): NewTask => ({
      ...newTask({ tenantId, text, task: { metadata: i === 1 ? { said: text } : undefined } }),
      extensions: i === 1 ? ['https://a.example/"x\\y"', ''] : [],
      owner: i === 0 ? null : `token:${text.replace('\0', '')}`,
      ...(i === 1 && { traceparent: '00-1-2-3' }),
      retry: { maxAttempts: 5, backoff: { initialMs: 10, factor: 1.5, maxMs: 100 } },
    }));
    await create(inputs);
    for (const { task, owner, runId, extensions, traceparent } of inputs) {
      const stored = await stores.tasks.get(tenantId, task.id);
      expect(stored?.task).toEqual({ ...task, metadata: task.metadata });
      expect(stored?.owner).toBe(owner ?? null);
      const [row] = await sql(
        stores,
        `SELECT r.extensions, r.traceparent, r.max_attempts, r.backoff_factor,
           t.stored_bytes = (SELECT octet_length(m.message::text) FROM task_messages m WHERE m.task_id = t.id)
             + coalesce((SELECT octet_length(e.payload::text) FROM task_events e WHERE e.task_id = t.id), 0) AS bytes
         FROM runs r JOIN tasks t ON t.id = r.task_id WHERE r.id = '${runId}'`,
      );
      expect(row).toEqual({
        extensions,
        traceparent: traceparent ?? null,
        max_attempts: 5,
        backoff_factor: 1.5,
        bytes: true,
      });
    }
  });

  it('do not fail with one that cannot be stored', async () => {
    const tenantId = randomUUID();
    const inputs = Array.from({ length: 5 }, () => newTask({ tenantId }));
    const elsewhere = newTask();
    const [, , bad] = inputs;
    if (bad) bad.owner = 'token:\0';
    const [other, ...outcomes] = await create([elsewhere, ...inputs]);
    const good = inputs.filter((input) => input !== bad);
    expect(other).toEqual(created(elsewhere));
    expect(outcomes.filter((_, i) => inputs[i] !== bad)).toEqual(good.map((input) => created(input)));
    expect(outcomes[2]).toBe('error');
    expect(idsOf(await written(tenantId)).sort()).toEqual(good.map(({ task }) => task.id).sort());
  });

  it('join an earlier one with the same key, of this group or before it', async () => {
    const tenantId = randomUUID();
    const before = keyed(tenantId, 'before');
    await create([before]);
    const inputs = ['twice', 'before', 'once', 'twice', 'twice'].map((said) => keyed(tenantId, said));
    const [first, , third] = inputs as [NewTask, NewTask, NewTask];
    const content = (said: string) => ({ content: hash(`content of ${said}`) });
    const joined = (task: NewTask, said: string) => ({
      created: false,
      dispatched: false,
      claimed: undefined,
      mayUseReserved: false,
      taskId: task.task.id,
      ...content(said),
    });
    expect(await create(inputs)).toEqual([
      { ...created(first), ...content('twice') },
      joined(before, 'before'),
      { ...created(third), ...content('once') },
      joined(first, 'twice'),
      joined(first, 'twice'),
    ]);
    expect(idsOf(await written(tenantId))).toEqual([before, first, third].map(({ task }) => task.id));
  });

  it('never deadlock with other groups over their keys', async () => {
    const tenantId = randomUUID();
    const says = Array.from({ length: 40 }, (_, i) => `message ${i}`);
    // Another process has them in another order.
    const database = new Database({ url: stores.url, poolSize: 4 });
    const other = new TaskStore(database);
    try {
      for (let round = 0; round < 5; round++) {
        const mine = says.map((said) => keyed(tenantId, `${round} ${said}`));
        const theirs = says.map((said) => keyed(tenantId, `${round} ${said}`)).reverse();
        const outcomes = await Promise.all([
          ...mine.map((input) => stores.tasks.create(input)),
          ...theirs.map((input) => other.create(input)),
        ]);
        expect(outcomes.filter((outcome) => outcome.created)).toHaveLength(says.length);
      }
      expect(await written(tenantId)).toHaveLength(5 * says.length);
    } finally {
      await database.close();
    }
  });
});

describe('a quota that only a part of a group fits in', () => {
  it('gives slots to the first ones, lets the next ones wait and refuses the others', async () => {
    const tenantId = randomUUID();
    const quota = { maxInFlight: 3, maxWaiting: 2 };
    const inputs = Array.from({ length: 7 }, () => limited(tenantId, quota));
    const [a, b, c, d, e] = inputs as [NewTask, NewTask, NewTask, NewTask, NewTask];
    expect(await create(inputs)).toEqual([
      created(a),
      created(b),
      created(c),
      created(d, false),
      created(e, false),
      'TooManyWaitingError',
      'TooManyWaitingError',
    ]);
    const tasks = await written(tenantId);
    expect(tasks.map(({ dispatched }) => dispatched)).toEqual([true, true, true, false, false]);
    expect(transactionsOf(tasks)).toBe(1);
    // The next group stands behind those that wait.
    expect(await create([limited(tenantId, { maxInFlight: 10, maxWaiting: 2 })])).toEqual([
      'TooManyWaitingError',
    ]);
  });

  it('counts no message that has come before', async () => {
    const tenantId = randomUUID();
    const quota: RunQuota = { maxInFlight: 2, maxWaiting: 1, exact: true };
    const inputs = ['a', 'b', 'a', 'c', 'd', 'b'].map((said) => ({ ...keyed(tenantId, said), quota }));
    const [a, b, , c] = inputs as [NewTask, NewTask, NewTask, NewTask];
    await create([a]);
    const outcomes = await create([{ ...keyed(tenantId, 'a'), quota }, ...inputs.slice(1)]);
    expect(outcomes).toMatchObject([
      { created: false, taskId: a.task.id },
      { created: true, taskId: b.task.id, dispatched: true },
      { created: false, taskId: a.task.id },
      { created: true, taskId: c.task.id, dispatched: false },
      'TooManyWaitingError',
      { created: false, taskId: b.task.id },
    ]);
  });

  it('joins an earlier task also when no more may wait', async () => {
    const tenantId = randomUUID();
    const quota: RunQuota = { maxInFlight: 1, maxWaiting: 1, exact: true };
    const first = keyed(tenantId, 'first');
    await create([{ ...first, quota }, limited(tenantId, quota)]);
    expect(await create([limited(tenantId, quota), { ...keyed(tenantId, 'first'), quota }])).toMatchObject([
      'TooManyWaitingError',
      { created: false, taskId: first.task.id },
    ]);
    // Its key has expired: it would be another task.
    await sql(stores, `UPDATE message_keys SET expires_at = now() WHERE tenant_id = '${tenantId}'`);
    expect(await create([{ ...keyed(tenantId, 'first'), quota }])).toEqual(['TooManyWaitingError']);
  });

  it('holds with a limit of one run for those that found no free slot', async () => {
    const tenantId = randomUUID();
    const narrow = { maxInFlight: 1, exact: false };
    const inputs = [
      limited(tenantId, { exact: false }),
      limited(tenantId, narrow),
      limited(tenantId, { exact: false }),
    ];
    await create(inputs);
    // The third one waits behind the second one.
    expect((await written(tenantId)).map(({ dispatched }) => dispatched)).toEqual([true, false, false]);
  });

  it('stores what there is room for', async () => {
    const tenantId = randomUUID();
    const quota = { exact: false, maxStoredBytes: 1_000_000_000 };
    await create([limited(tenantId, quota)]);
    const [usage] = (await sql(
      stores,
      `SELECT stored_bytes::int AS bytes FROM tenant_usage WHERE tenant_id = '${tenantId}'`,
    )) as { bytes: number }[];
    const one = usage?.bytes ?? NaN;
    // Room for three more.
    const inputs = Array.from({ length: 6 }, () =>
      limited(tenantId, { exact: false, maxStoredBytes: one * 4 + 50 }),
    );
    const outcomes = await create(inputs);
    expect(outcomes.filter((outcome) => outcome === 'StorageFullError')).toHaveLength(3);
    expect(await written(tenantId)).toHaveLength(4);
    const [after] = await sql(
      stores,
      `SELECT stored_bytes = (SELECT sum(stored_bytes) FROM tasks WHERE tenant_id = '${tenantId}') AS same
       FROM tenant_usage WHERE tenant_id = '${tenantId}'`,
    );
    expect(after).toEqual({ same: true });
  });
});
