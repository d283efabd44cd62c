import { Artifact, dataPart, type Part, type ReadMemory, TaskState, textPart } from '@baton/a2a';
import { randomBytes, randomUUID } from 'node:crypto';
import type { CountCursor, ListedTasks } from '../index.js';
import {
  type Stores,
  chunk,
  endTurn,
  newTask,
  openStores,
  saidIn,
  sql,
  startTask,
  status,
  textMessage,
  texts,
} from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const { TASK_STATE_COMPLETED, TASK_STATE_SUBMITTED, TASK_STATE_WORKING } = TaskState;

describe('a search', () => {
  const search = async (tenantId: string, text: string, more: { pageSize?: number; after?: never } = {}) => {
    const filter = { tenantId, pageSize: 10, ...more };
    return stores.tasks.search(filter, text, 100);
  };
  const create = async (tenantId: string, text: string, at: number, more: object = {}) => {
    const status = {
      state: TASK_STATE_SUBMITTED,
      message: undefined,
      timestamp: new Date(1e12 + at).toISOString(),
    };
    const made = newTask({ tenantId, ...more, task: { status, history: [textMessage(text)] } });
    await stores.tasks.create(made);
    return made.task;
  };
  const ids = ({ tasks }: { tasks: { task: { id: string } }[] }) => tasks.map(({ task }) => task.id);

  it('finds the text of the first message, a context and the beginning of an id, and nothing of other tenants', async () => {
    const tenantId = randomUUID();
    const order = await create(tenantId, 'Where is Order "4711_a"?', 1);
    const percent = await create(tenantId, '100 % sure\nreally', 2);
    await create(randomUUID(), 'Where is Order "4711_a"?', 3);
    expect(ids(await search(tenantId, 'order "4711_A"'))).toEqual([order.id]);
    expect(ids(await search(tenantId, '100 %'))).toEqual([percent.id]);
    expect(ids(await search(tenantId, 'sure\nREALLY'))).toEqual([percent.id]);
    expect(ids(await search(tenantId, order.id.slice(0, 13)))).toEqual([order.id]);
    expect(ids(await search(tenantId, order.contextId))).toContain(order.id);
    // Neither wildcards nor the words of the JSON are in the text.
    for (const text of ['4711%a', '4711xa', 'order\\', 'messageId', 'ROLE_USER', '"parts"'])
      expect(await search(tenantId, text)).toEqual({ tasks: [], searched: 2 });
  });

  it('finds answers, also those of streams, the text of a status and the error of an agent, with the place', async () => {
    const tenantId = randomUUID();
    const answered = await startTask(stores, newTask({ tenantId }));
    const artifact = (id: string, parts: Part[]) => ({ ...Artifact.fromJSON({ artifactId: id }), parts });
    const words = `${'begin '.repeat(20)}the Nee|dle|\n in it ${'end '.repeat(60)}`.split('|');
    const artifacts = [artifact('a', [dataPart({ parcel: 4711 })]), artifact('b', words.map(textPart))];
    await endTurn(stores, answered, 2, TASK_STATE_COMPLETED, [], artifacts);
    const failed = await startTask(stores, newTask({ tenantId }));
    const error = {
      attempt: 1,
      at: '2026-01-31T12:00:00.000Z',
      name: 'Error',
      message: 'The desk is closed.',
    };
    await stores.runs.noteError(failed, error);
    const end = { state: TaskState.TASK_STATE_FAILED, outcome: null };
    const events = [status(failed, end.state, textMessage('the agent gave up'))];
    await stores.runs.append(failed, { afterSequence: 2, events, end });
    const hits = async (text: string) =>
      (await search(tenantId, text)).tasks.map(({ task, hit }) => [task.id, hit?.place, hit?.text]);
    const [[id, place, around] = []] = await hits('needle');
    expect([id, place]).toEqual([answered.taskId, 'answer']);
    expect(around).toMatch(/^….*begin the Needle in it end .*…$/);
    expect(around!.length).toBeLessThanOrEqual(202);
    expect(await hits('"parcel": 4711')).toEqual([]);
    expect(await hits('parcel":4711')).toEqual([
      [answered.taskId, 'answer', expect.stringMatching(/^\{"parcel":4711\} begin/)],
    ]);
    expect(await hits('DESK')).toEqual([[failed.taskId, 'error_message', error.message]]);
    expect(await hits('gave up')).toEqual([[failed.taskId, 'status_message', 'the agent gave up']]);
    expect(await hits(failed.taskId)).toEqual([[failed.taskId, 'task_id', undefined]]);
    for (const text of ['artifactId', '"parts"', 'TASK_STATE']) expect(await hits(text)).toEqual([]);
    expect(await search(randomUUID(), 'needle')).toEqual({ tasks: [], searched: 0 });
    // What is too large is left out, and what Postgres has no text for is found without the text around it.
    const odd = await startTask(stores, newTask({ tenantId }));
    const escaped = [artifact('a', [textPart('a\0b \ud800 the odd one')])];
    await endTurn(stores, odd, 2, TASK_STATE_COMPLETED, [], escaped);
    expect(await hits('Odd One')).toEqual([[odd.taskId, 'answer', undefined]]);
    const large = await startTask(stores, newTask({ tenantId }));
    const noise = randomBytes(30_000).toString('base64');
    await endTurn(stores, large, 2, TASK_STATE_COMPLETED, [], [artifact('a', [textPart(`${noise} huge`)])]);
    expect(await hits('huge')).toEqual([]);
  });

  it('looks at messages that Postgres has no text for', async () => {
    const tenantId = randomUUID();
    const odd = await create(tenantId, 'a\0b \ud800 the Needle', 1);
    expect(ids(await search(tenantId, 'needle'))).toEqual([odd.id]);
  });

  it('continues where it has stopped, and returns the position', async () => {
    const tenantId = randomUUID();
    const made: string[] = [];
    for (let i = 0; i < 6; i++) made.unshift((await create(tenantId, i % 2 ? 'odd' : 'even', i)).id);
    const first = await search(tenantId, 'even', { pageSize: 2 });
    expect([ids(first), first.searched]).toEqual([[made[1], made[3]], 4]);
    const rest = await stores.tasks.search({ tenantId, pageSize: 2, after: first.next }, 'even', 100);
    expect([ids(rest), rest.searched, rest.next]).toEqual([[made[5]], 2, undefined]);
    const bounded = await stores.tasks.search({ tenantId, pageSize: 9 }, 'even', 3);
    expect([ids(bounded), bounded.searched, bounded.next?.taskId]).toEqual([[made[1]], 3, made[2]]);
  });

  it('has tasks of one time by their id, from page to page', async () => {
    const tenantId = randomUUID();
    const made: string[] = [];
    for (let i = 0; i < 4; i++) {
      const input = newTask({ tenantId, text: 'needle' });
      await stores.tasks.create(input);
      made.push(input.task.id);
    }
    await sql(stores, `UPDATE tasks SET status_at = '2026-01-01' WHERE tenant_id = '${tenantId}'`);
    const byId = made.toSorted().toReversed();
    const first = await stores.tasks.search({ tenantId, pageSize: 3 }, 'needle', 100);
    expect(ids(first)).toEqual(byId.slice(0, 3));
    const rest = await stores.tasks.search({ tenantId, pageSize: 3, after: first.next }, 'needle', 100);
    expect(ids(rest)).toEqual(byId.slice(3));
  });
});

describe('a list', () => {
  const filter = (tenantId: string) => ({ tenantId, agentId: 'echo', pageSize: 3, includeArtifacts: false });

  it('goes page by page, newest status first, each task once, and counts all of them', async () => {
    const tenantId = randomUUID();
    // Several share a millisecond, also of different states, so the id has to decide.
    const inputs = Array.from({ length: 8 }, (_, i) =>
      newTask({
        tenantId,
        task: {
          status: {
            state: i % 2 ? TASK_STATE_COMPLETED : TASK_STATE_SUBMITTED,
            message: undefined,
            timestamp: new Date(1e12 + (i >> 2)).toISOString(),
          },
        },
      }),
    );
    await Promise.all(inputs.map((input) => stores.tasks.create(input)));
    const seen: string[] = [];
    let after: { statusAt: Date; taskId: string } | undefined;
    for (const size of [3, 3, 2]) {
      const { tasks, total, more } = await stores.tasks.list({ ...filter(tenantId), after });
      expect(tasks).toHaveLength(size);
      expect({ total, more }).toEqual({ total: 8, more: size === 3 });
      seen.push(...tasks.map(({ task }) => task.id));
      const last = tasks.at(-1)!.task;
      after = { statusAt: new Date(last.status!.timestamp!), taskId: last.id };
    }
    const newest = [...inputs].sort((a, b) =>
      keyOf(a.task.status?.timestamp, a.task.id) < keyOf(b.task.status?.timestamp, b.task.id) ? 1 : -1,
    );
    expect(seen).toEqual(newest.map(({ task }) => task.id));
    expect(await stores.tasks.list(filter(randomUUID()))).toEqual({ tasks: [], total: 0, more: false });
  });

  it('moves a task to the front when its status changes', async () => {
    const tenantId = randomUUID();
    const old = { state: TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date(1e12).toISOString() };
    const [first, second] = [newTask({ tenantId, task: { status: old } }), newTask({ tenantId })];
    await stores.tasks.create(second);
    await startTask(stores, first);
    const { tasks } = await stores.tasks.list(filter(tenantId));
    expect(tasks.map(({ task }) => task.id)).toEqual([first.task.id, second.task.id]);
  });

  it('filters by agent, context, owner, state and time', async () => {
    const tenantId = randomUUID();
    const waiting = newTask({ tenantId });
    const working = newTask({ tenantId });
    await stores.tasks.create(waiting);
    const owned = { ...newTask({ tenantId }), owner: 'token:1' };
    await stores.tasks.create(owned);
    await stores.tasks.create(newTask({ tenantId, agentId: 'other' }));
    const run = await startTask(stores, working);
    const ids = async (more: object): Promise<string[]> =>
      (await stores.tasks.list({ ...filter(tenantId), ...more })).tasks.map(({ task }) => task.id);
    expect(await ids({ contextId: waiting.task.contextId })).toEqual([waiting.task.id]);
    expect(await ids({ contextId: 'unknown' })).toEqual([]);
    expect(await ids({ owner: 'token:1' })).toEqual([owned.task.id]);
    expect(await ids({ owner: 'token:1', own: { owner: 'token:2', unowned: true } })).toEqual([]);
    expect(await ids({ state: TASK_STATE_WORKING })).toEqual([working.task.id]);
    expect(await ids({ agentId: 'nobody' })).toEqual([]);
    const changed = new Date(run.snapshot.task.status!.timestamp!);
    expect(await ids({ since: changed })).toContain(working.task.id);
    expect(await ids({ since: new Date(changed.getTime() + 60_000) })).toEqual([]);
    expect(await ids({ until: changed })).not.toContain(working.task.id);
    expect(await ids({ since: changed, until: new Date(changed.getTime() + 1) })).toContain(working.task.id);
  });

  /** The number of tasks of a list, a thousand after the other. */
  async function countInSlices(listed: ListedTasks): Promise<number> {
    let total = 0;
    for (let cursor: CountCursor | undefined = { state: 0 }; cursor;) {
      const slice: { tasks: number; cursor?: CountCursor } = await stores.tasks.countSlice(
        listed,
        cursor,
        1_000,
      );
      expect(slice.tasks).toBeLessThanOrEqual(1_000);
      total += slice.tasks;
      cursor = slice.cursor;
    }
    return total;
  }

  it('leaves the total open where there are too many to count for each page; a count has them all', async () => {
    const input = newTask();
    const { tenantId } = input;
    await stores.tasks.create(input);
    await sql(
      stores,
      `INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence,
         artifacts_sequence)
       SELECT tenant_id, gen_random_uuid(), agent_id, context_id, context_key, 3 + i % 2, status,
         status_at - i * interval '1 s', 1, 1
       FROM tasks, generate_series(1, 10000) i WHERE id = '${input.task.id}'`,
    );
    const all = await stores.tasks.list(filter(tenantId));
    expect([all.tasks[0]?.task.id, all.total, all.more]).toEqual([input.task.id, null, true]);
    expect(await countInSlices({ tenantId, agentId: 'echo' })).toBe(10_001);
    const state = TASK_STATE_COMPLETED;
    expect((await stores.tasks.list({ ...filter(tenantId), state })).total).toBe(5_000);
    expect(await countInSlices({ tenantId, contextId: input.task.contextId, state })).toBe(5_000);
    expect((await stores.tasks.list({ ...filter(tenantId), uncounted: true })).total).toBeNull();
  });

  it('counts the tasks of each state up to a maximum, of an owner and of an agent', async () => {
    const tenantId = randomUUID();
    const create = (more: object = {}) => stores.tasks.create({ ...newTask({ tenantId }), ...more });
    await Promise.all([create(), create(), create({ owner: 'token:1' }), create({ agentId: 'other' })]);
    await startTask(stores, newTask({ tenantId }));
    const count = async (more: object, max = 10) => {
      const counts = await stores.tasks.countStates({ tenantId, ...more }, max);
      expect(counts.size).toBe(8);
      return [
        counts.get(TASK_STATE_SUBMITTED),
        counts.get(TASK_STATE_WORKING),
        counts.get(TASK_STATE_COMPLETED),
      ];
    };
    expect(await count({})).toEqual([4, 1, 0]);
    expect(await count({}, 2)).toEqual([2, 1, 0]);
    expect(await count({ agentId: 'other' })).toEqual([1, 0, 0]);
    expect(await count({ own: { owner: 'token:1', unowned: false } })).toEqual([1, 0, 0]);
    expect(await count({ own: { owner: 'token:1', unowned: true } })).toEqual([4, 1, 0]);
    expect(await count({ tenantId: randomUUID() })).toEqual([0, 0, 0]);
  });

  it('goes through tasks of several states in the order of their status', async () => {
    const tenantId = randomUUID();
    const at = (i: number) => new Date(1e12 + i).toISOString();
    const states = [TASK_STATE_SUBMITTED, TASK_STATE_COMPLETED, TASK_STATE_WORKING, TASK_STATE_COMPLETED];
    const inputs = states.map((state, i) =>
      newTask({ tenantId, task: { status: { state, message: undefined, timestamp: at(i) } } }),
    );
    for (const input of inputs) await stores.tasks.create(input);
    const { tasks } = await stores.tasks.list({ ...filter(tenantId), pageSize: 10 });
    expect(tasks.map(({ task }) => task.id)).toEqual(inputs.map(({ task }) => task.id).reverse());
  });

  it('has as much history as asked for, and artifacts only on demand', async () => {
    const run = await startTask(stores);
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'a')] });
    const { tasks: bare } = await stores.tasks.list({ ...filter(run.tenantId), historyLength: 0 });
    expect(bare[0]?.task).toMatchObject({ history: [], artifacts: [] });
    const { tasks: full } = await stores.tasks.list({ ...filter(run.tenantId), includeArtifacts: true });
    expect(saidIn(full[0]!.task.history)).toEqual(['hello']);
    expect(texts(full[0]!.task)).toEqual(['a']);
  });
});

/** Newest first: by time, then by id. */
const keyOf = (timestamp: string | undefined, id: string): string => `${timestamp ?? ''} ${id}`;

describe('the memory of a page with contents', () => {
  /** Memory of which `asked` notes what is taken and, below 0, given back. */
  const memoryOf = (asked: number[], isGranted = true): ReadMemory => ({
    take: async (bytes) => {
      asked.push(bytes);
      return isGranted;
    },
    giveBack: (bytes) => void asked.push(-bytes),
    turn: async () => undefined,
  });
  const sum = (asked: readonly number[]): number => asked.reduce((total, bytes) => total + bytes, 0);
  const list = async (tenantId: string, asked: number[], more: object = {}) =>
    stores.tasks.list({
      tenantId,
      pageSize: 10,
      includeArtifacts: true,
      memory: memoryOf(asked),
      ...more,
    });
  const taskWith = async (tenantId: string, characters: number): Promise<void> => {
    const run = await startTask(stores, newTask({ tenantId }));
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'x'.repeat(characters), false)] });
    await endTurn(stores, run, 3);
  };

  it('is taken before they are read, as if they were large, and what they do not need is given back', async () => {
    const tenantId = randomUUID();
    await taskWith(tenantId, 20_000);
    await taskWith(tenantId, 20_000);
    const asked: number[] = [];
    const { tasks } = await list(tenantId, asked);
    expect(tasks.flatMap(({ task }) => texts(task)).join('')).toHaveLength(40_000);
    expect(asked).toEqual([expect.any(Number), expect.any(Number)]);
    expect(asked[0]).toBeGreaterThan(10 * 256 * 1024);
    expect(sum(asked)).toBeGreaterThan(40_000);
    expect(sum(asked)).toBeLessThan(60_000);
  });

  it('is asked for again, with nothing held, for contents that do not come with their rows', async () => {
    const tenantId = randomUUID();
    await taskWith(tenantId, 400_000);
    const asked: number[] = [];
    await list(tenantId, asked);
    const last = asked.at(-1)!;
    expect(last).toBeGreaterThan(400_000);
    expect(sum(asked)).toBe(last);
  });

  it('is not asked for without contents, and nothing is read without it', async () => {
    const tenantId = randomUUID();
    await taskWith(tenantId, 10);
    const asked: number[] = [];
    await list(tenantId, asked, { includeArtifacts: false, historyLength: 0 });
    expect(sum(asked)).toBe(0);
    expect(await list(tenantId, asked, { memory: memoryOf(asked, false) })).toMatchObject({ tasks: [] });
  });
});
