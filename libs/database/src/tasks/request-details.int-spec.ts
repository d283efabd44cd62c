import { type RequestDetails, SendMessageRequest, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { DeadLetterStore, type NewTask } from '../index.js';
import { endTurn, newTask, openStores, sql, type Stores, startTask, textMessage } from '../stores.fixture.js';

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const detailsOf = (json: object): RequestDetails => {
  const { metadata, configuration } = SendMessageRequest.fromJSON(json);
  return { metadata, configuration };
};
const NONE = detailsOf({});
const details = detailsOf({
  metadata: { 'a "b"': '\\ {é}' },
  configuration: { acceptedOutputModes: ['a/b'] },
});
const others = detailsOf({ metadata: { turn: 2 }, configuration: { historyLength: 0 } });
const key = () => ({ hash: Buffer.from(randomUUID()), content: null, hours: 1 });
const alias = () => ({ profile: 'orloj', clientId: randomUUID() });

/** Bytes that the task is counted with, and those that it has. */
async function bytesOf(taskId: string): Promise<[number, number]> {
  const [row] = (await sql(
    stores,
    `SELECT t.stored_bytes::int AS counted, (SELECT sum(octet_length(m.message::text) + coalesce(octet_length(m.request::text), 0))::int
       FROM task_messages m WHERE m.task_id = t.id) AS stored FROM tasks t WHERE t.id = '${taskId}'`,
  )) as [{ counted: number; stored: number }];
  return [row.counted, row.stored];
}

describe('the members of a request beside its message', () => {
  it.each<[string, () => Partial<NewTask>]>([
    ['a task', () => ({})],
    ['a task with a key', () => ({ key: key() })],
    ['a task with an id of its caller', () => ({ alias: alias() })],
    ['a task with an id of its caller and a key', () => ({ alias: alias(), key: key() })],
    ['a task of a tenant with limits', () => ({ quota: LIMITS })],
  ])('is stored with %s, counted, and claimed with the run, by each attempt', async (_what, more) => {
    const input = { ...newTask(), ...more(), details };
    const run = await startTask(stores, input);
    expect(run.details).toEqual(details);
    const [counted, stored] = await bytesOf(run.taskId);
    expect(counted).toBe(stored);
    expect(await stores.runs.returnToQueue(run)).toMatchObject({ runId: run.runId });
    const again = await stores.runs.claim(run.tenantId, run.runId, 'another', 1_000);
    expect(again).toMatchObject({ attempt: 2, details });
    const letters = new DeadLetterStore(stores.database);
    expect((await letters.readMessage(run.tenantId, run.runId))?.details).toEqual(details);
    // No reader of the task sees it.
    expect(JSON.stringify(await stores.tasks.get(run.tenantId, run.taskId))).not.toContain('a/b');
  });

  it('is there for a worker for which the run was claimed as it was made', async () => {
    const input = { ...newTask(), details, claimFor: { workerId: 'mine', leaseMs: 30_000 } };
    expect(await stores.tasks.create(input)).toMatchObject({ claimed: expect.any(String) });
    const run = await stores.runs.readEagerRun(input.tenantId, input.runId, 'mine', 1);
    expect(run?.details).toEqual(details);
  });

  it('is that of each turn, with a key and without', async () => {
    const first = await startTask(stores, { ...newTask(), details });
    await endTurn(stores, first, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
    const { tenantId, taskId } = first;
    const before = await bytesOf(taskId);
    const next = { tenantId, taskId, agentId: 'echo', extensions: [], message: textMessage('more') };
    const keyed = { ...next, runId: randomUUID(), details: others, key: key() };
    expect(await stores.tasks.continue(keyed)).toMatchObject({ ok: true });
    const second = (await stores.runs.claim(tenantId, keyed.runId, 'w', 1_000))!;
    expect(second.details).toEqual(others);
    const after = await bytesOf(taskId);
    expect(after[0] - before[0]).toBe(after[1] - before[1]);
    await endTurn(stores, second, second.snapshot.sequence, TaskState.TASK_STATE_INPUT_REQUIRED);
    const bare = { ...next, runId: randomUUID() };
    expect(await stores.tasks.continue(bare)).toMatchObject({ ok: true });
    expect((await stores.runs.claim(tenantId, bare.runId, 'w', 1_000))?.details).toEqual(NONE);
    expect(await stores.tasks.firstDetails(tenantId, taskId)).toEqual(details);
    expect(await stores.tasks.firstDetails(tenantId, randomUUID())).toBeUndefined();
  });

  it('comes with a large one by the second read of the claim', async () => {
    const large = detailsOf({ metadata: { large: 'x'.repeat(200_000) } });
    const run = await startTask(stores, { ...newTask(), details: large });
    expect(run.details).toEqual(large);
    expect(run.message.parts).toHaveLength(1);
  });
});

const LIMITS = { maxInFlight: 5, maxWaiting: 5, maxStoredBytes: 1_000_000, exact: true };
