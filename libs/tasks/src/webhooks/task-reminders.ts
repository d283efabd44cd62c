import { isInterrupted } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type TaskReminder, TaskReminderStore, TaskStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { reminderBody } from '../push/webhook-payload.js';
import { WebhookNotices } from './webhook-notices.js';

/** Reminders of one look. */
const SLICE = 20;

/**
 * Reminds of tasks that wait for a person, and escalates them: `reminders` of the agent says after which time. The webhooks of the tenant
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
    for (;;) {
      const due = await this.store.claim(SLICE);
      await Promise.all(due.map((reminder) => this.tell(reminder)));
      if (due.length < SLICE) return;
    }
  }

  private async tell(reminder: TaskReminder): Promise<void> {
    const { tenantId, taskId, since, kind, agentId, agentSlug, notified } = reminder;
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    const status = stored?.task.status;
    // It was answered meanwhile. The next status clears what is due.
    if (!stored || !status || !isInterrupted(status.state)) return;
    if (Date.parse(status.timestamp ?? '') !== since.getTime()) return;
    const { publicUrl } = this.environment;
    const told = await this.webhooks.tell({
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
    });
    await this.store.note(reminder, told.notified, told.isDone);
  }
}
