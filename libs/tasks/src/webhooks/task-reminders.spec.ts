import { TaskState } from '@baton/a2a';
import type { NotifiedWebhook, TaskReminder } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { TaskReminders } from './task-reminders.js';
import type { WebhookNotice } from './webhook-notices.js';

const { TASK_STATE_INPUT_REQUIRED, TASK_STATE_WORKING, TASK_STATE_FAILED } = TaskState;
const SINCE = new Date('2026-11-28T10:00:00.000Z');

const reminder = (changes: Partial<TaskReminder> = {}): TaskReminder => ({
  tenantId: 't',
  taskId: 'task',
  agentId: 'id-of-payer',
  agentSlug: 'payer',
  kind: 'reminder',
  since: SINCE,
  notified: ['w0'],
  ...changes,
});

/** The notice of a reminder, for a task whose status is this one. */
async function noticeOf(
  due: TaskReminder,
  status: object = { state: TASK_STATE_INPUT_REQUIRED, timestamp: SINCE.toISOString() },
): Promise<WebhookNotice | undefined> {
  let notice: WebhookNotice | undefined;
  const stored = { sequence: 7, task: { id: 'task', contextId: 'c', status } };
  const webhooks = {
    sendDue: async (_: unknown, make: (each: TaskReminder) => Promise<WebhookNotice | undefined>) => {
      notice = await make(due);
    },
  };
  const reminders = new TaskReminders(
    {} as never,
    { get: () => Promise.resolve(stored) } as never,
    webhooks as never,
    { publicUrl: 'https://baton.example' },
    { on: () => undefined } as never,
    Logger.silent(),
  );
  await reminders.runOnce();
  return notice;
}

const webhook = (agents: string[], states: TaskState[]): NotifiedWebhook =>
  ({ id: 'w', agents, states }) as unknown as NotifiedWebhook;

describe('the notice of a task that waits for a person', () => {
  it('is sent again with the same id and body, which differ by webhook and by kind', async () => {
    const first = (await noticeOf(reminder()))!;
    expect([first.tenantId, first.notified]).toEqual(['t', ['w0']]);
    const request = first.requestFor('w1');
    expect(request).toEqual((await noticeOf(reminder()))!.requestFor('w1'));
    expect(request).toMatchObject({ id: 'task:reminder:webhook%3Aw1:7', taskId: 'task' });
    expect(JSON.parse(String(request.body))).toMatchObject({
      type: 'task.state_changed',
      data: { webhook_id: 'w1', agent: 'payer', reminder: true, waiting_since: SINCE.toISOString() },
    });
    const escalation = (await noticeOf(reminder({ kind: 'escalation' })))!.requestFor('w1');
    expect(escalation.id).toBe('task:escalation:webhook%3Aw1:7');
    expect(JSON.parse(String(escalation.body))).toMatchObject({ type: 'task.escalation' });
    expect(first.requestFor('w2').id).not.toBe(request.id);
  });

  it('is for webhooks of the agent and of the state; an escalation is for all of the agent', async () => {
    const wants = async (due: TaskReminder, ...[agents, states]: Parameters<typeof webhook>) =>
      (await noticeOf(due))!.isFor(webhook(agents, states));
    const [due, escalation] = [reminder(), reminder({ kind: 'escalation' })];
    expect(await wants(due, [], [])).toBe(true);
    expect(await wants(due, ['payer'], [TASK_STATE_INPUT_REQUIRED])).toBe(true);
    expect(await wants(due, ['other'], [])).toBe(false);
    expect(await wants(due, [], [TASK_STATE_FAILED])).toBe(false);
    expect(await wants(escalation, [], [TASK_STATE_FAILED])).toBe(true);
    expect(await wants(escalation, ['other'], [])).toBe(false);
    expect(await wants(reminder({ agentSlug: null }), ['id-of-payer'], [])).toBe(true);
  });

  it('is not made for a task that was answered or asks something else', async () => {
    const timestamp = SINCE.toISOString();
    expect(await noticeOf(reminder(), { state: TASK_STATE_WORKING, timestamp })).toBeUndefined();
    const later = { state: TASK_STATE_INPUT_REQUIRED, timestamp: '2026-11-28T10:00:00.001Z' };
    expect(await noticeOf(reminder(), later)).toBeUndefined();
  });
});
