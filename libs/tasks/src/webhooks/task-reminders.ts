import { isInterrupted, type TaskSnapshot } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type RemindedWebhook, type TaskReminder, TaskReminderStore, TaskStore } from '@baton/database';
import { LimitsService, PushSecrets } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import { clock, Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { callOnce } from '../push/call-once.js';
import { DeliverySigner } from '../push/delivery-signer.js';
import { reminderBody } from '../push/webhook-payload.js';

const EVERY_MS = 2_000;
const CALL_MS = 10_000;
/** Reminders of one look. */
const SLICE = 20;

/**
 * Reminds of tasks that wait for a person, and escalates them: `reminders` of the agent says after which time. The webhooks of the tenant
 * get the event of the question again, with a mark, and then an event `task.escalation`. One worker does it for all. A receiver that does
 * not answer is tried again later, with the same `webhook-id`.
 */
@Injectable()
export class TaskReminders extends RepeatedWork {
  constructor(
    private readonly store: TaskReminderStore,
    private readonly tasks: TaskStore,
    private readonly leader: SweepLeader,
    private readonly secrets: PushSecrets,
    private readonly signer: DeliverySigner,
    @Inject(LimitsService) private readonly limits: Pick<LimitsService, 'egress'>,
    @Inject(Outbound) private readonly outbound: Pick<Outbound, 'forTenant'>,
    @Inject(Environment) private readonly environment: Pick<Environment, 'publicUrl'>,
    private readonly logger: Logger,
  ) {
    super({ everyMs: EVERY_MS, log: { name: 'The reminder of waiting tasks', logger } });
  }

  async runOnce(): Promise<void> {
    if (!this.leader.isLeader) return;
    for (;;) {
      const due = await this.store.claim(SLICE);
      await Promise.all(due.map((reminder) => this.tell(reminder)));
      if (due.length < SLICE) return;
    }
  }

  private async tell(reminder: TaskReminder): Promise<void> {
    const { tenantId, taskId, since, notified } = reminder;
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    const state = stored?.task.status?.state;
    // It was answered meanwhile. The next status clears what is due.
    if (!stored || state === undefined || !isInterrupted(state)) return;
    if (Date.parse(stored.task.status?.timestamp ?? '') !== since.getTime()) return;
    const isFor = ({ agents, states }: RemindedWebhook): boolean =>
      (agents.length === 0 || agents.includes(reminder.agentSlug ?? reminder.agentId)) &&
      (reminder.kind === 'escalation' || states.length === 0 || states.includes(state));
    const left = (await this.store.webhooks(tenantId))
      .filter(isFor)
      .filter(({ id }) => !notified.includes(id));
    const answers = await Promise.all(left.map((webhook) => this.deliver(webhook, reminder, stored)));
    const told = left.filter((_, i) => answers[i]);
    await this.store.note(reminder, [...notified, ...told.map(({ id }) => id)], told.length === left.length);
  }

  /** @returns whether the receiver has taken it */
  private async deliver(
    webhook: RemindedWebhook,
    reminder: TaskReminder,
    { task, sequence }: TaskSnapshot,
  ): Promise<boolean> {
    const { tenantId, taskId, kind } = reminder;
    const { id: webhookId, url } = webhook;
    try {
      const body = reminderBody(
        { ...reminder, webhookId, publicUrl: this.environment.publicUrl },
        sequence,
        task,
      );
      // The same at each try.
      const id = `${taskId}:${kind}:webhook%3A${webhookId}:${sequence}`;
      const signingSecrets = this.secrets.inForce({ tenantId, id: webhookId }, webhook.sealed);
      const headers = await this.signer.headers(
        { id, body, url, taskId, at: clock.date() },
        { signingSecrets },
      );
      const calls = this.outbound.forTenant(tenantId, () => this.limits.egress(tenantId));
      return (await callOnce(calls.fetchWithin({ timeoutMs: CALL_MS }), url, headers, body)).delivered;
    } catch (error) {
      this.logger.warn('a reminder could not be sent', { err: error, tenantId, webhookId });
      return false;
    }
  }
}
