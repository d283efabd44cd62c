import { TaskState } from '@baton/a2a';
import { newTask, openStores, sql, startTask, status, type Stores } from '../stores.fixture.js';
import type { WaitReminders } from './records.js';
import { TaskReminderStore } from './task-reminder.store.js';

let stores: Stores;
let reminders: TaskReminderStore;
beforeAll(async () => {
  stores = await openStores();
  reminders = new TaskReminderStore(stores.database);
});
afterAll(() => stores.close());

const HOUR_MS = 3_600_000;

/** A task that asks, and tells webhooks after these times. */
async function asking(after?: WaitReminders) {
  const run = await startTask(stores, newTask());
  const state = TaskState.TASK_STATE_INPUT_REQUIRED;
  const end = { state, outcome: null, ...(after && { reminders: after }) };
  await stores.runs.append(run, { afterSequence: 2, events: [status(run, state)], end });
  return run;
}
/** As if the task had asked so long ago. */
const age = ({ taskId }: { taskId: string }, hours: number) =>
  sql(
    stores,
    `UPDATE tasks SET status_at = status_at - ${hours} * interval '1 hour', reminds_at = reminds_at - ${hours} * interval '1 hour' WHERE id = '${taskId}'`,
  );
const kinds = async () => (await reminders.claim(10)).map(({ taskId, kind }) => [taskId, kind]);

describe('a task that waits for a person', () => {
  it('is reminded of once and escalated once, each when it is time', async () => {
    await asking();
    const task = await asking({ remindMs: HOUR_MS, escalateMs: 3 * HOUR_MS });
    expect(await kinds()).toEqual([]);
    await age(task, 1);
    const [reminder] = await reminders.claim(10);
    expect(reminder).toMatchObject({
      tenantId: task.tenantId,
      taskId: task.taskId,
      kind: 'reminder',
      notified: [],
    });
    await reminders.note(reminder!, ['a'], true);
    await age(task, 1);
    expect(await kinds()).toEqual([]);
    await age(task, 1);
    const [escalation] = await reminders.claim(10);
    expect(escalation).toMatchObject({ taskId: task.taskId, kind: 'escalation', notified: [] });
    await reminders.note(escalation!, ['a'], true);
    await age(task, 1_000);
    expect(await kinds()).toEqual([]);
  });

  it('is due again if the worker has died, and remembers who was told', async () => {
    const task = await asking({ remindMs: HOUR_MS });
    await age(task, 1);
    expect(await kinds()).toEqual([[task.taskId, 'reminder']]);
    expect(await kinds()).toEqual([]);
    await sql(stores, `UPDATE tasks SET reminds_at = now() WHERE id = '${task.taskId}'`);
    const [again] = await reminders.claim(10);
    await reminders.note(again!, ['a'], false);
    await sql(stores, `UPDATE tasks SET reminds_at = now() WHERE id = '${task.taskId}'`);
    const [third] = await reminders.claim(10);
    expect(third).toMatchObject({ kind: 'reminder', notified: ['a'] });
    await reminders.note(third!, ['a', 'b'], true);
    expect(await sql(stores, `SELECT reminds_at, reminder FROM tasks WHERE id = '${task.taskId}'`)).toEqual([
      { reminds_at: null, reminder: null },
    ]);
  });

  it('is escalated when it is time, also if no receiver has taken the reminder', async () => {
    const task = await asking({ remindMs: HOUR_MS, escalateMs: 2 * HOUR_MS });
    await age(task, 1);
    const [reminder] = await reminders.claim(10);
    await age(task, 1);
    expect(await kinds()).toEqual([[task.taskId, 'escalation']]);
    // The worker that was late with the reminder changes nothing.
    await reminders.note(reminder!, ['a'], true);
    await sql(stores, `UPDATE tasks SET reminds_at = now() WHERE id = '${task.taskId}'`);
    expect(await kinds()).toEqual([[task.taskId, 'escalation']]);
    await sql(stores, `UPDATE tasks SET reminds_at = NULL WHERE id = '${task.taskId}'`);
  });

  it('is not spoken of after its end', async () => {
    const task = await asking({ escalateMs: HOUR_MS });
    await age(task, 1);
    await stores.tasks.cancel(task.tenantId, null, task.taskId);
    expect(await kinds()).toEqual([]);
    expect(await sql(stores, `SELECT reminds_at FROM tasks WHERE id = '${task.taskId}'`)).toEqual([
      { reminds_at: null },
    ]);
  });
});
