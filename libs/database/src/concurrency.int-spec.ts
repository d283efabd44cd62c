import { TaskState, isInterrupted, isTerminal } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { ClaimedRun } from './index.js';
import {
  type Stores,
  beat,
  chunk,
  endTurn,
  newTask,
  openStores,
  sql,
  status,
  textMessage,
} from './stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING } = TaskState;
/** So short that leases keep running out under the workers. */
const LEASE_MS = 5;
const pick = <T>(list: readonly T[]): T => list[Math.floor(Math.random() * list.length)]!;

/** A worker that claims what it can get, writes, ends, hands back, or just forgets what it holds. */
async function work(tasks: ReturnType<typeof newTask>[], runIds: string[], steps: number): Promise<void> {
  const held: { run: ClaimedRun; head: number }[] = [];
  const ofHeld = async (act: (mine: (typeof held)[number]) => Promise<unknown>): Promise<void> => {
    if (held.length > 0) await act(pick(held));
  };
  const actions = [
    async () => {
      const run = await stores.runs.claim(tasks[0]!.tenantId, pick(runIds), 'w', LEASE_MS);
      if (run) held.push({ run, head: run.cut.sequence });
    },
    async () =>
      ofHeld(async (mine) => {
        const said = status(mine.run, TASK_STATE_WORKING, textMessage('going on'));
        const batch = { afterSequence: mine.head, events: [chunk(mine.run, 'x'), said], metadata: { a: 1 } };
        if ((await stores.runs.append(mine.run, batch)).ok) mine.head += 2;
      }),
    async () =>
      ofHeld(async ({ run, head }) =>
        endTurn(
          stores,
          run,
          head,
          pick([TASK_STATE_COMPLETED, ...Array<TaskState>(3).fill(TASK_STATE_INPUT_REQUIRED)]),
        ),
      ),
    async () => ofHeld(async ({ run }) => stores.runs.handBack(run)),
    async () =>
      beat(
        stores,
        held.map(({ run }) => run),
        'w',
        LEASE_MS,
      ),
    async () => stores.runs.reclaimExpired(10, await stores.runs.proveWritable()),
    async () => stores.runs.failPoisoned(10, await stores.runs.proveWritable()),
    async () => stores.runs.takeOrphans(0, 10),
    async () => {
      const { tenantId, agentId, task } = pick(tasks);
      const runId = randomUUID();
      const turn = {
        tenantId,
        agentId,
        taskId: task.id,
        runId,
        message: textMessage('next'),
        extensions: [],
      };
      if ((await stores.tasks.continue(turn)).ok) runIds.push(runId);
    },
    async () => {
      const { tenantId, agentId, task } = pick(tasks);
      if (Math.random() < 0.1) await stores.tasks.cancel(tenantId, agentId, task.id);
    },
  ];
  for (let step = 0; step < steps; step++) await pick(actions)();
}

it('whatever happens at once, logs have no holes, the end is final and there is one active run', async () => {
  const tenantId = randomUUID();
  const tasks = Array.from({ length: 12 }, () => newTask({ tenantId }));
  await Promise.all(tasks.map((task) => stores.tasks.create(task)));
  const runIds = tasks.map(({ runId }) => runId);
  await Promise.all(Array.from({ length: 8 }, () => work(tasks, runIds, 150)));
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
});
