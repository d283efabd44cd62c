import { randomUUID } from 'node:crypto';
import { JournalStore } from '../index.js';
import {
  endTurn,
  newTask,
  openStores,
  saidIn,
  startTask,
  type Stores,
  textMessage,
} from '../stores.fixture.js';
import { type Message, TaskState } from '@baton/a2a';
import { type JournalCopy, TaskForkStore } from './task-fork.store.js';

let stores: Stores;
let journal: JournalStore;
let forks: TaskForkStore;
beforeAll(async () => {
  stores = await openStores(4);
  journal = new JournalStore(stores.database, stores.runs);
  forks = new TaskForkStore(stores.database);
});
afterAll(() => stores.close());

/** A task of two turns, each with two entries in the journal. */
async function twoTurns() {
  const first = await startTask(stores);
  const { tenantId, taskId } = first;
  for (const position of [1, 2]) await journal.append(first, position, `first ${position}`);
  await endTurn(stores, first, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
  const runId = randomUUID();
  const message = textMessage('more');
  await stores.tasks.continue({ tenantId, taskId, agentId: 'echo', runId, message, extensions: [] });
  const second = (await stores.runs.claim(tenantId, runId, 'worker', 30_000))!;
  for (const position of [3, 4]) await journal.append(second, position, `second ${position}`);
  return { tenantId, first, second };
}

describe('the journal of a fork', () => {
  it('has the entries of its origin, and takes over those of the turn that it continues', async () => {
    const { tenantId, first, second } = await twoTurns();
    const taskId = randomUUID();
    const copy: JournalCopy = {
      tenantId,
      source: { taskId: first.taskId, runId: second.runId },
      taskId,
      origin: 'origin',
      dropped: [2],
      changed: [{ position: 4, value: 'changed' }],
      added: 'added',
    };
    const bytes = await forks.copyJournal(copy);
    const expected = [
      { runId: taskId, position: 1, value: 'origin' },
      { runId: first.runId, position: 2, value: 'first 1' },
      { runId: taskId, position: 3, value: 'second 3' },
      { runId: taskId, position: 4, value: 'changed' },
      { runId: taskId, position: 5, value: 'added' },
    ];
    expect(await journal.read(tenantId, taskId)).toEqual(expected);
    // A repeated call, as after a crash.
    expect(await forks.copyJournal({ ...copy, origin: 'another' })).toBe(bytes);
    expect(await journal.read(tenantId, taskId)).toEqual(expected);
  });

  it('continues the last turn of its origin, or the one that is named', async () => {
    const { tenantId, first, second } = await twoTurns();
    const said = (turn?: { runId: string; message: Message }) => [
      turn?.runId,
      turn && saidIn([turn.message]),
    ];
    expect(said(await forks.lastTurn(tenantId, first.taskId))).toEqual([second.runId, ['more']]);
    expect(said(await forks.turn(tenantId, first.taskId, first.runId))).toEqual([first.runId, ['hello']]);
    expect(await forks.turn(tenantId, randomUUID(), first.runId)).toBeUndefined();
  });

  it('is known by the entry at its beginning, not by a later one', async () => {
    const run = await startTask(stores);
    const firstEntry = () => forks.firstEntry(run.tenantId, run.taskId);
    await journal.append(run, 2, 'later');
    expect(await firstEntry()).toBeUndefined();
    await journal.append(run, 1, 'first');
    expect(await firstEntry()).toBe('first');
  });

  it('is discarded if its task was not made, and only then', async () => {
    const { tenantId, first } = await twoTurns();
    const made = newTask({ tenantId });
    const copyTo = (taskId: string) =>
      forks.copyJournal({
        tenantId,
        source: { taskId: first.taskId, runId: first.runId },
        taskId,
        origin: 'origin',
        dropped: [],
        changed: [],
      });
    const unmade = randomUUID();
    await Promise.all([copyTo(made.task.id), copyTo(unmade)]);
    await stores.tasks.create(made);
    await Promise.all([forks.discard(tenantId, made.task.id), forks.discard(tenantId, unmade)]);
    expect(await journal.read(tenantId, made.task.id)).toHaveLength(5);
    expect(await journal.read(tenantId, unmade)).toEqual([]);
  });
});
