import { Environment, formatMicros } from '@baton/config';
import { AuditStore, PLATFORM_ACTOR, type SpendingWarning, SpendingWarningStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { v5 as uuidOf } from 'uuid';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { type WebhookNotice, WebhookNotices } from './webhook-notices.js';

/**
 * Reports that 80 % of a spending cap are used, once for each period: to the webhooks of the tenant, as an event of the type
 * `spending.warning`, and in the audit log. One worker does it for all (`SweepLeader`). A receiver that does not answer is tried
 * again later.
 */
@Injectable()
export class SpendingWarnings extends RepeatedWork {
  constructor(
    private readonly store: SpendingWarningStore,
    private readonly audit: AuditStore,
    private readonly webhooks: WebhookNotices,
    private readonly environment: Environment,
    leader: SweepLeader,
    logger: Logger,
  ) {
    super({ log: { name: 'The warning of spending caps', logger } });
    leader.on('dueSpendingWarnings', () => this.wake());
  }

  async runOnce(): Promise<void> {
    await this.webhooks.sendDue(this.store, (warning) => this.noticeOf(warning));
  }

  private async noticeOf(warning: SpendingWarning): Promise<WebhookNotice> {
    const { tenantId, cap, usedBy, periodStart, usedMicros, notified } = warning;
    // The id is the same at each try: there is one record, and a receiver detects a repetition.
    const id = uuidOf(`${usedBy} ${periodStart}`, cap.id);
    await this.audit.write(tenantId, {
      id,
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
    const { modelPricesCurrency } = this.environment;
    return {
      tenantId,
      notified,
      // A webhook that names agents gets the warnings of their caps only.
      isFor: ({ agents }) => agents.length === 0 || (cap.kind === 'agent' && agents.includes(cap.name)),
      requestFor: (webhookId) => ({
        id: `spending:${webhookId}:${id}`,
        body: JSON.stringify(bodyOf(warning, webhookId, modelPricesCurrency)),
      }),
    };
  }
}

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
