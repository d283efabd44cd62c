import { serializePayload, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { type ClaimedRun, DeadLetterStore } from '../index.js';
import {
  beat,
  chunk,
  countByState,
  crashText,
  dispatchNow,
  endTurn,
  expire,
  newTask,
  openStores,
  reclaim,
  sql,
  startTask,
  status,
  type Stores,
  textMessage,
  texts,
} from '../stores.fixture.js';

const { TASK_STATE_COMPLETED, TASK_STATE_FAILED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING } = TaskState;
const LEASE_MS = 30_000;
/** The policy of a run that is tried once. */
const ONCE = { maxAttempts: 1, backoff: { initialMs: 0, factor: 1, maxMs: 0 } };

let stores: Stores;
beforeEach(async () => {
  stores = await openStores();
});
afterEach(async () => stores.close());

/** As if the lease had run out. */
const failPoisoned = async () =>
  stores.runs.failPoisoned(10, (await stores.runs.findWork(60_000)).at, crashText);

describe('claim', () => {
  it('has one winner among many, who finds the task working', async () => {
    const input = newTask();
    await stores.tasks.create(input);
    const claims = await Promise.all(
      Array.from({ length: 20 }, (_, i) => stores.runs.claim(input.tenantId, input.runId, `w${i}`, LEASE_MS)),
    );
    const [won, ...others] = claims.filter((claim) => claim !== undefined);
    expect(others).toEqual([]);
    expect(won).toMatchObject({
      attempt: 1,
      startSequence: 1,
      workingEvent: { sequence: 2 },
      snapshot: { sequence: 2 },
    });
    expect(won?.snapshot.task.status?.state).toBe(TASK_STATE_WORKING);
    expect(won?.message).toEqual(input.task.history[0]);
    const events = await stores.tasks.readEvents(input.tenantId, input.task.id, 1, 10);
    expect(events).toEqual([{ sequence: 2, attempt: 1, payload: won?.workingEvent?.payload }]);
  });

  it('takes a run over only when its lease has run out; the old writer is then refused', async () => {
    const first = await startTask(stores);
    await stores.runs.append(first, { afterSequence: 2, events: [chunk(first, 'half an ans', false)] });
    const take = async () => stores.runs.claim(first.tenantId, first.runId, 'other', LEASE_MS);
    expect([await reclaim(stores), await take()]).toEqual([[], undefined]);
    await expire(stores, first.runId);
    // Whether a silent lease means a dead worker is the sweeper's to say.
    expect(await take()).toBeUndefined();
    expect(await reclaim(stores)).toHaveLength(1);
    const second = await take();
    expect(second).toMatchObject({
      attempt: 2,
      workingEvent: null,
      artifactsAtStart: [],
      snapshot: { sequence: 3 },
    });
    expect(texts(second!.snapshot.task)).toEqual(['half an ans']);
    const late = { afterSequence: 3, events: [chunk(first, 'wer')] };
    expect(await stores.runs.append(first, late)).toEqual({ ok: false });
    expect(await beat(stores, [first])).toEqual([first.runId]);
    expect(await stores.runs.append(second!, late)).toEqual({ ok: true, firstSequence: 4 });
  });

  it('gives the same run whether the task came with the claim or was read after it', async () => {
    const details = { metadata: { of: 'the request' }, configuration: undefined };
    const input = { ...newTask({ task: { metadata: { ticket: 7 } } }), details, owner: 'token:1' };
    await stores.tasks.create({ ...input, extensions: ['urn:x'], traceparent: '00-a-b-01' });
    const { tenantId, runId } = input;
    const made = (await stores.runs.claim(tenantId, runId, 'worker', LEASE_MS))!;
    // Its answer was lost: the task is working already, so it does not come with the claim.
    const read = (await stores.runs.claim(tenantId, runId, 'worker', LEASE_MS, true))!;
    expect(made.snapshot.task).toMatchObject({ metadata: { ticket: 7 }, history: [input.task.history[0]] });
    expect(made).toEqual({
      ...read,
      workingEvent: made.workingEvent,
      waitedSeconds: made.waitedSeconds,
    });
  });

  it('finds nothing under invalid ids, or those of another tenant', async () => {
    const input = newTask();
    await stores.tasks.create(input);
    expect(await stores.runs.claim(input.tenantId, 'nonsense', 'w', LEASE_MS)).toBeUndefined();
    expect(await stores.runs.claim(randomUUID(), input.runId, 'w', LEASE_MS)).toBeUndefined();
  });
});

describe('a run that is claimed as it is made', () => {
  const claimFor = { workerId: 'mine', leaseMs: LEASE_MS };
  const stateOf = async (runId: string) =>
    (
      await sql(
        stores,
        `SELECT r.state, r.attempt, r.worker_id, t.state AS task, t.last_sequence AS head
         FROM runs r JOIN tasks t ON t.id = r.task_id WHERE r.id = '${runId}'`,
      )
    )[0];

  it('is for its worker alone, who finds the task working and writes that with its first events', async () => {
    const input = { ...newTask(), claimFor };
    expect(await stores.tasks.create(input)).toMatchObject({
      created: true,
      dispatched: true,
      claimed: expect.any(String),
    });
    expect(await stateOf(input.runId)).toEqual({
      state: 'running',
      attempt: 1,
      worker_id: 'mine',
      task: TaskState.TASK_STATE_SUBMITTED,
      head: 1,
    });
    const { tenantId, runId, task } = input;
    expect(await stores.runs.readEagerRun(tenantId, runId, 'another', 1)).toBeUndefined();
    expect(await stores.runs.readEagerRun(randomUUID(), runId, 'mine', 1)).toBeUndefined();
    expect(await stores.runs.claim(tenantId, runId, 'another', LEASE_MS)).toBeUndefined();
    const run = (await stores.runs.readEagerRun(tenantId, runId, 'mine', 1))!;
    expect(run).toMatchObject({
      attempt: 1,
      startSequence: 1,
      message: task.history[0],
      workingEvent: { sequence: 2, isAppended: false },
      snapshot: { sequence: 2, task: { status: { state: TASK_STATE_WORKING } } },
    });
    const { payload } = run.workingEvent!;
    const events = [{ payload, json: serializePayload(payload) }, chunk(run, 'answer', false)];
    expect(await stores.runs.append(run, { afterSequence: 1, events })).toMatchObject({ ok: true });
    expect(await stateOf(runId)).toMatchObject({ task: TASK_STATE_WORKING, head: 3 });
    expect(await stores.runs.readEagerRun(tenantId, runId, 'mine', 1)).toBeUndefined();
  });

  it('is the same whether its worker was sent it or reads it', async () => {
    const input = newTask({ task: { metadata: { ticket: 7 } } });
    const [message] = input.task.history;
    message!.parts = textMessage('größer als "eins" \\ 👍').parts;
    const details = { metadata: { of: 'the request' }, configuration: undefined };
    const more = { details, owner: 'token:1', extensions: ['urn:x'], traceparent: '00-a-b-01' };
    const { claimed } = await stores.tasks.create({ ...input, ...more, claimFor });
    const read = (await stores.runs.readEagerRun(input.tenantId, input.runId, 'mine', 1))!;
    const sent = stores.runs.eagerRunFrom(claimed!);
    // Made anew each time: the time of `working`.
    const timeless = (run: ClaimedRun) =>
      JSON.parse(
        JSON.stringify({ ...run, waitedSeconds: 0 }, (name, value: unknown) =>
          name === 'timestamp' ? undefined : value,
        ),
      ) as object;
    expect(timeless(sent)).toEqual(timeless(read));
    expect(sent.waitedSeconds).toBeLessThan(read.waitedSeconds + 60);
    expect(await stores.runs.append(sent, { afterSequence: 1, events: [chunk(sent, 'x')] })).toMatchObject({
      ok: true,
    });
  });

  it('reads like a run from the queue', async () => {
    const [eager, queued] = [{ ...newTask(), claimFor }, newTask()];
    for (const input of [eager, queued]) await stores.tasks.create(input);
    const pickedUp = (await stores.runs.readEagerRun(eager.tenantId, eager.runId, 'mine', 1))!;
    const claimed = (await stores.runs.claim(queued.tenantId, queued.runId, 'mine', LEASE_MS))!;
    expect(Object.keys(pickedUp).sort()).toEqual(Object.keys(claimed).sort());
    const { logged, artifactsAtStart, artifactsAreWhole, extensions, hasPushConfigs, runsAlone } = claimed;
    const { events } = logged;
    expect(pickedUp).toMatchObject({
      artifactsAtStart,
      artifactsAreWhole,
      extensions,
      hasPushConfigs,
      runsAlone,
    });
    expect(pickedUp.logged.events).toBe(events);
  });

  it('waits for no slot: a run without one is not claimed', async () => {
    const quota = { maxInFlight: 0, maxWaiting: null, exact: true };
    const input = { ...newTask(), claimFor, quota };
    expect(await stores.tasks.create(input)).toMatchObject({ dispatched: false, claimed: undefined });
    expect(await stateOf(input.runId)).toMatchObject({ state: 'queued', attempt: 0, worker_id: null });
  });

  it('is not one with a large message, which is read in pieces', async () => {
    const input = newTask();
    const [message] = input.task.history;
    message!.parts = textMessage('x'.repeat(40_000)).parts;
    expect(await stores.tasks.create({ ...input, claimFor })).toMatchObject({
      dispatched: true,
      claimed: undefined,
    });
  });

  it('is not begun once it was canceled, or once its lease is about to end', async () => {
    const [canceled, late] = [
      { ...newTask(), claimFor },
      { ...newTask(), claimFor },
    ];
    for (const input of [canceled, late]) await stores.tasks.create(input);
    expect(await stores.tasks.cancel(canceled.tenantId, null, canceled.task.id)).toMatchObject({ ok: true });
    expect(await stores.runs.readEagerRun(canceled.tenantId, canceled.runId, 'mine', 1)).toBeUndefined();
    expect(await stores.runs.readEagerRun(late.tenantId, late.runId, 'mine', LEASE_MS)).toBeUndefined();
  });

  it('whose notice its worker never gets is queued when its lease has expired, and the worker comes too late', async () => {
    const input = { ...newTask(), claimFor };
    await stores.tasks.create(input);
    const { tenantId, runId, task } = input;
    await expire(stores, runId);
    expect(await reclaim(stores)).toEqual([
      { tenantId, taskId: task.id, runId, attempt: 1, mayUseReserved: true },
    ]);
    expect(await stores.runs.readEagerRun(tenantId, runId, 'mine', 1)).toBeUndefined();
    expect(await stores.runs.claim(tenantId, runId, 'other', LEASE_MS)).toMatchObject({
      attempt: 2,
      workingEvent: { sequence: 2, isAppended: true },
    });
  });

  it('is given back without a crash, and begun by another worker', async () => {
    const input = { ...newTask(), claimFor };
    await stores.tasks.create(input);
    const { tenantId, runId, task } = input;
    const key = { tenantId, taskId: task.id, runId, attempt: 1 };
    expect(await stores.runs.returnToQueue(key)).toEqual({ ...key, mayUseReserved: true });
    expect(await stores.runs.readEagerRun(tenantId, runId, 'mine', 1)).toBeUndefined();
    expect(await stores.runs.claim(tenantId, runId, 'other', LEASE_MS)).toMatchObject({
      attempt: 2,
      message: task.history[0],
      workingEvent: { sequence: 2 },
    });
  });
});

describe('append', () => {
  it('leaves a log of 1..n without holes under concurrent writers', async () => {
    const run = await startTask(stores);
    let head = 2;
    const write = async (events: number): Promise<void> => {
      const batch = Array.from({ length: events }, () => chunk(run, 'x'));
      while (!(await stores.runs.append(run, { afterSequence: head, events: batch })).ok) {
        head = (await stores.tasks.heads([run])).get(run.taskId)!;
      }
    };
    await Promise.all([1, 2, 3, 1, 2, 3, 5, 8].map(write));
    const log = await stores.tasks.readEvents(run.tenantId, run.taskId, 0, 1000);
    expect(log.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 27 }, (_, i) => i + 1));
  });

  it('writes a batch once, however often it is sent', async () => {
    const run = await startTask(stores);
    const batch = { afterSequence: 2, events: [chunk(run, 'once', false)] };
    const results = await Promise.all([1, 2, 3].map(() => stores.runs.append(run, batch)));
    expect(results.filter(({ ok }) => ok)).toEqual([{ ok: true, firstSequence: 3 }]);
    expect((await stores.tasks.heads([run])).get(run.taskId)).toBe(3);
  });

  it('ends the turn: task, history, artifacts and run together', async () => {
    const run = await startTask(stores);
    const said = textMessage('done');
    const result = await stores.runs.append(run, {
      afterSequence: 2,
      events: [chunk(run, 'a', false), status(run, TASK_STATE_FAILED, said)],
      end: { state: TASK_STATE_FAILED, outcome: 'agent-threw', error: 'boom \0', artifacts: [] },
      metadata: { tokens: 3 },
    });
    expect(result).toEqual({ ok: true, firstSequence: 3, hasChildren: false });
    const stored = await stores.tasks.get(run.tenantId, run.taskId);
    expect(stored).toMatchObject({ sequence: 4, outcome: 'agent-threw', task: { metadata: { tokens: 3 } } });
    expect(stored?.task.history.at(-1)).toEqual(said);
    expect(stored?.task.status).toMatchObject({ state: TASK_STATE_FAILED, message: said });
    expect(await countByState(stores)).toEqual({ waiting: 0, queued: 0, running: 0, suspended: 0 });
    const [row] = await sql(stores, `SELECT state, error FROM runs WHERE id = '${run.runId}'`);
    expect(row).toEqual({ state: 'failed', error: 'boom \uFFFD' });
    expect(await endTurn(stores, run, 4)).toEqual({ ok: false });
  });

  it('rejects a batch that ends a turn without saying so, and one that goes on after the end', async () => {
    const run = await startTask(stores);
    const ended = status(run, TASK_STATE_COMPLETED);
    await expect(stores.runs.append(run, { afterSequence: 2, events: [ended] })).rejects.toThrow(TypeError);
    await expect(
      endTurn(stores, run, 2, TASK_STATE_COMPLETED, [status(run, TASK_STATE_INPUT_REQUIRED)]),
    ).rejects.toThrow(TypeError);
    expect((await stores.tasks.heads([run])).get(run.taskId)).toBe(2);
  });

  it('there is no second active run', async () => {
    const run = await startTask(stores);
    const second = `INSERT INTO runs (tenant_id, id, task_id, state, start_sequence)
      VALUES ('${run.tenantId}', '${randomUUID()}', '${run.taskId}', 'queued', 1)`;
    await expect(sql(stores, second)).rejects.toThrow('runs_out_key');
  });
});

describe('leases', () => {
  it('a heartbeat keeps many runs and names those that are lost', async () => {
    const [one, two, three] = [await startTask(stores), await startTask(stores), await startTask(stores)];
    const beaten = [one, { ...two, attempt: 7 }, { ...three, attempt: 0 }];
    for (const { runId } of beaten) await expire(stores, runId);
    expect(await beat(stores, beaten)).toEqual([two.runId]);
    expect((await reclaim(stores)).map(({ runId }) => runId)).toEqual([two.runId]);
    expect(await beat(stores, [])).toEqual([]);
    expect(await beat(stores, [one], 'other')).toEqual([one.runId]);
  });

  it('a heartbeat extends no lease of another worker, not even while it claims the same run', async () => {
    const run = await startTask(stores);
    await expire(stores, run.runId);
    expect(await beat(stores, [run], 'other')).toEqual([run.runId]);
    expect(await beat(stores, [{ ...run, attempt: 0 }], 'other')).toEqual([]);
    expect((await reclaim(stores)).map(({ runId }) => runId)).toEqual([run.runId]);
  });

  it('a heartbeat waits for no lock: a locked run costs no other', async () => {
    const [one, two] = [await startTask(stores), await startTask(stores)];
    await stores.database.inSystem(async (transaction) => {
      const lock = { text: 'SELECT 1 FROM runs WHERE id = $1 FOR UPDATE' };
      await transaction.query(lock, [one.runId]);
      await expire(stores, two.runId);
      expect(await beat(stores, [one, two])).toEqual([]);
    });
    expect(await reclaim(stores)).toEqual([]);
  });

  it('ends when its time has come and not before, with and without attempts left', async () => {
    const [run, last] = [await startTask(stores), await startTask(stores, { ...newTask(), retry: ONCE })];
    const [at, next] = ['2100-01-01T00:00:00.000Z', '2100-01-01T00:00:00.001Z'];
    await sql(stores, `UPDATE runs SET lease_expires_at = '${at}'`);
    expect(await stores.runs.reclaimExpired(10, at)).toEqual([]);
    expect(await stores.runs.failPoisoned(10, at, crashText)).toEqual([]);
    expect(await stores.runs.reclaimExpired(10, next)).toMatchObject([{ runId: run.runId }]);
    expect(await stores.runs.failPoisoned(10, next, crashText)).toMatchObject([{ runId: last.runId }]);
  });

  it.each([
    ['with', newTask, async (at: string) => stores.runs.reclaimExpired(1, at)],
    [
      'without',
      () => ({ ...newTask(), retry: ONCE }),
      async (at: string) => stores.runs.failPoisoned(1, at, crashText),
    ],
  ])('of several that have ended, the oldest comes first: %s attempts left', async (_, input, sweep) => {
    const run = [await startTask(stores, input()), await startTask(stores, input())];
    for (const [i, { runId }] of run.entries())
      await sql(stores, `UPDATE runs SET lease_expires_at = '2000-01-0${2 - i}' WHERE id = '${runId}'`);
    for (const { runId } of run.toReversed())
      expect(await sweep('2000-01-03T00:00:00Z')).toMatchObject([{ runId }]);
  });

  it.each<[what: string, locked: 'runs' | 'tasks', sweep: (at: string) => Promise<unknown[]>]>([
    ['whose worker has died', 'runs', async (at) => stores.runs.reclaimExpired(10, at)],
    ['that are missing on the queue', 'runs', async () => stores.runs.takeStaleQueued(0, 10)],
    ['without attempts left', 'runs', async (at) => stores.runs.failPoisoned(10, at, crashText)],
    ['without attempts left', 'tasks', async (at) => stores.runs.failPoisoned(10, at, crashText)],
  ])(
    'a sweep for runs %s waits for no lock, and leaves a run to the next one whose row of %s is locked',
    async (what, locked, sweep) => {
      const run = await startTask(stores);
      const isQueued = what === 'that are missing on the queue';
      if (isQueued) await stores.runs.returnToQueue(run);
      else await expire(stores, run.runId);
      if (what === 'without attempts left')
        await sql(stores, `UPDATE runs SET max_attempts = 1 WHERE id = '${run.runId}'`);
      const { at } = await stores.runs.findWork(60_000);
      const blocked = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
      const { found } = await stores.database.inSystem(async (transaction) => {
        await transaction.query({ text: `SELECT FROM ${locked} WHERE id = $1 FOR UPDATE` }, [
          locked === 'runs' ? run.runId : run.taskId,
        ]);
        let taken: unknown[] | undefined;
        void sweep(at).then((runs) => (taken = runs));
        while (taken === undefined && (await sql(stores, blocked)).length === 0);
        return { found: taken };
      });
      expect(found).toEqual([]);
      expect(await sweep(at)).toMatchObject([{ runId: run.runId }]);
    },
  );

  it('a sweep with a limit takes the runs first that are missing on the queue for longest', async () => {
    const runs = [await startTask(stores), await startTask(stores), await startTask(stores)];
    for (const [i, run] of runs.entries()) {
      await stores.runs.returnToQueue(run);
      await sql(
        stores,
        `UPDATE runs SET enqueued_at = now() - interval '${i + 1} hours' WHERE id = '${run.runId}'`,
      );
    }
    const taken: string[] = [];
    for (let i = 0; i < 2; i++)
      taken.push(...(await stores.runs.takeStaleQueued(60_000, 1)).map(({ runId }) => runId));
    expect(taken).toEqual([runs[2]!.runId, runs[1]!.runId]);
  });

  it('an expired one puts the run back, for one sweeper only', async () => {
    const { tenantId, taskId, runId } = await startTask(stores);
    await expire(stores, runId);
    const sweeps = await Promise.all([1, 2, 3].map(() => reclaim(stores)));
    expect(sweeps.flat()).toEqual([{ tenantId, taskId, runId, attempt: 1, mayUseReserved: true }]);
    expect(await countByState(stores)).toEqual({ waiting: 0, queued: 1, running: 0, suspended: 0 });
    expect(await stores.runs.claim(tenantId, runId, 'other', LEASE_MS)).toMatchObject({ attempt: 2 });
  });

  it('a run that kills every worker fails with the reason', async () => {
    const run = await startTask(stores);
    await stores.runs.append(run, { afterSequence: 2, events: [chunk(run, 'a')] });
    for (const attempt of [2, 3]) {
      await expire(stores, run.runId);
      expect(await failPoisoned()).toEqual([]);
      // After the first crash the run continues at once. After the second one it has to wait.
      expect(await reclaim(stores)).toHaveLength(attempt === 2 ? 1 : 0);
      if (attempt === 3) await dispatchNow(stores, run.tenantId);
      expect(await stores.runs.claim(run.tenantId, run.runId, 'w', LEASE_MS)).toMatchObject({ attempt });
    }
    await expire(stores, run.runId);
    expect(await reclaim(stores)).toEqual([]);
    const sweeps = await Promise.all([1, 2].map(() => failPoisoned()));
    const [failed, ...more] = sweeps.flat();
    expect(more).toEqual([]);
    expect(failed).toMatchObject({ runId: run.runId, attempt: 3, event: { sequence: 4 } });
    const stored = await stores.tasks.get(run.tenantId, run.taskId);
    expect(stored?.task.status?.state).toBe(TASK_STATE_FAILED);
    expect(stored?.task.history.at(-1)?.parts[0]?.content?.value).toContain('Given up after 3 attempts');
    expect(texts(stored!.task)).toEqual(['a']);
    const [event] = await stores.tasks.readEvents(run.tenantId, run.taskId, 3, 10);
    expect(event?.payload).toEqual(failed?.event.payload);
  });

  it('one that is extended while the sweep looks at it does not fail its run', async () => {
    const run = await startTask(stores, { ...newTask(), retry: ONCE });
    await expire(stores, run.runId);
    const { at } = await stores.runs.findWork(60_000);
    // Each statement waits for this lock when it reads its first run. It has its snapshot then.
    await sql(
      stores,
      `CREATE POLICY slow ON runs AS RESTRICTIVE USING ((SELECT count(*) FROM pg_advisory_xact_lock_shared(4711)) > 0)`,
    );
    const worker = new Client({ connectionString: stores.url });
    await worker.connect();
    try {
      await worker.query(`BEGIN; SET LOCAL baton.tenant = 'system'; SELECT pg_advisory_xact_lock(4711)`);
      const failed = stores.runs.failPoisoned(10, at, crashText);
      const waits = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'advisory'`;
      while ((await sql(stores, waits)).length === 0);
      await worker.query(`UPDATE runs SET lease_expires_at = now() + interval '1 minute'`);
      await worker.query('COMMIT');
      expect(await failed).toEqual([]);
      expect(await countByState(stores)).toMatchObject({ running: 1 });
    } finally {
      await worker.end();
    }
  });

  it('the policy with which a run was accepted decides how often it is tried', async () => {
    const run = await startTask(stores, { ...newTask(), retry: ONCE });
    await expire(stores, run.runId);
    expect(await reclaim(stores)).toEqual([]);
    expect(await failPoisoned()).toMatchObject([{ runId: run.runId, attempt: 1 }]);
    const letters = new DeadLetterStore(stores.database);
    expect(await letters.list(run.tenantId, { limit: 10 })).toMatchObject([
      {
        runId: run.runId,
        taskId: run.taskId,
        agentId: 'echo',
        attempts: 1,
        reason: 'Given up after 1 attempts: no news',
        redeliveredAt: null,
      },
    ]);
    expect(await letters.list(randomUUID(), { limit: 10 })).toEqual([]);
    expect(await letters.find(randomUUID(), run.runId)).toBeUndefined();
    expect((await letters.readMessage(run.tenantId, run.runId))?.message).toEqual(run.message);
  });

  it.each([
    [1, 'the process ran out of memory'],
    // What is known is of an attempt before the last one.
    [2, 'no news'],
  ])('a run whose process died at attempt 1 of %i is explained by: %s', async (maxAttempts, known) => {
    const retry = { maxAttempts, backoff: { initialMs: 0, factor: 1, maxMs: 0 } };
    const run = await startTask(stores, { ...newTask(), retry });
    const crash = 'the process ran out of memory';
    await stores.runs.giveUp(run, { attempt: 1, at: '', name: 'Error', message: '', crash });
    await expire(stores, run.runId);
    if (maxAttempts > 1) {
      await reclaim(stores);
      await stores.runs.claim(run.tenantId, run.runId, 'w', LEASE_MS);
      await expire(stores, run.runId);
    }
    expect(await failPoisoned()).toMatchObject([{ runId: run.runId }]);
    const letter = await new DeadLetterStore(stores.database).find(run.tenantId, run.runId);
    expect(letter?.reason).toBe(`Given up after ${maxAttempts} attempts: ${known}`);
  });

  it('the last error of a task is of any of its turns', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId, agentId, runId } = run;
    const error = { attempt: 1, at: '2026-01-31T12:00:00.000Z', name: 'Error', message: 'no desk' };
    await stores.runs.noteError(run, error);
    await endTurn(stores, run, 2, TASK_STATE_INPUT_REQUIRED);
    const next = {
      tenantId,
      taskId,
      agentId,
      runId: randomUUID(),
      message: textMessage('more'),
      extensions: [],
    };
    expect(await stores.tasks.continue(next)).toMatchObject({ ok: true });
    expect(await stores.runs.lastError(tenantId, taskId)).toEqual({ runId, ...error });
    const { taskId: other } = await startTask(stores, newTask({ tenantId }));
    expect(await stores.runs.lastError(tenantId, other)).toBeUndefined();
  });

  it('a run with a backoff waits for longer after each crash, and is not claimed or dispatched before', async () => {
    const retry = { maxAttempts: 9, backoff: { initialMs: 10_000, factor: 3, maxMs: 50_000 } };
    const run = await startTask(stores, { ...newTask(), retry });
    const waited: number[] = [];
    for (let crashCount = 1; crashCount <= 3; crashCount++) {
      await expire(stores, run.runId);
      expect(await reclaim(stores)).toEqual([]);
      const [row] = (await sql(
        stores,
        `SELECT extract(epoch FROM not_before - clock_timestamp())::float8 AS wait FROM runs`,
      )) as [{ wait: number }];
      waited.push(Math.round(row.wait / 10) * 10);
      expect(await stores.runs.claim(run.tenantId, run.runId, 'w', LEASE_MS)).toBeUndefined();
      const grants = [{ tenantId: run.tenantId, slots: 1, maxInFlight: null }];
      expect((await stores.dispatch.readSlotUsage(1000)).waiting.size).toBe(0);
      expect(await stores.dispatch.dispatch(grants, 10)).toEqual([]);
      await sql(stores, `UPDATE runs SET not_before = now() - interval '1 ms'`);
      expect((await stores.dispatch.readSlotUsage(1000)).waiting.size).toBe(1);
      expect(await stores.dispatch.dispatch(grants, 10)).toMatchObject([{ runId: run.runId }]);
      expect(await stores.runs.claim(run.tenantId, run.runId, 'w', LEASE_MS)).toMatchObject({
        attempt: crashCount + 1,
      });
    }
    expect(waited).toEqual([10, 30, 50]);
  });

  it('a run handed back at every shutdown does not count as killing its workers', async () => {
    const { tenantId, runId } = await startTask(stores);
    for (let attempt = 1; attempt <= 5; attempt++) {
      const key = { tenantId, runId, taskId: '', attempt };
      expect(await stores.runs.returnToQueue(key)).toMatchObject({ runId, attempt });
      expect(await stores.runs.returnToQueue(key)).toBeUndefined();
      expect(await stores.runs.claim(tenantId, runId, 'w', LEASE_MS)).toMatchObject({ attempt: attempt + 1 });
      // The worker of the attempt before cannot give back that of another.
      expect(await stores.runs.returnToQueue(key)).toBeUndefined();
    }
    await expire(stores, runId);
    expect(await failPoisoned()).toEqual([]);
    expect(await reclaim(stores)).toHaveLength(1);
  });
});

it('queued runs that are on no queue are found once they are old enough, by one sweeper', async () => {
  const input = newTask();
  await stores.tasks.create(input);
  expect(await stores.runs.takeStaleQueued(3000, 10)).toEqual([]);
  await sql(stores, `UPDATE runs SET enqueued_at = now() - interval '4 seconds'`);
  const sweeps = await Promise.all([1, 2, 3].map(() => stores.runs.takeStaleQueued(3000, 10)));
  const { tenantId, runId, task } = input;
  expect(sweeps.flat()).toEqual([{ tenantId, taskId: task.id, runId, attempt: 0, mayUseReserved: true }]);
  // It is marked as enqueued now, so the next sweep does not enqueue it again.
  expect(await stores.runs.takeStaleQueued(3000, 10)).toEqual([]);
});
