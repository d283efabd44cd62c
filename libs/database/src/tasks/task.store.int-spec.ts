import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
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

const {
  TASK_STATE_CANCELED,
  TASK_STATE_COMPLETED,
  TASK_STATE_INPUT_REQUIRED,
  TASK_STATE_SUBMITTED,
  TASK_STATE_WORKING,
} = TaskState;

describe('a new task', () => {
  it('is read as it was sent, at sequence 1', async () => {
    const input = newTask({ task: { metadata: { topic: 'x', ['__proto__x']: 1 } } });
    await stores.tasks.create(input);
    const stored = await stores.tasks.get(input.tenantId, input.task.id);
    expect(stored).toEqual({ task: input.task, sequence: 1, agentId: 'echo', owner: null, outcome: null });
    const [event] = await stores.tasks.readEvents(input.tenantId, input.task.id, 0, 10);
    expect(event).toEqual({ sequence: 1, attempt: 0, payload: { $case: 'task', value: input.task } });
  });

  it('keeps NUL and lone surrogates of the caller', async () => {
    const text = 'nul \u0000, half \ud83d of a pair, pair \u{1f600}';
    const input = newTask({ text, task: { metadata: { [text]: text } } });
    const run = await startTask(stores, input);
    expect(run.message.parts).toEqual(input.task.history[0]?.parts);
    const said = status(run, TASK_STATE_WORKING, textMessage(text));
    await stores.runs.append(run, {
      afterSequence: 2,
      events: [chunk(run, text), said],
      metadata: { more: text },
    });
    const stored = await stores.tasks.get(input.tenantId, input.task.id);
    expect(stored?.task.metadata).toEqual({ [text]: text, more: text });
    expect(texts(stored!.task)).toEqual([text]);
    expect(saidIn(stored!.task.history)).toEqual([text, text]);
    expect(stored?.task.status?.message?.parts[0]?.content?.value).toBe(text);
  });

  it('is not found under an invalid id, nor by another tenant', async () => {
    const { tenantId, task } = newTask();
    expect(await stores.tasks.get(tenantId, 'nonsense')).toBeUndefined();
    expect(await stores.tasks.readEvents(tenantId, "' OR 1=1", 0, 1)).toEqual([]);
    expect(await stores.tasks.cancel(tenantId, 'echo', 'nonsense')).toEqual({
      ok: false,
      reason: 'not-found',
    });
    await stores.tasks.create({ ...newTask({ tenantId }), task });
    expect(await stores.tasks.get(randomUUID(), task.id)).toBeUndefined();
    expect(await stores.tasks.cancel(randomUUID(), 'echo', task.id)).toEqual({
      ok: false,
      reason: 'not-found',
    });
    expect(await stores.tasks.cancel(tenantId, 'other', task.id)).toEqual({ ok: false, reason: 'not-found' });
  });

  it('takes a context id of any length', async () => {
    const contextId = 'c'.repeat(20_000);
    const input = newTask({ task: { contextId } });
    await stores.tasks.create(input);
    const { tenantId, agentId } = input;
    const page = await stores.tasks.list({
      tenantId,
      agentId,
      contextId,
      pageSize: 10,
      includeArtifacts: false,
    });
    expect(page.tasks).toHaveLength(1);
  });
});

describe('reading', () => {
  it('gives the last n messages, or none', async () => {
    const run = await startTask(stores);
    for (const [i, text] of ['a', 'b', 'c'].entries()) {
      const events = [status(run, TASK_STATE_WORKING, textMessage(text))];
      expect(await stores.runs.append(run, { afterSequence: 2 + i, events })).toEqual({
        ok: true,
        firstSequence: 3 + i,
      });
    }
    const history = async (historyLength?: number) => {
      const stored = await stores.tasks.get(run.tenantId, run.taskId, { historyLength });
      return saidIn(stored!.task.history);
    };
    expect(await history()).toEqual(['hello', 'a', 'b', 'c']);
    expect(await history(2)).toEqual(['b', 'c']);
    expect(await history(0)).toEqual([]);
    expect(await history(2 ** 40)).toEqual(['hello', 'a', 'b', 'c']);
  });

  it('folds the artifacts from the log, before and after the end of the turn', async () => {
    const run = await startTask(stores);
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'a', false), chunk(run, 'b')] });
    const before = await stores.tasks.get(run.tenantId, run.taskId);
    expect(texts(before!.task)).toEqual(['a', 'b']);
    expect(before?.sequence).toBe(4);
    await endTurn(
      stores,
      run,
      4,
      TASK_STATE_COMPLETED,
      [chunk(run, 'c')],
      [
        {
          ...before!.task.artifacts[0]!,
          parts: [...textMessage('a').parts, ...textMessage('b').parts, ...textMessage('c').parts],
        },
      ],
    );
    const after = await stores.tasks.get(run.tenantId, run.taskId);
    expect(texts(after!.task)).toEqual(['a', 'b', 'c']);
    expect(after?.sequence).toBe(6);
    const without = await stores.tasks.get(run.tenantId, run.taskId, { artifacts: false });
    expect(without?.task.artifacts).toEqual([]);
  });

  it('never shows a terminal status with an older prefix of the log', async () => {
    const run = await startTask(stores);
    const write = async (): Promise<void> => {
      for (let head = 2; head < 60; head++) {
        await stores.runs.append(run, { afterSequence: head, events: [chunk(run, String(head))] });
      }
      await stores.tasks.cancel(run.tenantId, 'echo', run.taskId);
    };
    const read = async (): Promise<void> => {
      for (;;) {
        const { task, sequence } = (await stores.tasks.get(run.tenantId, run.taskId))!;
        const canceled = task.status?.state === TASK_STATE_CANCELED;
        expect(texts(task)).toHaveLength(sequence - 2 - (canceled ? 1 : 0));
        if (!canceled) continue;
        expect(sequence).toBe(61);
        return;
      }
    };
    await Promise.all([write(), read(), read()]);
  });

  it('reads the log in order, after a sequence and up to a limit', async () => {
    const run = await startTask(stores);
    await stores.runs.append(run, {
      afterSequence: 2,
      events: ['a', 'b', 'c'].map((text) => chunk(run, text)),
    });
    const read = async (after: number, limit: number) =>
      (await stores.tasks.readEvents(run.tenantId, run.taskId, after, limit)).map(({ sequence }) => sequence);
    expect(await read(0, 100)).toEqual([1, 2, 3, 4, 5]);
    expect(await read(2, 2)).toEqual([3, 4]);
    expect(await read(5, 10)).toEqual([]);
    expect(await read(2 ** 50, 2 ** 50)).toEqual([]);
  });

  it('reads when events were stored', async () => {
    const run = await startTask(stores);
    const before = new Date();
    await stores.runs.append(run, { afterSequence: 2, events: ['a', 'b'].map((text) => chunk(run, text)) });
    const times = await stores.tasks.eventTimes(run.tenantId, run.taskId, 2, 100);
    expect(times.map(({ sequence }) => sequence)).toEqual([3, 4]);
    const isNow = ({ at }: { at: Date }) => Math.abs(at.getTime() - before.getTime()) < 60_000;
    expect(times.every(isNow)).toBe(true);
    expect(await stores.tasks.eventTimes(run.tenantId, run.taskId, 0, 1)).toHaveLength(1);
    expect(await stores.tasks.eventTimes(randomUUID(), run.taskId, 0, 100)).toEqual([]);
    expect(await stores.tasks.eventTimes(run.tenantId, 'x', 0, 100)).toEqual([]);
    expect(await stores.tasks.eventTimes(run.tenantId, run.taskId, 2 ** 50, 100)).toEqual([]);
  });

  it('reads its log page by page, each of a bounded size', async () => {
    const run = await startTask(stores);
    // Compressed it is next to nothing: what counts is what a reader holds.
    const large = Array.from({ length: 6 }, () => chunk(run, 'large '.repeat(10_000)));
    await stores.runs.append(run, { afterSequence: 2, events: large });
    const page = async (after: number, limit: number, bytes: number) => {
      const { events, more } = await stores.tasks.readPage(run, after, { limit, bytes });
      return [events.map(({ sequence }) => sequence), more];
    };
    expect(await page(0, 100, 2 ** 30)).toEqual([[1, 2, 3, 4, 5, 6, 7, 8], false]);
    expect(await page(2, 100, 100_000)).toEqual([[3, 4], true]);
    expect(await page(2, 100, 1)).toEqual([[3], true]);
    expect(await page(6, 100, 1_000_000)).toEqual([[7, 8], false]);
    expect(await page(0, 2, 2 ** 30)).toEqual([[1, 2], true]);
    expect(await page(8, 100, 1)).toEqual([[], false]);
  });

  it('reads the heads of many tasks at once', async () => {
    const [one, two] = [await startTask(stores), newTask()];
    await stores.tasks.create(two);
    const keys = [one, { tenantId: two.tenantId, taskId: two.task.id }];
    const unknown = [
      { tenantId: one.tenantId, taskId: randomUUID() },
      { tenantId: 'x', taskId: 'y' },
    ];
    const heads = await stores.tasks.heads([...keys, ...unknown]);
    expect(heads).toEqual(
      new Map([
        [one.taskId, 2],
        [two.task.id, 1],
      ]),
    );
  });
});

describe('the next turn', () => {
  const next = (run: { tenantId: string; taskId: string }) => ({
    tenantId: run.tenantId,
    taskId: run.taskId,
    agentId: 'echo',
    runId: randomUUID(),
    extensions: [],
    message: textMessage('more'),
  });

  it('is accepted by an interrupted task only, once', async () => {
    const run = await startTask(stores);
    expect(await stores.tasks.continue(next(run))).toEqual({ ok: false, reason: 'busy' });
    await endTurn(stores, run, 2, TASK_STATE_INPUT_REQUIRED);
    const turns = await Promise.all([1, 2, 3, 4, 5].map(() => stores.tasks.continue(next(run))));
    expect(turns.filter(({ ok }) => ok)).toEqual([
      { ok: true, sequence: 4, dispatched: true, mayUseReserved: true },
    ]);
    expect(turns.filter(({ ok }) => !ok)).toEqual(Array(4).fill({ ok: false, reason: 'busy' }));
    const stored = await stores.tasks.get(run.tenantId, run.taskId);
    expect(stored?.task.status?.state).toBe(TASK_STATE_SUBMITTED);
    expect(saidIn(stored!.task.history)).toEqual(['hello', 'more']);
  });

  it('is accepted once, also by those that have waited for each other', async () => {
    const run = await startTask(stores);
    await endTurn(stores, run, 2, TASK_STATE_INPUT_REQUIRED);
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
    const { turns } = await stores.database.inSystem(async (transaction) => {
      await transaction.query({ text: 'SELECT FROM tasks WHERE id = $1 FOR UPDATE' }, [run.taskId]);
      const both = Promise.all([stores.tasks.continue(next(run)), stores.tasks.continue(next(run))]);
      while ((await sql(stores, waiting)).length < 2);
      return { turns: both };
    });
    expect((await turns).map(({ ok }) => ok).sort()).toEqual([false, true]);
  });

  it('is claimed with its message and the artifacts of the turns before', async () => {
    const first = await startTask(stores);
    const artifacts = [{ ...artifactOf(chunk(first, 'kept')) }];
    await endTurn(stores, first, 2, TASK_STATE_INPUT_REQUIRED, [chunk(first, 'kept')], artifacts);
    const turn = next(first);
    await stores.tasks.continue(turn);
    const run = await stores.runs.claim(turn.tenantId, turn.runId, 'other', 1000);
    expect(run).toMatchObject({
      attempt: 1,
      startSequence: 5,
      message: turn.message,
      workingEvent: { sequence: 6 },
    });
    expect(texts({ artifacts: run!.artifactsAtStart })).toEqual(['kept']);
    expect(texts(run!.snapshot.task)).toEqual(['kept']);
    expect(await stores.runs.append(first, { afterSequence: 6, events: [chunk(first, 'late')] })).toEqual({
      ok: false,
    });
  });

  it('is refused by a task that has ended, is unknown or belongs to another agent', async () => {
    const run = await startTask(stores);
    await endTurn(stores, run, 2);
    expect(await stores.tasks.continue(next(run))).toEqual({ ok: false, reason: 'terminal' });
    const missing = { ok: false, reason: 'not-found' };
    expect(await stores.tasks.continue(next({ ...run, taskId: randomUUID() }))).toEqual(missing);
    expect(await stores.tasks.continue({ ...next(run), agentId: 'other' })).toEqual(missing);
    expect(await stores.tasks.continue(next({ ...run, taskId: '1' }))).toEqual(missing);
  });
});

function artifactOf({ payload }: ReturnType<typeof chunk>) {
  if (payload.$case !== 'artifactUpdate' || !payload.value.artifact) throw new Error('no artifact');
  return payload.value.artifact;
}
