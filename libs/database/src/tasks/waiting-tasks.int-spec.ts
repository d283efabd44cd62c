import { agentMessage, dataPart, type Part, TaskState, textPart } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { WaitingTask } from '../index.js';
import { newTask, openStores, sql, startTask, status, type Stores } from '../stores.fixture.js';

const { TASK_STATE_INPUT_REQUIRED: INPUT, TASK_STATE_AUTH_REQUIRED: AUTH } = TaskState;

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

/** A task that asks. @param at of its status, in seconds: the order of the list */
async function ask(
  tenantId: string,
  at: number,
  more: { owner?: string; parent?: string; state?: TaskState; parts?: Part[] } = {},
): Promise<string> {
  const { owner, parent, state = INPUT, parts = [textPart('May I?')] } = more;
  const run = await startTask(stores, {
    ...newTask({ tenantId, text: `about ${at}` }),
    ...(owner !== undefined && { owner }),
  });
  const said = agentMessage(run.snapshot.task, 'm', parts);
  const end = { state, outcome: null, artifacts: undefined };
  await stores.runs.append(run, { afterSequence: 2, events: [status(run, state, said)], end });
  const set = `status_at = to_timestamp(${1e9 + at})${parent === undefined ? '' : `, parent_task_id = '${parent}'`}`;
  await sql(stores, `UPDATE tasks SET ${set} WHERE id = '${run.taskId}'`);
  return run.taskId;
}

const idsOf = ({ tasks }: { tasks: WaitingTask[] }): string[] => tasks.map(({ task }) => task.id);

describe('the tasks that wait', () => {
  it('are listed the oldest first, page by page, with how each began and what it asks', async () => {
    const tenantId = randomUUID();
    const third = await ask(tenantId, 3);
    const first = await ask(tenantId, 1, { state: AUTH });
    const second = await ask(tenantId, 2);
    await startTask(stores, newTask({ tenantId }));
    await ask(randomUUID(), 1);
    const filter = { tenantId, pageSize: 2 };
    const page = await stores.tasks.listWaiting(filter);
    expect([idsOf(page), page.more]).toEqual([[first, second], true]);
    expect(page.tasks[0]).toMatchObject({
      firstMessage: 'about 1',
      task: { status: { state: AUTH, message: { parts: [textPart('May I?')] } } },
    });
    const statusAt = new Date((1e9 + 2) * 1000);
    const rest = await stores.tasks.listWaiting({ ...filter, after: { statusAt, taskId: second } });
    expect([idsOf(rest), rest.more]).toEqual([[third], false]);
    expect(idsOf(await stores.tasks.listWaiting({ ...filter, state: AUTH }))).toEqual([first]);
    expect(idsOf(await stores.tasks.listWaiting({ ...filter, state: TaskState.TASK_STATE_WORKING }))).toEqual(
      [],
    );
  });

  it('are those of an owner, and those without one', async () => {
    const tenantId = randomUUID();
    const mine = await ask(tenantId, 2, { owner: 'token:1' });
    const nobodys = await ask(tenantId, 1);
    await ask(tenantId, 3, { owner: 'token:2' });
    const own = { owner: 'token:1', unowned: true };
    expect(idsOf(await stores.tasks.listWaiting({ tenantId, pageSize: 9, own }))).toEqual([nobodys, mine]);
    expect(
      idsOf(await stores.tasks.listWaiting({ tenantId, pageSize: 9, own: { ...own, unowned: false } })),
    ).toEqual([mine]);
  });

  it('have those that other agents have begun if they may ask for an approval, with what the parent asks', async () => {
    const tenantId = randomUUID();
    const approval = { callId: 'call-1', tool: 'pay', description: '', input: {} };
    const parent = await ask(tenantId, 1);
    await ask(tenantId, 2, { parent });
    const child = await ask(tenantId, 3, { parent, parts: [dataPart({ approval })] });
    const { tasks } = await stores.tasks.listWaiting({ tenantId, pageSize: 9 });
    expect(tasks.map(({ task }) => task.id)).toEqual([parent, child]);
    expect(tasks.map((each) => each.parent)).toMatchObject([
      undefined,
      { taskId: parent, status: { state: INPUT, message: { parts: [textPart('May I?')] } } },
    ]);
  });
});
