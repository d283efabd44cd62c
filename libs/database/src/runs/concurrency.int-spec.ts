import { TaskState, isInterrupted, isTerminal } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { Random } from '../../../../test/chaos/random.js';
import type { ClaimedRun, NewTask } from '../index.js';
import {
  beat,
  chunk,
  crashText,
  endTurn,
  newTask,
  openStores,
  sql,
  status,
  type Stores,
  textMessage,
} from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING } = TaskState;
/** So short that leases keep running out under the workers. */
const LEASE_MS = 20;
const WORKERS = 8;
/** What each of them does follows from it; who comes first does not. */
const SEED = process.env.SEED ?? 'concurrency';

/** What the workers do to each other, and how often at the least: a fraction of what a slow machine has shown. */
const FLOORS = { claimed: 20, written: 8, refused: 8, ended: 8, reclaimed: 8, continued: 5, canceled: 1 };
type Deed = keyof typeof FLOORS;
const done = new Map<Deed, number>();
const note = (deed: Deed, times = 1): void => void done.set(deed, (done.get(deed) ?? 0) + times);

/** A worker that claims what it can get, writes, ends, hands back, or just forgets what it holds. */
async function work(
  random: Random,
  tasks: (ReturnType<typeof newTask> & Pick<NewTask, 'retry'>)[],
  runIds: string[],
  steps: number,
): Promise<void> {
  const pick = <T>(list: readonly T[]): T => random.pick(list);
  const held: { run: ClaimedRun; head: number }[] = [];
  const ofHeld = async (act: (mine: (typeof held)[number]) => Promise<unknown>): Promise<void> => {
    if (held.length > 0) await act(pick(held));
  };
  const claim = async (): Promise<void> => {
    const latest = runIds.slice(-2 * tasks.length);
    const run = await stores.runs.claim(tasks[0]!.tenantId, pick(latest), 'w', LEASE_MS);
    if (!run) return;
    note('claimed');
    held.push({ run, head: run.snapshot.sequence });
  };
  const append = async (): Promise<void> =>
    ofHeld(async (mine) => {
      const said = status(mine.run, TASK_STATE_WORKING, textMessage('going on'));
      const batch = { afterSequence: mine.head, events: [chunk(mine.run, 'x'), said], metadata: { a: 1 } };
      const { ok } = await stores.runs.append(mine.run, batch);
      note(ok ? 'written' : 'refused');
      if (ok) mine.head += 2;
      // Some continue with what they have lost.
      else if (random.chance(0.5)) held.splice(held.indexOf(mine), 1);
    });
  const actions = [
    claim,
    claim,
    append,
    append,
    async () =>
      ofHeld(async ({ run, head }) => {
        const states = [TASK_STATE_COMPLETED, ...Array<TaskState>(3).fill(TASK_STATE_INPUT_REQUIRED)];
        const { ok } = await endTurn(stores, run, head, pick(states));
        note(ok ? 'ended' : 'refused');
      }),
    async () => ofHeld(async ({ run }) => stores.runs.returnToQueue(run)),
    async () =>
      beat(
        stores,
        held.map(({ run }) => run),
        'w',
        LEASE_MS,
      ),
    async () => {
      const reclaimed = await stores.runs.reclaimExpired(10, (await stores.runs.findWork(60_000)).at);
      note('reclaimed', reclaimed.length);
    },
    async () => stores.runs.failPoisoned(10, (await stores.runs.findWork(60_000)).at, crashText),
    // As if the pauses after their crashes were over.
    async () => {
      // It leaves rows alone that others have: the platform's statements lock runs in an order of their own.
      await sql(
        stores,
        `UPDATE runs SET not_before = now() - interval '1 ms'
         WHERE id IN (SELECT id FROM runs WHERE not_before IS NOT NULL FOR UPDATE SKIP LOCKED)`,
      );
      await stores.dispatch.dispatch([{ tenantId: tasks[0]!.tenantId, slots: 10, maxInFlight: null }], 10);
    },
    async () => stores.runs.takeStaleQueued(0, 10),
    async () => {
      const { tenantId, agentId, task, retry } = pick(tasks);
      const runId = randomUUID();
      const turn = {
        ...(retry && { retry }),
        tenantId,
        agentId,
        taskId: task.id,
        runId,
        message: textMessage('next'),
        extensions: [],
      };
      if (!(await stores.tasks.continue(turn)).ok) return;
      note('continued');
      runIds.push(runId);
    },
    async () => {
      const { tenantId, agentId, task } = pick(tasks);
      if (random.chance(0.05) && (await stores.tasks.cancel(tenantId, agentId, task.id)).ok) note('canceled');
    },
  ];
  for (let step = 0; step < steps; step++) await pick(actions)();
}

it('whatever happens at once, logs have no holes, the end is final and there is one active run', async () => {
  const tenantId = randomUUID();
  // Every other run is given up after a few crashes, the rest are not.
  const retry = { maxAttempts: 100, backoff: { initialMs: 0, factor: 1, maxMs: 0 } };
  const tasks = Array.from({ length: 16 }, (_, i) => ({ ...newTask({ tenantId }), ...(i % 2 && { retry }) }));
  await Promise.all(tasks.map((task) => stores.tasks.create(task)));
  const runIds = tasks.map(({ runId }) => runId);
  const workers = Array.from({ length: WORKERS }, (_, i) => new Random(SEED).fork(i));
  await Promise.all(workers.map((random) => work(random, tasks, runIds, 150)));
  for (const { task } of tasks) {
    const log = await stores.tasks.readEvents(tenantId, task.id, 0, 10_000);
    const stored = await stores.tasks.get(tenantId, task.id);
    expect(log.map(({ sequence }) => sequence)).toEqual(log.map((_, i) => i + 1));
    expect(stored?.sequence).toBe(log.length);
    const states = log.flatMap(({ payload }) =>
      payload.$case === 'statusUpdate' ? [payload.value.status!.state] : [],
    );
    expect(states.slice(0, -1).some(isTerminal)).toBe(false);
    if (states.length > 0) expect(stored?.task.status?.state).toBe(states.at(-1));
    const active = await sql(
      stores,
      `SELECT 1 FROM runs WHERE task_id = '${task.id}' AND state IN ('queued', 'running', 'suspended')`,
    );
    const state = stored!.task.status!.state;
    expect(active).toHaveLength(isTerminal(state) || isInterrupted(state) ? 0 : 1);
  }
  // Otherwise it would have shown nothing.
  const rare = (Object.keys(FLOORS) as Deed[]).filter((deed) => (done.get(deed) ?? 0) < FLOORS[deed]);
  expect({ rare, done: Object.fromEntries(done) }).toMatchObject({ rare: [] });
});
