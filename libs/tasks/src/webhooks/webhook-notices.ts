import { type NotifiedWebhook, WebhookStore } from '@baton/database';
import { LimitsService, PushSecrets } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import { clock, Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { callOnce } from '../push/call-once.js';
import { type Delivery, DeliverySigner } from '../push/delivery-signer.js';

/** A slow receiver gets the notice again later. */
const CALL_MS = 10_000;
/** Notices that are claimed together. */
const SLICE = 20;

/** A notification for the webhooks of a tenant that is no event of a task. */
export interface WebhookNotice {
  tenantId: string;
  /** The webhooks that have it. */
  notified: readonly string[];
  /** Whether a webhook subscribes to the notice. */
  isFor(webhook: NotifiedWebhook): boolean;
  /** Its request: the same at each try. */
  requestFor(webhookId: string): Pick<Delivery, 'id' | 'body' | 'taskId'>;
}

/** Where notices are kept that are due. A claimed notice is due again later, unless `note` marks it as done. */
export interface DueNotices<Due> {
  claim(limit: number): Promise<Due[]>;
  /** @param webhooks all that have it @param isDone none is left */
  note(due: Due, webhooks: readonly string[], isDone: boolean): Promise<void>;
}

/** Notifies the webhooks of tenants: one request each. A webhook that does not answer gets it again when the notice is due again. */
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
   * Sends all notices that are due.
   * @param noticeOf makes the notice. Undefined: it is out of date
   */
  async sendDue<Due>(
    store: DueNotices<Due>,
    noticeOf: (due: Due) => Promise<WebhookNotice | undefined>,
  ): Promise<void> {
    for (;;) {
      const claimed = await store.claim(SLICE);
      await Promise.all(
        claimed.map(async (due) => {
          const notice = await noticeOf(due);
          if (!notice) return;
          const { notified, isDone } = await this.notify(notice);
          await store.note(due, notified, isDone);
        }),
      );
      if (claimed.length < SLICE) return;
    }
  }

  /**
   * Calls each webhook that does not have it yet.
   * @returns all that have it, and whether none is left
   */
  private async notify(notice: WebhookNotice): Promise<{ notified: string[]; isDone: boolean }> {
    const webhooks = (await this.webhooks.enabled(notice.tenantId)).filter((each) => notice.isFor(each));
    const left = webhooks.filter(({ id }) => !notice.notified.includes(id));
    const answers = await Promise.all(left.map((webhook) => this.deliver(webhook, notice)));
    const reached = left.filter((_, i) => answers[i]).map(({ id }) => id);
    return { notified: [...notice.notified, ...reached], isDone: reached.length === left.length };
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
      this.logger.warn('webhook could not be notified', { err: error, tenantId, webhookId });
      return false;
    }
  }
}
