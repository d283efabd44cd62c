import { ArtifactFold, TaskState } from '@baton/a2a';
import type { ClaimedRun } from '../index.js';
import {
  artifactChunk,
  endTurn,
  entry,
  newTask,
  openStores,
  saidIn,
  sql,
  startTask,
  type Stores,
  textMessage,
  texts,
} from '../stores.fixture.js';

const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING } = TaskState;

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const HARD_TEXT = 'a "quoted" [text], as "state":"TASK_STATE_FAILED", with \\, \u0000, \uD800 and 😀';

/** Two turns with a status that says something and two artifacts, one of which is replaced. */
async function writtenTask(): Promise<ClaimedRun> {
  const input = newTask({ text: HARD_TEXT });
  const run = await startTask(stores, input);
  const ids = { taskId: run.taskId, contextId: input.task.contextId };
  const { contextId } = ids;
  const own = (event: ReturnType<typeof artifactChunk>) =>
    entry({ ...event.payload, value: { ...event.payload.value, ...ids } } as typeof event.payload);
  const said = (state: TaskState, text: string) =>
    entry({
      $case: 'statusUpdate',
      value: {
        ...ids,
        status: { state, message: textMessage(text), timestamp: new Date().toISOString() },
        metadata: undefined,
      },
    });
  const chunk = (id: string, text: string, append: boolean) => own(artifactChunk(run, id, text, append));
  await stores.runs.append(run, {
    afterSequence: 2,
    contextId,
    events: [
      said(TASK_STATE_WORKING, HARD_TEXT),
      chunk('one', HARD_TEXT, false),
      chunk('one', 'more', true),
      chunk('two', 'first try', false),
    ],
  });
  await stores.runs.append(run, {
    afterSequence: 6,
    contextId,
    events: [chunk('two', 'second', false), chunk('two', ' try', true)],
  });
  await stores.runs.append(run, {
    afterSequence: 8,
    contextId,
    events: [said(TASK_STATE_INPUT_REQUIRED, 'and?')],
    end: { state: TASK_STATE_INPUT_REQUIRED, outcome: null },
  });
  const next = { ...newTask({ tenantId: run.tenantId }), taskId: run.taskId, message: textMessage('go on') };
  expect(await stores.tasks.continue(next)).toMatchObject({ ok: true });
  const second = (await stores.runs.claim(run.tenantId, next.runId, 'worker', 30_000))!;
  await endTurn(stores, second, 11, TASK_STATE_COMPLETED, [chunk('one', ' at the end', true)]);
  return second;
}

/** Everything that readers learn of a log. */
async function readings({ tenantId, taskId }: ClaimedRun) {
  const { tasks } = stores;
  const key = { tenantId, taskId };
  const all = await tasks.readEvents(tenantId, taskId, 0, 100);
  const head = all.length;
  const heads = Array.from({ length: head + 1 }, (_, i) => i);
  const pages = await Promise.all(
    heads.map((after) => tasks.readPage(key, after, { limit: 100, bytes: 1e6 })),
  );
  const stored = (await tasks.get(tenantId, taskId))!;
  return {
    all,
    pages: pages.map(({ events }) =>
      events.map(({ sequence, attempt, json }) => ({ sequence, attempt, json })),
    ),
    some: await Promise.all(heads.map((after) => tasks.readEvents(tenantId, taskId, after, 2))),
    statuses: (await tasks.readStatuses(tenantId, taskId, 100)).map(({ sequence, attempt, state }) => [
      sequence,
      attempt,
      state,
    ]),
    times: (await tasks.eventTimes(tenantId, taskId, 3, 100)).map(({ sequence }) => sequence),
    status: stored.task.status,
    artifacts: texts(stored.task),
    history: saidIn(stored.task.history),
    ranges: await Promise.all(
      heads.flatMap((after) =>
        heads.map(async (upTo) => {
          const page = await tasks.artifactPage({ ...key, head: upTo }, after);
          const fold = new ArtifactFold();
          for (const value of page.updates) fold.apply({ $case: 'artifactUpdate', value });
          return texts({ artifacts: fold.artifacts() });
        }),
      ),
    ),
  };
}

interface Row {
  sequence: number;
  first_sequence: number | null;
  attempt: number;
  json: string;
  artifact: string;
}

const rowsOf = ({ taskId }: ClaimedRun) =>
  sql(
    stores,
    `SELECT sequence, first_sequence, attempt, payload::text AS json, artifact::text
     FROM task_events WHERE task_id = '${taskId}' ORDER BY sequence`,
  ) as Promise<Row[]>;

/** Writes a log anew, with these rows. */
async function rewrite({ tenantId, taskId }: ClaimedRun, rows: readonly Row[]): Promise<void> {
  await sql(stores, `DELETE FROM task_events WHERE task_id = '${taskId}'`);
  const text = `INSERT INTO task_events (tenant_id, task_id, sequence, first_sequence, attempt, payload, artifact, bytes)
    VALUES ($1, $2, $3, $4, $5, $6::text::json, $7, octet_length($6::text))`;
  for (const { sequence, first_sequence: first, attempt, json, artifact } of rows)
    await stores.database.systemQuery({ text }, [tenantId, taskId, sequence, first, attempt, json, artifact]);
}

/** Writes a log as releases before 0.3.0 did, a row for each event, and as 0.1.0 did, without its artifacts. */
async function asEarlierReleases(run: ClaimedRun): Promise<Row[]> {
  const page = await stores.tasks.readPage(run, 0, { limit: 100, bytes: 1e6 });
  const rows = page.events.map(({ sequence, attempt, json }): Row => {
    const artifact = json.startsWith('{"artifactUpdate"') ? null : '0';
    return { sequence, first_sequence: null, attempt, json, artifact: artifact! };
  });
  await rewrite(run, rows);
  await sql(stores, `UPDATE task_messages SET accepted_at = NULL WHERE task_id = '${run.taskId}'`);
  return rows;
}

it('reads the same, however its events are stored', async () => {
  const run = await writtenTask();
  const { contextId } = run.snapshot.task;
  const before = await readings(run);
  expect(before.all.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 13 }, (_, i) => i + 1));
  expect(before.artifacts).toEqual([HARD_TEXT, 'more', ' at the end', 'second', ' try']);
  expect(before.history).toEqual([HARD_TEXT, HARD_TEXT, 'and?', 'go on']);

  const written = await rowsOf(run);
  expect(written.map(({ sequence }) => sequence)).toEqual([2, 5, 6, 8, 9, 10, 11, 13]);
  expect(written.slice(0, -1).filter(({ json }) => json.includes(run.taskId))).toEqual([]);

  const whole = await asEarlierReleases(run);
  expect(await readings(run)).toEqual(before);

  expect(await rowsOf(run)).toHaveLength(13);

  // Neighbours together, without the ids of the task, and message 1 for the first event.
  const without = (json: string) => json.replace(`"taskId":"${run.taskId}","contextId":"${contextId}",`, '');
  const together = (from: number, to: number): Row => {
    const rows = whole.slice(from - 1, to);
    return {
      ...rows.at(-1)!,
      first_sequence: from,
      json: `[${rows.map(({ json }) => without(json)).join(', \n ')}]`,
      artifact: null!,
    };
  };
  await rewrite(run, [
    together(2, 2),
    together(3, 5),
    together(6, 8),
    { ...whole[8]!, json: without(whole[8]!.json) },
    together(10, 10),
    together(11, 13),
  ]);
  const { timestamp } = (before.all[0]!.payload.value as { status: { timestamp: string } }).status;
  await sql(
    stores,
    `UPDATE task_messages SET accepted_at = '${timestamp}' WHERE task_id = '${run.taskId}' AND sequence = 1`,
  );
  await sql(stores, `UPDATE tasks SET status = '{}' WHERE id = '${run.taskId}'`);
  expect(await rowsOf(run)).toHaveLength(6);
  expect(await readings(run)).toEqual(before);
});

it('a page ends with the row that reaches its limit', async () => {
  const run = await writtenTask();
  // Message 1 stands for event 1: it takes no room of a page after it.
  const second = await stores.tasks.readPage(run, 1, { limit: 1, bytes: 1e6 });
  expect([second.events.map(({ sequence }) => sequence), second.more]).toEqual([[2], true]);
  const whole = await asEarlierReleases(run);
  const rows = whole.slice(2, 8).map(({ json }) => json);
  await rewrite(run, [
    ...whole.slice(0, 2),
    { ...whole[7]!, first_sequence: 3, json: `[${rows.join()}]` },
    ...whole.slice(8),
  ]);
  const key = { tenantId: run.tenantId, taskId: run.taskId };
  const first = await stores.tasks.readPage(key, 0, { limit: 3, bytes: 1e6 });
  expect([first.events.at(-1)?.sequence, first.more]).toEqual([8, true]);
  const next = await stores.tasks.readPage(key, 5, { limit: 100, bytes: 1 });
  expect([next.events.map(({ sequence }) => sequence), next.more]).toEqual([[6, 7, 8], true]);
  // Three are fewer than four, but the row has more.
  const few = await stores.tasks.readPage(key, 5, { limit: 4, bytes: 1e6 });
  expect([few.events.length, few.more]).toEqual([3, true]);
  const last = await stores.tasks.readPage(key, 8, { limit: 100, bytes: 1e6 });
  expect([last.events.at(-1)?.sequence, last.more]).toEqual([13, false]);
});

it('a page ends where events are missing, as after retention: they may have been deleted since the page before', async () => {
  const { tenantId, taskId } = await writtenTask();
  await sql(stores, `DELETE FROM task_events WHERE task_id = '${taskId}' AND sequence BETWEEN 2 AND 6`);
  const { events } = await stores.tasks.readPage({ tenantId, taskId }, 0, { limit: 100, bytes: 1_000_000 });
  expect(events.map(({ sequence }) => sequence)).toEqual([1]);
});

it('the statuses in a log are read without what they say', async () => {
  const run = await writtenTask();
  const read = async (limit: number, tenantId = run.tenantId) =>
    (await stores.tasks.readStatuses(tenantId, run.taskId, limit)).map(({ sequence, attempt, state }) => [
      sequence,
      attempt,
      state,
    ]);
  const all = [
    [2, 1, TASK_STATE_WORKING],
    [3, 1, TASK_STATE_WORKING],
    [9, 1, TASK_STATE_INPUT_REQUIRED],
    [10, 0, TaskState.TASK_STATE_SUBMITTED],
    [11, 1, TASK_STATE_WORKING],
    [13, 1, TASK_STATE_COMPLETED],
  ];
  expect(await read(100)).toEqual(all);
  expect(await read(2)).toEqual(all.slice(-2));
  expect(await read(100, newTask().tenantId)).toEqual([]);
  expect(await stores.tasks.readStatuses(run.tenantId, 'x', 100)).toEqual([]);
});
