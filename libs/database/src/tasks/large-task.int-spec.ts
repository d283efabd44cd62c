import { Artifact, type Task, TaskState, isTruncated } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { type ClaimedRun, RunStore, TaskStore } from '../index.js';
import {
  artifactChunk,
  chunk,
  crashText,
  endTurn,
  expire,
  newTask,
  openStores,
  reclaim,
  saidIn,
  sql,
  startTask,
  status,
  type Stores,
  textMessage,
  texts,
} from '../stores.fixture.js';

const { TASK_STATE_FAILED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING } = TaskState;
const LEASE_MS = 30_000;
const KIB = 1024;
/** What these tests let a store read of tasks for one call. */
const READ_BYTES = 512 * KIB;

let stores: Stores;
/** A store that reads no more than READ_BYTES. */
let tasks: TaskStore;
beforeAll(async () => {
  stores = await openStores();
  tasks = new TaskStore(stores.database, READ_BYTES);
});
afterAll(async () => stores.close());

/** So many chunks of 100 KiB, one batch each. @returns the head of the log */
async function say(run: ClaimedRun, from: number, count: number, artifactId = 'reply'): Promise<number> {
  for (let head = from; head < from + count; head++) {
    const text = `${head}:`.padEnd(100 * KIB, 'x');
    const events = [artifactChunk(run, artifactId, text)];
    expect(await stores.runs.append(run, { afterSequence: head, events })).toMatchObject({ ok: true });
  }
  return from + count;
}

const bytesOf = (task: Task): number =>
  texts(task).reduce<number>((sum, text) => sum + String(text).length, 0);
/** The first parts as far as they are there, in order. */
const firsts = (task: Pick<Task, 'artifacts'>): string[] =>
  texts(task).map((text) => String(text).split(':')[0]!);
const noteOf = ({ metadata }: Task) => metadata?.['baton.truncated'] as Record<string, unknown>;

describe('a task that is larger than what one call may read', () => {
  it('is read within the budget, and marks what is missing and how to read it', async () => {
    const run = await startTask(stores);
    await say(run, 2, 12);
    const { task, sequence } = (await tasks.get(run.tenantId, run.taskId))!;
    expect(sequence).toBe(14);
    expect(bytesOf(task)).toBeGreaterThan(300 * KIB);
    expect(bytesOf(task)).toBeLessThanOrEqual(READ_BYTES);
    const shown = firsts(task);
    expect(shown).toEqual(Array.from({ length: shown.length }, (_, i) => String(i + 2)));
    expect(noteOf(task)).toEqual({
      artifactsUpToEvent: 2 + shown.length,
      events: 14,
      bytes: expect.any(Number) as number,
      remedy: expect.stringContaining(`Last-Event-ID: ${2 + shown.length} `) as string,
    });
    expect(noteOf(task).bytes).toBeGreaterThan(1_200 * KIB);
    // What follows that event is the rest.
    const rest = await tasks.readEvents(run.tenantId, run.taskId, 2 + shown.length, 100);
    expect(rest).toHaveLength(12 - shown.length);
  });

  it('is read whole where that is not too much, however many pages it takes', async () => {
    const run = await startTask(stores);
    await say(run, 2, 30);
    const { task } = (await stores.tasks.get(run.tenantId, run.taskId))!;
    expect(firsts(task)).toEqual(Array.from({ length: 30 }, (_, i) => String(i + 2)));
    expect(isTruncated(task)).toBe(false);
  });

  it('shares what may be read with the other tasks of a list: the first ones are read whole', async () => {
    const [tenantId, contextId] = [randomUUID(), randomUUID()];
    for (let i = 0; i < 4; i++) {
      const run = await startTask(stores, newTask({ tenantId, task: { contextId } }));
      await endTurn(stores, run, await say(run, 2, 3));
    }
    const page = await tasks.list({ tenantId, pageSize: 10, includeArtifacts: true });
    const sizes = page.tasks.map(({ task }) => bytesOf(task));
    expect(sizes).toEqual([300 * KIB, 200 * KIB, 0, 0]);
    expect(page.tasks.map(({ task }) => isTruncated(task))).toEqual([false, true, true, true]);
    const last = await startTask(stores, newTask({ tenantId, task: { contextId } }));
    const earlier = await tasks.listContext(tenantId, 'echo', contextId, last.taskId, 10);
    expect(earlier.map(({ task }) => bytesOf(task))).toEqual([0, 0, 200 * KIB, 300 * KIB]);
  });

  it('shows the newest messages of a long history', async () => {
    const run = await startTask(stores);
    for (let i = 0; i < 10; i++) {
      const said = status(run, TASK_STATE_WORKING, textMessage(`${i}:`.padEnd(100 * KIB, 'x')));
      await stores.runs.append(run, { afterSequence: 2 + i, events: [said] });
    }
    const { task } = (await tasks.get(run.tenantId, run.taskId, { artifacts: false }))!;
    const numbers = task.history.map(({ parts }) => String(parts[0]?.content?.value).split(':')[0]);
    expect(numbers).toEqual(['5', '6', '7', '8', '9']);
    expect(noteOf(task)).toMatchObject({ historyMessages: 5 });
    const two = await tasks.get(run.tenantId, run.taskId, { artifacts: false, historyLength: 2 });
    expect(two!.task.history).toHaveLength(2);
    expect(isTruncated(two!.task)).toBe(false);
    const whole = await stores.tasks.get(run.tenantId, run.taskId);
    expect(whole!.task.history).toHaveLength(11);
  });

  it('shows of many small messages the newest ones that fit', async () => {
    const run = await startTask(stores);
    const texts = Array.from({ length: 100 }, (_, i) => `${i}:`.padEnd(1_500, 'x'));
    const events = texts.map((text) => status(run, TASK_STATE_WORKING, textMessage(text)));
    await stores.runs.append(run, { afterSequence: 2, events });
    const read = new TaskStore(stores.database, 100 * KIB);
    const { history } = (await read.get(run.tenantId, run.taskId, { artifacts: false }))!.task;
    expect(saidIn(history)).toEqual(texts.slice(-history.length));
    expect(history.length * 1_500).toBeGreaterThan(80 * KIB);
    expect(history.length * 1_500).toBeLessThan(100 * KIB);
  });

  it('leaves the message of a status out of a list that is too large for it', async () => {
    const run = await startTask(stores);
    const said = textMessage('x'.repeat(100 * KIB));
    await stores.runs.append(run, { afterSequence: 2, events: [status(run, TASK_STATE_WORKING, said)] });
    const { tasks: listed } = await tasks.list({
      tenantId: run.tenantId,
      pageSize: 1,
      includeArtifacts: false,
    });
    expect(listed[0]?.task.status).toMatchObject({ state: TASK_STATE_WORKING, message: undefined });
    expect(noteOf(listed[0]!.task)).toMatchObject({ statusMessage: true });
    const { task } = (await tasks.get(run.tenantId, run.taskId, { historyLength: 0 }))!;
    expect(task.status?.message?.parts).toEqual(said.parts);
  });

  it('is the same as of its head, whatever is said while it is read', async () => {
    const run = await startTask(stores);
    let head = await say(run, 2, 2, 'a');
    // The order in which artifacts first appeared stays, although 'a' is replaced after 'b' has begun.
    let stop = false;
    const write = async (): Promise<void> => {
      // Replaced again and again: a reader that mixes two moments sees both texts, or none.
      for (let i = 0; i < 25; i++) {
        for (const id of ['a', 'b']) {
          const events = [artifactChunk(run, id, `${i}:`.padEnd(80 * KIB, 'x'), false)];
          await stores.runs.append(run, { afterSequence: head++, events });
        }
      }
      stop = true;
    };
    const read = async (): Promise<void> => {
      while (!stop) {
        const { task, sequence } = (await stores.tasks.get(run.tenantId, run.taskId))!;
        if (sequence <= 5) continue;
        const replaced = Math.floor((sequence - 5) / 2);
        const [a, b] = (sequence - 5) % 2 === 0 ? [replaced, replaced - 1] : [replaced, replaced];
        expect([sequence, firsts(task)]).toEqual([sequence, b < 0 ? [String(a)] : [String(a), String(b)]]);
      }
    };
    await Promise.all([write(), read(), read()]);
  });
});

describe('replaced output', () => {
  it('is not read again: a task costs what its artifacts are, not what its turn said', async () => {
    const run = await startTask(stores);
    let head = 2;
    for (; head < 42; head++) {
      const events = [artifactChunk(run, 'progress', `${head}:`.padEnd(100 * KIB, 'x'), false)];
      await stores.runs.append(run, { afterSequence: head, events });
    }
    const { task } = (await tasks.get(run.tenantId, run.taskId))!;
    expect(firsts(task)).toEqual(['41']);
    expect(isTruncated(task)).toBe(false);
  });

  it('has its place among the artifacts from its first event on', async () => {
    const run = await startTask(stores);
    const events = [artifactChunk(run, 'a', 'first'), artifactChunk(run, 'b', 'other')];
    await stores.runs.append(run, { afterSequence: 2, events });
    await stores.runs.append(run, { afterSequence: 4, events: [artifactChunk(run, 'a', 'next', false)] });
    const { task } = (await tasks.get(run.tenantId, run.taskId))!;
    expect(texts(task)).toEqual(['next', 'other']);
  });

  it('is not read again either when an earlier release has written a part of it', async () => {
    const run = await startTask(stores);
    const events = [
      artifactChunk(run, 'old', 'gone', false),
      artifactChunk(run, 'old', 'gone'),
      artifactChunk(run, 'kept', 'kept'),
    ];
    await stores.runs.append(run, { afterSequence: 2, events });
    await sql(stores, `UPDATE task_events SET artifact = NULL, bytes = NULL WHERE task_id = '${run.taskId}'`);
    await stores.runs.append(run, {
      afterSequence: 5,
      events: [artifactChunk(run, 'old', 'new', false), artifactChunk(run, 'kept', 'more')],
    });
    const { task } = (await stores.tasks.get(run.tenantId, run.taskId))!;
    expect(texts(task)).toEqual(['new', 'kept', 'more']);
  });
});

describe('the artifacts of a large turn', () => {
  it('stay in the log, and an earlier release folds them from there', async () => {
    const run = await startTask(stores);
    const head = await say(run, 2, 4);
    await endTurn(stores, run, head, TASK_STATE_INPUT_REQUIRED);
    const [row] = await sql(
      stores,
      `SELECT artifacts::text, artifacts_sequence FROM tasks WHERE id = '${run.taskId}'`,
    );
    expect(row).toEqual({ artifacts: '[]', artifacts_sequence: 1 });
    expect(firsts((await stores.tasks.get(run.tenantId, run.taskId))!.task)).toEqual(['2', '3', '4', '5']);
  });

  it('are read from the log where an earlier release has put them into the row of the task', async () => {
    const run = await startTask(stores);
    const head = await say(run, 2, 4);
    const { task } = (await stores.tasks.get(run.tenantId, run.taskId))!;
    await endTurn(stores, run, head);
    const json = JSON.stringify(task.artifacts.map((artifact) => Artifact.toJSON(artifact)));
    await sql(
      stores,
      `UPDATE tasks SET artifacts = '${json}', artifacts_sequence = last_sequence WHERE id = '${run.taskId}'`,
    );
    await sql(stores, `UPDATE task_events SET artifact = NULL, bytes = NULL WHERE task_id = '${run.taskId}'`);
    expect(firsts((await stores.tasks.get(run.tenantId, run.taskId))!.task)).toEqual(['2', '3', '4', '5']);
  });
});

describe('the run of a large task', () => {
  it('is claimed with the beginning of the task’s content, at a further attempt as well', async () => {
    const run = await startTask(stores);
    await say(run, 2, 20);
    await expire(stores, run.runId);
    expect(await reclaim(stores)).toHaveLength(1);
    const runs = new RunStore(stores.database, READ_BYTES);
    const again = (await runs.claim(run.tenantId, run.runId, 'other', LEASE_MS))!;
    expect(again).toMatchObject({ attempt: 2, artifactsAreWhole: false, artifactsAtStart: [] });
    expect(again.snapshot.sequence).toBe(22);
    expect(bytesOf(again.snapshot.task)).toBeLessThanOrEqual(READ_BYTES);
    expect(again.logged.events).toBe(22);
    expect(again.logged.bytes).toBeGreaterThan(2_000 * KIB);
  });

  it('is claimed with what earlier turns had put into its artifacts, page by page', async () => {
    const first = await startTask(stores);
    const head = await say(first, 2, 20);
    await endTurn(stores, first, head, TASK_STATE_INPUT_REQUIRED);
    const { tenantId, taskId } = first;
    const turn = {
      tenantId,
      taskId,
      agentId: 'echo',
      runId: randomUUID(),
      extensions: [],
      message: textMessage('more'),
    };
    const accepted = await stores.tasks.continue(turn);
    const startSequence = accepted.ok ? accepted.sequence : 0;
    const run = (await stores.runs.claim(tenantId, turn.runId, 'worker', LEASE_MS))!;
    expect(
      await tasks.isArtifactTouched(
        { tenantId, taskId, head: run.snapshot.sequence },
        'reply',
        startSequence,
      ),
    ).toBe(false);
    await stores.runs.append(run, {
      afterSequence: run.snapshot.sequence,
      events: [chunk(run, 'dead', false)],
    });
    const snapshot = { tenantId, taskId, head: run.snapshot.sequence + 1 };
    expect(await tasks.isArtifactTouched(snapshot, 'reply', startSequence)).toBe(true);
    expect(await tasks.isArtifactTouched(snapshot, 'other', startSequence)).toBe(false);
    const pages: string[][] = [];
    for (let after: number | undefined = 0; after !== undefined;) {
      const page = await tasks.artifactPage({ ...snapshot, head: startSequence }, after, {
        artifactId: 'reply',
      });
      pages.push(page.updates.flatMap(({ artifact }) => firsts({ artifacts: artifact ? [artifact] : [] })));
      after = page.next;
    }
    expect(pages.length).toBeGreaterThan(1);
    expect(pages.flat()).toEqual(Array.from({ length: 20 }, (_, i) => String(i + 2)));
  });
});

describe('a task that ends without its writer', () => {
  it('has its small artifacts folded once', async () => {
    const run = await startTask(stores);
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'a'), chunk(run, 'b')] });
    await sql(stores, `UPDATE runs SET max_attempts = 1 WHERE id = '${run.runId}'`);
    await expire(stores, run.runId);
    await stores.runs.failPoisoned(10, (await stores.runs.findWork(60_000)).at, crashText);
    await stores.runs.keepArtifacts(run.tenantId, run.taskId);
    const [row] = await sql(stores, `SELECT artifacts_sequence FROM tasks WHERE id = '${run.taskId}'`);
    expect(row).toEqual({ artifacts_sequence: 5 });
    const { task } = (await stores.tasks.get(run.tenantId, run.taskId))!;
    expect([task.status?.state, texts(task)]).toEqual([TASK_STATE_FAILED, ['a', 'b']]);
  });

  it('has large artifacts in its log alone', async () => {
    const run = await startTask(stores);
    await say(run, 2, 3);
    await sql(stores, `UPDATE runs SET max_attempts = 1 WHERE id = '${run.runId}'`);
    await expire(stores, run.runId);
    await stores.runs.failPoisoned(10, (await stores.runs.findWork(60_000)).at, crashText);
    await stores.runs.keepArtifacts(run.tenantId, run.taskId);
    const [row] = await sql(
      stores,
      `SELECT artifacts, artifacts_sequence FROM tasks WHERE id = '${run.taskId}'`,
    );
    expect(row).toEqual({ artifacts: [], artifacts_sequence: 1 });
    const { task } = (await stores.tasks.get(run.tenantId, run.taskId))!;
    expect(bytesOf(task)).toBe(300 * KIB);
  });
});
