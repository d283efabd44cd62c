import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { OPERATOR_ACTOR } from '../audit/audit-records.js';
import type { NewTask } from '../index.js';
import {
  endTurn,
  newTask,
  openStores,
  saidIn,
  sql,
  startTask,
  type Stores,
  textMessage,
} from '../stores.fixture.js';
import { DeadLetterStore } from './dead-letter.store.js';

let stores: Stores;
let letters: DeadLetterStore;
beforeAll(async () => {
  stores = await openStores();
  letters = new DeadLetterStore(stores.database);
});
afterAll(() => stores.close());

/** A run that has used up its attempts. */
async function deadRun(input: NewTask = newTask()) {
  const run = await startTask(stores, input);
  const { tenantId, runId, taskId } = run;
  await sql(
    stores,
    `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
     VALUES ('${tenantId}', '${runId}', '${taskId}', 'echo', 'given up', 3)`,
  );
  return run;
}
const records = ({ tenantId }: { tenantId: string }) =>
  sql(stores, `SELECT action FROM audit_records WHERE tenant_id = '${tenantId}'`);

describe('the redelivery of a dead letter', () => {
  it('makes the same task when it is requested again before its task is there, also by a call for one more', async () => {
    const { tenantId, runId } = await deadRun();
    const [first, second] = [randomUUID(), randomUUID()];
    expect(await letters.reserve(tenantId, runId, first, false)).toMatchObject({ redeliveredTaskId: first });
    expect(await letters.reserve(tenantId, runId, second, false)).toMatchObject({ redeliveredTaskId: first });
    expect(await letters.reserve(tenantId, runId, second, true)).toMatchObject({ redeliveredTaskId: first });
  });

  it('makes another task after the first one only if one more is requested', async () => {
    const { tenantId, runId } = await deadRun();
    const [first, second] = [randomUUID(), randomUUID()];
    await letters.reserve(tenantId, runId, first, false);
    await letters.confirm(tenantId, runId, first, OPERATOR_ACTOR);
    expect(await letters.reserve(tenantId, runId, second, false)).toMatchObject({
      redeliveredAt: expect.any(Date) as Date,
      redeliveredTaskId: first,
    });
    expect(await letters.reserve(tenantId, runId, second, true)).toMatchObject({
      redeliveredAt: null,
      redeliveredTaskId: second,
    });
  });

  it('is in the audit log once, however many calls have made its task', async () => {
    const run = await deadRun();
    const { tenantId, runId } = run;
    const taskId = randomUUID();
    await letters.reserve(tenantId, runId, taskId, false);
    await letters.confirm(tenantId, runId, randomUUID(), OPERATOR_ACTOR);
    expect(await records(run)).toEqual([]);
    for (let calls = 0; calls < 2; calls += 1) {
      await letters.confirm(tenantId, runId, taskId, OPERATOR_ACTOR);
    }
    expect(await records(run)).toEqual([{ action: 'dead-letter.redeliver' }]);
  });
});

it('a dead letter has the message of its own turn', async () => {
  const first = await startTask(stores);
  const { tenantId, taskId } = first;
  await endTurn(stores, first, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
  const runId = randomUUID();
  const message = textMessage('more');
  await stores.tasks.continue({ tenantId, taskId, agentId: 'echo', runId, message, extensions: [] });
  const said = async (run: string) => saidIn([(await letters.readMessage(tenantId, run))!.message]);
  expect([await said(first.runId), await said(runId)]).toEqual([['hello'], ['more']]);
});

it('dead letters of one time are listed by their run, from page to page', async () => {
  const { tenantId } = newTask();
  const runs: string[] = [];
  for (let i = 0; i < 4; i++) runs.push((await deadRun(newTask({ tenantId }))).runId);
  await sql(stores, `UPDATE dead_letters SET died_at = '2026-01-01' WHERE tenant_id = '${tenantId}'`);
  const byRun = runs.toSorted().toReversed();
  const first = await letters.list(tenantId, { limit: 3 });
  expect(first.map(({ runId }) => runId)).toEqual(byRun.slice(0, 3));
  const rest = await letters.list(tenantId, { limit: 3, after: first.at(-1) });
  expect(rest.map(({ runId }) => runId)).toEqual(byRun.slice(3));
});
