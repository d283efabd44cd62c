import { TaskState } from '@baton/a2a';
import { endTurn, newTask, openStores, sql, startTask, type Stores, textMessage } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(() => stores.close());

const AGENT = { id: 'trial', slug: 'trial' };
const LIVE_MS = 60_000;

/** Starts a task of the agent with this version or code. */
async function begin(tenantId: string, version: { version?: number; code?: string }) {
  const run = await startTask(stores, newTask({ tenantId, agentId: AGENT.id }));
  await stores.runs.noteAgentVersion(run, version);
  return run;
}

it('a task has begun with the first version or code that one of its runs has noted', async () => {
  const run = await startTask(stores);
  const { tenantId, taskId } = run;
  const begunWith = () => stores.runs.begunWith(tenantId, taskId);
  expect(await begunWith()).toBeUndefined();
  await endTurn(stores, run, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
  for (const [version, afterSequence] of [
    [3, 4],
    [4, 6],
  ] as const) {
    const next = { ...newTask({ tenantId }), taskId, message: textMessage('more') };
    expect(await stores.tasks.continue(next)).toMatchObject({ ok: true });
    const claimed = (await stores.runs.claim(tenantId, next.runId, 'worker', LIVE_MS))!;
    await stores.runs.noteAgentVersion(claimed, { version });
    expect(await begunWith()).toMatchObject({ version: 3 });
    await endTurn(stores, claimed, afterSequence + 1, TaskState.TASK_STATE_INPUT_REQUIRED);
  }
});

describe('the open tasks of an agent', () => {
  it('are counted by the code with which they began, and whether a live worker has that code', async () => {
    const { tenantId } = await begin(newTask().tenantId, { code: 'old' });
    await begin(tenantId, { code: 'new' });
    await begin(tenantId, { code: 'new' });
    await begin(tenantId, { version: 3 });
    const ended = await begin(tenantId, { code: 'gone' });
    await endTurn(stores, ended, 2);
    await begin(newTask().tenantId, { code: 'of-another-tenant' });
    const worker = { host: 'h', pid: 1, concurrency: 1 };
    await stores.workers.reportCodes({ ...worker, id: 'w1' }, { trial: 'new', other: 'old' });
    const found = await stores.runs.openByVersion(tenantId, AGENT, LIVE_MS);
    expect(found.map(({ version, code, tasks, isInstalled }) => [version, code, tasks, isInstalled])).toEqual(
      [
        [null, 'old', 1, false],
        [null, 'new', 2, true],
        [3, null, 1, false],
      ],
    );
    const [oldest] = await sql(
      stores,
      `SELECT min(created_at) AS at FROM tasks WHERE tenant_id = '${tenantId}'`,
    );
    expect(found[0]?.oldestAt).toEqual((oldest as { at: Date }).at);
    await stores.workers.reportCodes({ ...worker, id: 'w2' }, { trial: 'old' });
    const both = await stores.runs.openByVersion(tenantId, AGENT, LIVE_MS);
    expect(both.map(({ isInstalled }) => isInstalled)).toEqual([true, true, false]);
    await sql(stores, `UPDATE workers SET seen_at = now() - interval '2 minutes' WHERE id = 'w1'`);
    const left = await stores.runs.openByVersion(tenantId, AGENT, LIVE_MS);
    expect(left.map(({ isInstalled }) => isInstalled)).toEqual([true, false, false]);
  });
});
