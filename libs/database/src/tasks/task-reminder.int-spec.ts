import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { newTask, openStores, sql, startTask, status, type Stores, textMessage } from '../stores.fixture.js';
import { TaskTreeStore } from '../delegation/task-tree.store.js';
import type { WaitReminders } from './task-records.js';
import { TaskReminderStore } from './task-reminder.store.js';

let stores: Stores;
let reminders: TaskReminderStore;
let taskTree: TaskTreeStore;
beforeAll(async () => {
  stores = await openStores();
  reminders = new TaskReminderStore(stores.database);
  taskTree = new TaskTreeStore(stores.database);
});
afterAll(() => stores.close());

const HOUR_MS = 3_600_000;

/** A task that asks, and notifies webhooks after these times. */
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
const shown = async ({ tenantId, taskId }: { tenantId: string; taskId: string }) =>
  (await taskTree.find(tenantId, taskId)).reminders;
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

  it('shows what is due and what was sent, until it has its answer', async () => {
    const at = expect.any(Date) as Date;
    const none = { dueAt: null, sentAt: null, webhooks: 0 };
    expect(await shown(await asking())).toEqual([]);
    const task = await asking({ remindMs: HOUR_MS, escalateMs: 3 * HOUR_MS });
    const [due, later] = await shown(task);
    expect([due, later]).toEqual([
      { ...none, kind: 'reminder', dueAt: at },
      { ...none, kind: 'escalation', dueAt: at },
    ]);
    expect(Number(later?.dueAt) - Number(due?.dueAt)).toBeGreaterThan(HOUR_MS);
    await age(task, 1);
    const [reminder] = await reminders.claim(10);
    await reminders.note(reminder!, ['a'], false);
    const [halfSent] = await shown(task);
    expect(halfSent).toEqual({ kind: 'reminder', dueAt: at, sentAt: at, webhooks: 1 });
    // The next try notifies no other webhook.
    await reminders.note({ ...reminder!, notified: ['a'] }, ['a'], false);
    expect((await shown(task))[0]?.sentAt).toEqual(halfSent?.sentAt);
    await reminders.note({ ...reminder!, notified: ['a'] }, ['a', 'b'], true);
    const sent = { kind: 'reminder', dueAt: null, sentAt: at, webhooks: 2 };
    expect(await shown(task)).toEqual([sent, { ...none, kind: 'escalation', dueAt: at }]);
    await age(task, 2);
    const [escalation] = await reminders.claim(10);
    await reminders.note(escalation!, [], true);
    expect(await shown(task)).toEqual([sent, { ...none, kind: 'escalation', sentAt: at }]);
    await stores.tasks.cancel(task.tenantId, null, task.taskId);
    expect(await shown(task)).toEqual([]);
  });

  it('shows a reminder that only some webhooks have accepted after its escalation is due, and one that none has accepted', async () => {
    const at = expect.any(Date) as Date;
    const task = await asking({ remindMs: HOUR_MS, escalateMs: 2 * HOUR_MS });
    await age(task, 1);
    const [reminder] = await reminders.claim(10);
    await reminders.note(reminder!, ['a'], false);
    await age(task, 1);
    expect(await kinds()).toEqual([[task.taskId, 'escalation']]);
    expect(await shown(task)).toEqual([
      { kind: 'reminder', dueAt: null, sentAt: at, webhooks: 1 },
      { kind: 'escalation', dueAt: at, sentAt: null, webhooks: 0 },
    ]);
    // The last receiver has it as well, or there is no other: that is no other time.
    const half = await asking({ remindMs: HOUR_MS });
    await age(half, 1);
    const [due] = await reminders.claim(10);
    await reminders.note(due!, ['a'], false);
    const [shownHalf] = await shown(half);
    await delay(5);
    await reminders.note({ ...due!, notified: ['a'] }, ['a'], true);
    expect(await shown(half)).toEqual([{ ...shownHalf, dueAt: null }]);
    const untaken = await asking({ remindMs: HOUR_MS });
    await sql(
      stores,
      `UPDATE tasks SET reminds_at = NULL WHERE id IN ('${task.taskId}', '${untaken.taskId}')`,
    );
    expect(await shown(untaken)).toEqual([{ kind: 'reminder', dueAt: null, sentAt: null, webhooks: 0 }]);
  });

  it('is due again if the worker has died, and keeps the webhooks that were notified', async () => {
    const task = await asking({ remindMs: HOUR_MS });
    await age(task, 1);
    expect(await kinds()).toEqual([[task.taskId, 'reminder']]);
    expect(await kinds()).toEqual([]);
    await sql(
      stores,
      `UPDATE tasks SET reminds_at = now() - interval '1 second' WHERE id = '${task.taskId}'`,
    );
    const [again] = await reminders.claim(10);
    await reminders.note(again!, ['a'], false);
    await sql(
      stores,
      `UPDATE tasks SET reminds_at = now() - interval '1 second' WHERE id = '${task.taskId}'`,
    );
    const [third] = await reminders.claim(10);
    expect(third).toMatchObject({ kind: 'reminder', notified: ['a'] });
    await reminders.note(third!, ['a', 'b'], true);
    expect(await sql(stores, `SELECT reminds_at FROM tasks WHERE id = '${task.taskId}'`)).toEqual([
      { reminds_at: null },
    ]);
  });

  it('is tried twelve times, and then no more', async () => {
    const task = await asking({ remindMs: HOUR_MS });
    const again = `UPDATE tasks SET reminds_at = now() - interval '1 second' WHERE id = '${task.taskId}' AND reminds_at IS NOT NULL RETURNING id`;
    for (let tries = 0; tries < 12; tries += 1) {
      expect(await sql(stores, again)).toHaveLength(1);
      expect(await kinds()).toEqual([[task.taskId, 'reminder']]);
    }
    expect(await sql(stores, again)).toEqual([]);
  });

  it('is escalated when it is time, also if no receiver has taken the reminder', async () => {
    const task = await asking({ remindMs: HOUR_MS, escalateMs: 2 * HOUR_MS });
    await age(task, 1);
    const [reminder] = await reminders.claim(10);
    await age(task, 1);
    expect(await kinds()).toEqual([[task.taskId, 'escalation']]);
    // The worker that was late with the reminder changes nothing.
    await reminders.note(reminder!, ['a'], true);
    await sql(
      stores,
      `UPDATE tasks SET reminds_at = now() - interval '1 second' WHERE id = '${task.taskId}'`,
    );
    expect(await kinds()).toEqual([[task.taskId, 'escalation']]);
    await sql(stores, `UPDATE tasks SET reminds_at = NULL WHERE id = '${task.taskId}'`);
  });

  it('is escalated when it is time, also while a reminder waits longer for its next try', async () => {
    const task = await asking({ remindMs: HOUR_MS, escalateMs: HOUR_MS + 1_000 });
    await age(task, 1);
    expect(await kinds()).toEqual([[task.taskId, 'reminder']]);
    const escalates = `reminds_at = status_at + interval '1 hour 1 second' AS "onTime"`;
    expect(await sql(stores, `SELECT ${escalates} FROM tasks WHERE id = '${task.taskId}'`)).toEqual([
      { onTime: true },
    ]);
  });

  it('is reminded of its next question, also by a worker that is late with the notice of the one before', async () => {
    const first = await asking({ remindMs: HOUR_MS });
    await age(first, 1);
    const [late] = await reminders.claim(10);
    const { tenantId, taskId, agentId } = first;
    const runId = randomUUID();
    await stores.tasks.continue({
      tenantId,
      taskId,
      agentId,
      runId,
      message: textMessage('more'),
      extensions: [],
    });
    const next = (await stores.runs.claim(tenantId, runId, 'w', 30_000))!;
    const state = TaskState.TASK_STATE_INPUT_REQUIRED;
    await stores.runs.append(next, {
      afterSequence: next.snapshot.sequence,
      events: [status(next, state)],
      end: { state, outcome: null, reminders: { remindMs: HOUR_MS } },
    });
    await reminders.note(late!, ['a'], true);
    expect(await shown(next)).toEqual([
      { kind: 'reminder', dueAt: expect.any(Date) as Date, sentAt: null, webhooks: 0 },
    ]);
    await age(next, 1);
    expect(await kinds()).toEqual([[taskId, 'reminder']]);
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
