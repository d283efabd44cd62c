import { Environment, formatMicros } from '@baton/config';
import {
  AuditStore,
  PLATFORM_ACTOR,
  type SpendingWarning,
  SpendingWarningStore,
  type WarnedWebhook,
} from '@baton/database';
import { LimitsService, PushSecrets } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import { clock, Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { v5 as uuidOf } from 'uuid';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { callOnce } from '../push/call-once.js';
import { DeliverySigner } from '../push/delivery-signer.js';

const EVERY_MS = 5_000;
const CALL_MS = 10_000;
/** Warnings of one look. */
const SLICE = 20;

/**
 * Says that 80 % of a spending cap are used, once for each period: to the webhooks of the tenant, as an event of the type
 * `spending.warning`, and in the audit log. One worker does it for all. A receiver that does not answer is tried again later.
 */
@Injectable()
export class SpendingWarnings extends RepeatedWork {
  constructor(
    private readonly store: SpendingWarningStore,
    private readonly audit: AuditStore,
    private readonly leader: SweepLeader,
    private readonly secrets: PushSecrets,
    private readonly signer: DeliverySigner,
    @Inject(LimitsService) private readonly limits: Pick<LimitsService, 'egress'>,
    @Inject(Outbound) private readonly outbound: Pick<Outbound, 'forTenant'>,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {
    super({ everyMs: EVERY_MS, log: { name: 'The warning of spending caps', logger } });
  }

  async runOnce(): Promise<void> {
    if (!this.leader.isLeader) return;
    for (;;) {
      const due = await this.store.claim(SLICE);
      await Promise.all(due.map((warning) => this.tell(warning)));
      if (due.length < SLICE) return;
    }
  }

  private async tell(warning: SpendingWarning): Promise<void> {
    const { tenantId, cap, usedBy, periodStart, usedMicros } = warning;
    await this.audit.write(tenantId, {
      // The same at each try: there is one record.
      id: uuidOf(`${usedBy} ${periodStart}`, cap.id),
      action: 'cap.warning',
      target: { kind: 'cap', name: cap.id },
      by: PLATFORM_ACTOR,
      detail: {
        of: cap.kind,
        subject: cap.name,
        used_by: usedBy,
        period: cap.period,
        micros: cap.micros,
        used: usedMicros,
      },
    });
    const webhooks = (await this.store.webhooks(tenantId)).filter((webhook) => isFor(webhook, warning));
    const left = webhooks.filter(({ id }) => !warning.notified.includes(id));
    const answers = await Promise.all(left.map((webhook) => this.deliver(webhook, warning)));
    const told = left.filter((_, i) => answers[i]);
    const notified = [...warning.notified, ...told.map(({ id }) => id)];
    await this.store.note(warning, notified, told.length === left.length);
  }

  /** @returns whether the receiver has taken it */
  private async deliver(webhook: WarnedWebhook, warning: SpendingWarning): Promise<boolean> {
    const { tenantId, cap, usedBy, periodStart } = warning;
    const { id: webhookId, url } = webhook;
    try {
      const body = JSON.stringify(bodyOf(warning, webhookId, this.environment.modelPricesCurrency));
      const id = `spending:${webhookId}:${uuidOf(`${usedBy} ${periodStart}`, cap.id)}`;
      const signingSecrets = this.secrets.inForce({ tenantId, id: webhookId }, webhook.sealed);
      const headers = await this.signer.headers({ id, body, url, at: clock.date() }, { signingSecrets });
      const calls = this.outbound.forTenant(tenantId, () => this.limits.egress(tenantId));
      return (await callOnce(calls.fetchWithin({ timeoutMs: CALL_MS }), url, headers, body)).delivered;
    } catch (error) {
      this.logger.warn('a spending warning could not be sent', { err: error, tenantId, webhookId });
      return false;
    }
  }
}

/** A webhook of some agents is told of the caps of these agents only. */
const isFor = ({ agents }: WarnedWebhook, { cap }: SpendingWarning): boolean =>
  agents.length === 0 || (cap.kind === 'agent' && agents.includes(cap.name));

const bodyOf = (
  { cap, usedBy, usedMicros, periodStart, warnedAt }: SpendingWarning,
  webhookId: string,
  currency: string,
): object => ({
  type: 'spending.warning',
  timestamp: warnedAt.toISOString(),
  data: {
    webhook_id: webhookId,
    cap_id: cap.id,
    of: cap.kind,
    subject: cap.name,
    used_by: usedBy === '' ? null : usedBy,
    period: cap.period,
    period_start: cap.period === 'life' ? null : periodStart,
    amount: formatMicros(cap.micros),
    used: formatMicros(usedMicros),
    currency,
    set_by: cap.setBy,
  },
});
