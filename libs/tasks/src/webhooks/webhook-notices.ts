import { type NotifiedWebhook, WebhookStore } from '@baton/database';
import { LimitsService, PushSecrets } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import { clock, Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { callOnce } from '../push/call-once.js';
import { type Delivery, DeliverySigner } from '../push/delivery-signer.js';

const CALL_MS = 10_000;

/** What the webhooks of a tenant are told, besides the events of tasks. */
export interface WebhookNotice {
  tenantId: string;
  /** The webhooks that have been told. */
  notified: readonly string[];
  /** Whether a webhook is to be told. */
  isFor(webhook: NotifiedWebhook): boolean;
  /** Its request: the same at each try. */
  requestFor(webhookId: string): Pick<Delivery, 'id' | 'body' | 'taskId'>;
}

/** Tells the webhooks of tenants what is no event of a task: one request each, which the caller repeats later. */
@Injectable()
export class WebhookNotices {
  constructor(
    private readonly webhooks: WebhookStore,
    private readonly secrets: PushSecrets,
    private readonly signer: DeliverySigner,
    @Inject(LimitsService) private readonly limits: Pick<LimitsService, 'egress'>,
    @Inject(Outbound) private readonly outbound: Pick<Outbound, 'forTenant'>,
    private readonly logger: Logger,
  ) {}

  /**
   * Calls each webhook that was not told yet.
   * @returns all that have been told, and whether nobody is left
   */
  async tell(notice: WebhookNotice): Promise<{ notified: string[]; isDone: boolean }> {
    const webhooks = (await this.webhooks.enabled(notice.tenantId)).filter((each) => notice.isFor(each));
    const left = webhooks.filter(({ id }) => !notice.notified.includes(id));
    const answers = await Promise.all(left.map((webhook) => this.deliver(webhook, notice)));
    const told = left.filter((_, i) => answers[i]).map(({ id }) => id);
    return { notified: [...notice.notified, ...told], isDone: told.length === left.length };
  }

  /** @returns whether the receiver has taken it */
  private async deliver(
    { id: webhookId, url, sealed }: NotifiedWebhook,
    notice: WebhookNotice,
  ): Promise<boolean> {
    const { tenantId } = notice;
    try {
      const request = notice.requestFor(webhookId);
      const signingSecrets = this.secrets.inForce({ tenantId, id: webhookId }, sealed);
      const headers = await this.signer.headers({ ...request, url, at: clock.date() }, { signingSecrets });
      const calls = this.outbound.forTenant(tenantId, () => this.limits.egress(tenantId));
      const fetch = calls.fetchWithin({ timeoutMs: CALL_MS });
      return (await callOnce(fetch, url, headers, String(request.body))).delivered;
    } catch (error) {
      this.logger.warn('a webhook could not be told', { err: error, tenantId, webhookId });
      return false;
    }
  }
}
