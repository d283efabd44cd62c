import { isInterrupted } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type TaskReminder, TaskReminderStore, TaskStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { reminderBody } from '../push/webhook-payload.js';
import { type WebhookNotice, WebhookNotices } from './webhook-notices.js';

/**
 * Reminds of tasks that wait for a person, and escalates them: `reminders` of the agent has the times. The webhooks of the tenant
 * get the event of the question again, with a mark, and then an event `task.escalation`. One worker does it for all (`SweepLeader`). A
 * receiver that does not answer is tried again later, with the same `webhook-id`.
 */
@Injectable()
export class TaskReminders extends RepeatedWork {
  constructor(
    private readonly store: TaskReminderStore,
    private readonly tasks: TaskStore,
    private readonly webhooks: WebhookNotices,
    @Inject(Environment) private readonly environment: Pick<Environment, 'publicUrl'>,
    leader: SweepLeader,
    logger: Logger,
  ) {
    super({ log: { name: 'The reminder of waiting tasks', logger } });
    leader.on('dueReminders', () => this.wake());
  }

  async runOnce(): Promise<void> {
    await this.webhooks.sendDue(this.store, (reminder) => this.noticeOf(reminder));
  }

  private async noticeOf(reminder: TaskReminder): Promise<WebhookNotice | undefined> {
    const { tenantId, taskId, since, kind, agentId, agentSlug, notified } = reminder;
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    const status = stored?.task.status;
    // It was answered meanwhile. The next status clears what is due.
    if (!stored || !status || !isInterrupted(status.state)) return undefined;
    if (Date.parse(status.timestamp ?? '') !== since.getTime()) return undefined;
    const { publicUrl } = this.environment;
    return {
      tenantId,
      notified,
      isFor: ({ agents, states }) =>
        (agents.length === 0 || agents.includes(agentSlug ?? agentId)) &&
        (kind === 'escalation' || states.length === 0 || states.includes(status.state)),
      requestFor: (webhookId) => ({
        id: `${taskId}:${kind}:webhook%3A${webhookId}:${stored.sequence}`,
        body: reminderBody({ ...reminder, webhookId, publicUrl }, stored.sequence, stored.task),
        taskId,
      }),
    };
  }
}
