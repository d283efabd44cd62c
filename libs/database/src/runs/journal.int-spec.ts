import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { JournalStore, type RunKey, RunStore } from '../index.js';
import { type Stores, chunk, newTask, openStores, sql, startTask, status, texts } from '../stores.fixture.js';

/** A longer name of a tool is not shown. */
const LONGEST_NAME = 't'.repeat(128);

let stores: Stores;
let journal: JournalStore;
beforeAll(async () => {
  stores = await openStores(4);
  journal = new JournalStore(stores.database, stores.runs);
});
afterAll(async () => stores.close());

describe('the journal of a task', () => {
  it('is what its runs have written, in their order, any JSON there is', async () => {
    const run = await startTask(stores);
    const values = [{ deep: [1, null, '\u0000 \ud800'] }, 'text', 7];
    for (const [i, value] of values.entries()) expect(await journal.append(run, i + 1, value)).toBe(true);
    const { tenantId, taskId, runId } = run;
    expect(await journal.read(tenantId, taskId)).toEqual(
      values.map((value, i) => ({ runId, position: i + 1, value })),
    );
  });

  it('keeps one entry when it is written twice', async () => {
    const run = await startTask(stores);
    expect(await journal.append(run, 1, 'first')).toBe(true);
    expect(await journal.append(run, 1, 'again')).toBe(true);
    expect((await journal.read(run.tenantId, run.taskId)).map(({ value }) => value)).toEqual(['first']);
  });

  it('keeps one entry when it is written again while the first write waits', async () => {
    const run = await startTask(stores);
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    const { writes } = await stores.database.inSystem(async (transaction) => {
      await transaction.query({ text: 'SELECT FROM tasks WHERE id = $1 FOR UPDATE' }, [run.taskId]);
      // As a process that has lost its connection: its first write is not known to the second.
      const again = new JournalStore(stores.database, new RunStore(stores.database));
      const both = Promise.all([journal.append(run, 1, 'first'), again.append(run, 1, 'again')]);
      while ((await sql(stores, waiting)).length < 2);
      return { writes: both };
    });
    expect(await writes).toEqual([true, true]);
    expect(await journal.read(run.tenantId, run.taskId)).toHaveLength(1);
    const counted = `SELECT open_bytes::int AS bytes, (SELECT octet_length(value::text) FROM turn_journal WHERE task_id = t.id) AS said
      FROM tasks t WHERE id = '${run.taskId}'`;
    const [row] = (await sql(stores, counted)) as { bytes: number; said: number }[];
    expect(row?.bytes).toBe(row?.said);
  });

  it.each([undefined, '"a record"'])(
    'gets no entry of a run whose task is canceled while the write waits (record: %j)',
    async (record) => {
      const run = await startTask(stores);
      const waiting = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      const { appending } = await stores.database.inTenant(run.tenantId, async (transaction) => {
        const cancel = `UPDATE tasks SET state = ${TaskState.TASK_STATE_CANCELED} WHERE id = $1`;
        await transaction.query({ text: cancel }, [run.taskId]);
        const appending = journal.append(run, 1, 'late', record);
        while ((await sql(stores, waiting)).length === 0);
        return { appending };
      });
      expect(await appending).toBe(false);
      expect(await journal.read(run.tenantId, run.taskId)).toEqual([]);
    },
  );

  it.each([undefined, '"a record"'])(
    'keeps the entry of an earlier attempt: the write of a later one is refused (record: %j)',
    async (record) => {
      const first = await startTask(stores);
      const { tenantId, taskId, runId } = first;
      expect(await journal.append(first, 1, 'first', record)).toBe(true);
      await stores.runs.returnToQueue(first);
      const second = (await stores.runs.claim(tenantId, runId, 'worker', 30_000))!;
      expect(await journal.append(second, 1, 'second', record)).toBe(false);
      expect(await journal.restart(second, 1, 'second')).toBe(false);
      expect((await journal.read(tenantId, taskId)).map(({ value }) => value)).toEqual(['first']);
    },
  );

  it('are written together for many tasks and tenants, and a refused one keeps no other from it', async () => {
    const tenantId = randomUUID();
    const [first, second, third] = [
      await startTask(stores, newTask({ tenantId })),
      await startTask(stores, newTask({ tenantId })),
      await startTask(stores),
    ];
    const runs = [first, second, third];
    const written = await Promise.all([
      journal.append(first, 1, 'first'),
      journal.append({ ...second, attempt: second.attempt - 1 }, 1, 'zombie'),
      journal.append(third, 1, { of: 'another tenant' }),
      journal.append(first, 2, 'next'),
    ]);
    expect(written).toEqual([true, false, true, true]);
    const kept = await Promise.all(runs.map(({ tenantId, taskId }) => journal.read(tenantId, taskId)));
    expect(kept.map((entries) => entries.map(({ value }) => value))).toEqual([
      ['first', 'next'],
      [],
      [{ of: 'another tenant' }],
    ]);
    expect(await journal.read(first.tenantId, third.taskId)).toEqual([]);
  });

  it('begins anew with one entry, and gives the bytes of the others back, those of earlier turns too', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId, runId } = run;
    await journal.append(run, 1, 'x'.repeat(1_000));
    await stores.runs.append(run, {
      afterSequence: 2,
      events: [status(run, TaskState.TASK_STATE_INPUT_REQUIRED)],
      end: { state: TaskState.TASK_STATE_INPUT_REQUIRED, outcome: null, wakeInMs: 0 },
    });
    const sizes = `SELECT (stored_bytes + open_bytes)::int AS bytes FROM tasks WHERE id = '${taskId}'`;
    await stores.tasks.wakeAsking(10);
    await stores.dispatch.dispatch([{ tenantId, slots: 1, maxInFlight: null }], 100, { upTo: 1, slots: 0 });
    const again = await stores.runs.claim(tenantId, runId, 'w-2', 30_000);
    const [before] = (await sql(stores, sizes)) as { bytes: number }[];
    expect(await journal.append(again!, 2, 'y')).toBe(true);
    expect(await journal.restart(run, 3, 'zombie')).toBe(false);
    for (let i = 0; i < 2; i++) expect(await journal.restart(again!, 3, 'z')).toBe(true);
    expect(await journal.read(tenantId, taskId)).toEqual([{ runId, position: 3, value: 'z' }]);
    const [after] = (await sql(stores, sizes)) as { bytes: number }[];
    expect(after!.bytes - before!.bytes).toBe(Buffer.byteLength('"z"') - 1_002);
    expect(await journal.append(again!, 4, 'next')).toBe(true);
  });

  it('that begins anew keeps its first entries, as many as asked for', async () => {
    const run = await startTask(stores);
    for (const [i, value] of ['origin', 'one', 'two'].entries()) await journal.append(run, i + 1, value);
    expect(await journal.restart(run, 4, 'summary', 1)).toBe(true);
    const entries = await journal.read(run.tenantId, run.taskId);
    expect(entries.map(({ position, value }) => [position, value])).toEqual([
      [1, 'origin'],
      [4, 'summary'],
    ]);
  });

  it('that begins anew leaves the artifacts as they are for the attempts to come', async () => {
    const run = await startTask(stores);
    const { tenantId, runId } = run;
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'kept', false)] });
    expect(await journal.restart(run, 1, 'anew')).toBe(true);
    await stores.runs.append(run, { afterSequence: 3, events: [chunk(run, ' of a dead attempt')] });
    await stores.runs.returnToQueue(run, 1);
    const next = await stores.runs.claim(tenantId, runId, 'w-2', 30_000);
    expect(texts({ artifacts: next!.artifactsAtStart })).toEqual(['kept']);
    expect(next).toMatchObject({ startSequence: 1, baseSequence: 3 });
  });

  it('is found for the tasks that have one', async () => {
    const run = await startTask(stores);
    const { taskId: none } = await startTask(stores, newTask({ tenantId: run.tenantId }));
    await journal.append(run, 1, 'first');
    const found = (tenantId: string) => journal.tasksWithJournal(tenantId, [none, run.taskId]);
    expect([...(await found(run.tenantId))]).toEqual([run.taskId]);
    expect([...(await found(randomUUID()))]).toEqual([]);
  });

  it('is written by a worker while its own run has one with a lease', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    const other = newTask({ tenantId });
    await stores.tasks.create(other);
    const isLive = () => Promise.all([taskId, other.task.id].map((id) => journal.hasLiveRun(tenantId, id)));
    expect(await isLive()).toEqual([true, false]);
    await sql(stores, `UPDATE runs SET lease_expires_at = now() WHERE id = '${run.runId}'`);
    expect(await isLive()).toEqual([false, false]);
  });

  it('belongs to one tenant', async () => {
    const run = await startTask(stores);
    await journal.append(run, 1, 'mine');
    expect(await journal.read(randomUUID(), run.taskId)).toEqual([]);
    expect(await journal.append({ ...run, tenantId: randomUUID() }, 2, 'theirs')).toBe(false);
    expect(await journal.read(run.tenantId, 'no-uuid')).toEqual([]);
  });

  it('belongs to one task', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = await startTask(stores, newTask({ tenantId: run.tenantId }));
    await journal.append(run, 1, 'mine');
    expect(await journal.entry(tenantId, run.taskId, 1)).toMatchObject({ value: 'mine' });
    expect(await journal.entry(tenantId, taskId, 1)).toBeUndefined();
    expect(await journal.read(tenantId, taskId)).toEqual([]);
  });

  it('shows the newest model calls without their content, for any output of a model', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId, runId, attempt } = run;
    const usage = {
      inputTokens: 5,
      outputTokens: 2,
      reasoningTokens: 0,
      cachedInputTokens: 1,
      cacheWriteTokens: 3,
    };
    const call = (toolName: string) => ({ type: 'tool-call', toolCallId: 'c', toolName, input: {} });
    const content = [
      { type: 'text', text: 'secret \u0000 \ud800' },
      call('a"b'),
      call('x'.repeat(1_000)),
      call(LONGEST_NAME),
    ];
    const time = { at: '2026-01-31T12:00:00.000Z', ms: 70 };
    const values = [
      { kind: 'asked', at: 0 },
      { kind: 'failed-call', model: 'o/m', usage, error: 'o failed (500).', ...time },
      {
        kind: 'step',
        model: 'o/m',
        usage,
        finish: 'tool-calls',
        message: { role: 'assistant', content },
        ...time,
      },
      {
        kind: 'step',
        model: 'o/m',
        usage,
        finish: 'length',
        rawFinish: 'max_tokens',
        notMade: ['desk_sign'],
        message: { role: 'assistant', content: [{ type: 'text', text: 'half' }] },
        ...time,
      },
      'a text \u0000',
      // As an earlier release has written it.
      { kind: 'step', model: 'o/m', usage, finish: 'stop', message: { role: 'assistant', content: 'ok' } },
      // Of an agent in code. Its code makes the tool calls.
      {
        event: 'called',
        execution: 1,
        id: 3,
        head: 0,
        kind: 'step',
        model: 'o/m',
        usage,
        finish: 'tool-calls',
        message: {
          role: 'assistant',
          content: [{ type: 'tool-call', toolName: 'pay', toolCallId: '1', input: {} }],
        },
        ...time,
      },
      { kind: 'summary', steps: 2, text: 'What was said', model: 'o/m', usage, finish: 'stop', ...time },
    ];
    for (const [i, value] of values.entries()) await journal.append(run, i + 1, value);
    const tokens = { inputTokens: 5, outputTokens: 2, cachedTokens: 1, cacheWriteTokens: 3 };
    const answered = { error: null, tools: [], providerFinish: null, isNotMade: false, isSummary: false };
    const known = { runId, attempt, model: 'o/m', ...tokens, ...answered };
    const calls = [
      { ...known, position: 2, ...time, finish: null, error: 'o failed (500).' },
      { ...known, position: 3, ...time, finish: 'tool-calls', tools: ['a"b', '…', LONGEST_NAME] },
      {
        ...known,
        position: 4,
        ...time,
        finish: 'length',
        providerFinish: 'max_tokens',
        tools: ['desk_sign'],
        isNotMade: true,
      },
      { ...known, position: 6, at: null, ms: null, finish: 'stop' },
      { ...known, position: 7, ...time, finish: 'tool-calls', tools: ['pay'], callId: 'step-1-3' },
      { ...known, position: 8, ...time, finish: 'stop', isSummary: true },
    ];
    expect(await journal.modelCalls(tenantId, taskId, 100)).toEqual(calls);
    expect(await journal.modelCalls(tenantId, taskId, 2)).toEqual(calls.slice(4));
    expect(await journal.openCalls(tenantId, taskId)).toEqual([]);
    expect(await journal.modelCalls(randomUUID(), taskId, 100)).toEqual([]);
    expect(await journal.modelCalls(tenantId, 'no-uuid', 100)).toEqual([]);
  });

  it('shows the newest calls of tools without what they said, and one entry with it', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId, runId, attempt } = run;
    const time = { at: '2026-01-31T12:00:00.000Z', ms: 70 };
    const content = [{ type: 'text', text: 'secret \u0000' }];
    const step = (text: string) => ({ kind: 'step', message: { role: 'assistant', content: text } });
    const result = (tool: string, ok: boolean) => ({
      kind: 'result',
      tool,
      ...time,
      result: { ok, content },
    });
    const values = [
      step('one'),
      result('desk_pay', true),
      // As an earlier release has written it.
      { kind: 'result', callId: 'c', result: { ok: true, content } },
      step('two'),
      result('x'.repeat(1_000), false),
      result(LONGEST_NAME, true),
    ];
    for (const [i, value] of values.entries()) await journal.append(run, i + 1, value);
    const known = { runId, attempt, ...time };
    const calls = [
      { ...known, position: 2, tool: 'desk_pay', ok: true, call: null },
      { ...known, position: 5, tool: '…', ok: false, call: null },
      { ...known, position: 6, tool: LONGEST_NAME, ok: true, call: null },
    ];
    expect(await journal.toolCalls(tenantId, taskId, 100)).toEqual(calls);
    expect(await journal.toolCalls(tenantId, taskId, 1)).toEqual(calls.slice(-1));
    expect(await journal.entry(tenantId, taskId, 2)).toEqual({ runId, position: 2, value: values[1] });
    expect(await journal.modelStep(tenantId, taskId, 2)).toEqual({ runId, position: 4, value: values[3] });
    expect(await journal.modelStep(tenantId, taskId, 3)).toBeUndefined();
    for (const [tenant, task] of [
      [randomUUID(), taskId],
      [tenantId, 'no-uuid'],
    ] as const) {
      expect(await journal.toolCalls(tenant, task, 100)).toEqual([]);
      expect(await journal.entry(tenant, task, 2)).toBeUndefined();
      expect(await journal.modelStep(tenant, task, 1)).toBeUndefined();
    }
  });

  it('shows the calls that the newest answer asks for and that have no result', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId, runId } = run;
    const at = '2026-01-31T12:00:00.000Z';
    const step = (...tools: string[]) => ({
      kind: 'step',
      at,
      ms: 250,
      message: {
        role: 'assistant',
        content: tools.map((toolName) => ({ type: 'tool-call', toolName, input: '\u0000' })),
      },
    });
    const known = { runId, at: '2026-01-31T12:00:00.250Z', waitsForApproval: false };
    const open = () => journal.openCalls(tenantId, taskId);
    expect(await open()).toEqual([]);
    await journal.append(run, 1, step('old'));
    await journal.append(run, 2, step('pay', 'x'.repeat(1_000), LONGEST_NAME));
    expect(await open()).toEqual([
      { ...known, call: 'call-2-1', tool: 'pay' },
      { ...known, call: 'call-2-2', tool: '…' },
      { ...known, call: 'call-2-3', tool: LONGEST_NAME },
    ]);
    await journal.append(run, 3, { kind: 'result', call: 'call-2-1', result: { ok: true } });
    await journal.append(run, 4, { kind: 'waiting', callIds: ['call-2-3'] });
    expect((await open()).map(({ call, waitsForApproval }) => [call, waitsForApproval])).toEqual([
      ['call-2-2', false],
      ['call-2-3', true],
    ]);
    await journal.append(run, 5, { kind: 'answered', decisions: [] });
    expect((await open()).map(({ waitsForApproval }) => waitsForApproval)).toEqual([false, false]);
    expect(await journal.openCalls(randomUUID(), taskId)).toEqual([]);
    await journal.append(run, 6, { ...step('pay'), at: 'once', ms: 1e300 });
    expect(await open()).toEqual([]);
    await journal.append(run, 7, { ...step('pay'), notMade: ['pay'] });
    expect(await open()).toEqual([]);
    await journal.append(run, 8, { ...step(), message: { role: 'assistant', content: 'done' } });
    expect(await open()).toEqual([]);
  });

  it('shows durable steps, whatever their results are', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    const at = '2026-01-31T12:00:00.000Z';
    const step = { execution: 1, id: 1, at };
    const entries = [
      { ...step, event: 'begun', name: 'read', kind: 'run' },
      { ...step, event: 'ended', result: 'zero \u0000, half \udc00, \\u0000' },
    ];
    for (const [i, value] of entries.entries()) await journal.append(run, i + 1, value);
    expect(await journal.steps(tenantId, taskId)).toEqual([
      {
        name: 'read',
        kind: 'run',
        state: 'succeeded',
        attempts: 1,
        startedAt: at,
        endedAt: at,
        error: null,
        position: 2,
        callId: 'step-1-1',
      },
    ]);
  });

  it('shows a step that waits for a decision on its unknown outcome, and the decision', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    const step = { execution: 1, id: 1, at: '2026-01-31T12:00:00.000Z' };
    const entries = [
      [{ event: 'begun', name: 'pay', kind: 'run' }, 'running', undefined],
      [{ event: 'asked' }, 'waiting', undefined],
      [{ event: 'answered', answer: { done: false } }, 'waiting', undefined],
      [{ event: 'begun', name: 'pay', kind: 'run', decision: 'asked' }, 'running', 'asked'],
      [{ event: 'ended' }, 'succeeded', 'asked'],
      // It is about no step.
      [{ event: 'compensating', id: 0, steps: [1] }, 'succeeded', 'asked'],
    ] as const;
    for (const [i, [value, state, unknownOutcome]] of entries.entries()) {
      await journal.append(run, i + 1, { ...step, ...value });
      const steps = await journal.steps(tenantId, taskId);
      expect(steps.map((each) => [each.name, each.state, each.unknownOutcome])).toEqual([
        ['pay', state, unknownOutcome],
      ]);
    }
  });

  it('shows the effects of steps and of calls of tools, without what they said', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId, runId } = run;
    const [at, later] = ['2026-01-31T12:00:00.000Z', '2026-01-31T12:00:00.070Z'];
    let position = 0;
    const write = async (writer: RunKey, value: object) =>
      expect(await journal.append(writer, (position += 1), { at, ...value })).toBe(true);
    const step = (id: number, event: string, more: object = {}) => ({ execution: 1, id, event, ...more });
    const begun = (id: number, kind: string, more: object = {}) =>
      step(id, 'begun', { nth: 1, name: `step ${id}`, kind, ...more });
    const result = (call: string, ok: boolean) => ({
      kind: 'result',
      call,
      tool: 'desk_pay',
      ms: 70,
      result: { ok, content: [{ type: 'text', text: 'secret \u0000' }] },
    });
    for (const value of [
      begun(1, 'run'),
      step(1, 'ended', { result: 'secret \u0000' }),
      begun(2, 'run'),
      step(2, 'failed', { error: { name: 'Error', message: 'full' } }),
      begun(2, 'run', { decision: 'repeated' }),
      step(2, 'ended', { error: { name: 'UnknownOutcome', message: 'who knows' } }),
      begun(3, 'tool'),
      step(3, 'asked'),
      // Not outside of Baton.
      begun(4, 'sleep'),
      { kind: 'step', message: { role: 'assistant', content: 'secret' } },
      begun(5, 'run'),
      { kind: 'begun', call: 'one' },
      { kind: 'begun', call: 'two' },
      result('one', false),
    ])
      await write(run, value);
    const read = async () => {
      const { effects, begun: open } = await journal.effects(tenantId, taskId);
      return { effects, open: Object.fromEntries(open) };
    };
    const known = { attempts: 1, begunAt: at, endedAt: null, error: null };
    const ofStep = (id: number, more: object) => ({
      ...known,
      of: { execution: 1, nth: 1 },
      name: `step ${id}`,
      kind: 'step',
      ...more,
    });
    const ofCall = (call: string, more: object) => ({
      ...known,
      of: { call },
      name: 'desk_pay',
      kind: 'tool',
      endedAt: later,
      ...more,
    });
    const effects = [
      ofStep(1, { outcome: 'confirmed', endedAt: at, position: 2 }),
      ofStep(2, {
        outcome: 'unknown',
        attempts: 2,
        decision: 'repeated',
        endedAt: at,
        error: 'who knows',
        position: 6,
      }),
      ofStep(3, { kind: 'tool', outcome: 'intended', position: 8 }),
      ofStep(5, { outcome: 'sent', position: 11 }),
      ofCall('one', { outcome: 'failed', position: 14 }),
    ];
    expect(await read()).toEqual({ effects, open: { two: 'sent' } });

    // The worker has died: whether the step has arrived is unknown.
    await sql(stores, `UPDATE runs SET lease_expires_at = now() WHERE id = '${runId}'`);
    const inFlight = ofStep(5, { outcome: 'unknown', position: 11 });
    expect(await read()).toEqual({
      effects: [...effects.slice(0, 3), inFlight, effects[4]],
      open: { two: 'unknown' },
    });
    await stores.runs.returnToQueue(run, 1);
    await stores.dispatch.dispatch([{ tenantId, slots: 1, maxInFlight: null }], 1000);
    const next = await stores.runs.claim(tenantId, runId, 'w-2', 30_000);
    for (const value of [result('two', false), result('three', true)]) await write(next!, value);
    expect(await read()).toEqual({
      effects: [
        ...effects.slice(0, 3),
        inFlight,
        effects[4],
        ofCall('two', { outcome: 'unknown', position: 15 }),
        ofCall('three', { outcome: 'confirmed', position: 16 }),
      ],
      open: {},
    });
    const none = { effects: [], begun: new Map() };
    expect(await journal.effects(randomUUID(), taskId)).toEqual(none);
    expect(await journal.effects(tenantId, 'no-uuid')).toEqual(none);
  });

  it('shows of entries that no runtime has written only those that are like one', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId } = run;
    const usage = { inputTokens: 5, outputTokens: 2 };
    const step = { kind: 'step', model: 'o/m', usage, finish: 'stop', message: { content: [] } };
    const begun = { execution: 1, id: 1, at: 'now', event: 'begun', name: 'read', kind: 'run' };
    const forged = [null, [], 0, 'x', { deep: 1 }, [[1]], '__proto__'];
    const values = [
      step,
      begun,
      ...forged,
      ...['usage', 'model', 'finish', 'rawFinish', 'at', 'ms', 'message', 'notMade', 'error', 'kind'].flatMap(
        (name) => forged.map((value) => ({ ...step, [name]: value })),
      ),
      ...['execution', 'id', 'event', 'name', 'kind', 'at', 'error'].flatMap((name) =>
        forged.map((value) => ({ ...begun, [name]: value })),
      ),
      { ...step, usage: { inputTokens: '5', outputTokens: {} } },
      { ...step, message: { content: ['x', null, { type: 'tool-call', toolName: { length: 1 } }] } },
      { ...step, ...JSON.parse('{"__proto__":{"usage":1},"constructor":{"prototype":{}}}') },
    ];
    for (const [i, value] of values.entries()) await journal.append(run, i + 1, value);
    const calls = await journal.modelCalls(tenantId, taskId, 1_000);
    expect(calls.length).toBeGreaterThan(0);
    for (const { model, inputTokens, tools } of calls)
      expect([typeof model, inputTokens, tools.map((tool) => typeof tool)]).toEqual(['string', 5, []]);
    expect((await journal.steps(tenantId, taskId))[0]).toMatchObject({ name: 'read', kind: 'run' });
    expect(({} as { usage?: unknown }).usage).toBeUndefined();
  });

  it('counts towards what its tenant stores', async () => {
    const run = await startTask(stores);
    const bytes = async () => {
      const [row] = await sql(stores, `SELECT open_bytes::int AS n FROM tasks WHERE id = '${run.taskId}'`);
      return (row as { n: number }).n;
    };
    const before = await bytes();
    await journal.append(run, 1, 'x'.repeat(1000));
    await journal.append(run, 1, 'x'.repeat(1000));
    expect(await bytes()).toBeGreaterThan(before + 100);
    expect(await bytes()).toBeLessThan(before + 2000);
  });
});
