import { clock } from '@baton/telemetry';
import { isAllowedName, isUuid, ProtocolError } from '@baton/a2a';
import {
  type Actor,
  type PageAfter,
  type PushTry,
  type Webhook,
  type WebhookDelivery,
  WebhookDeliveryStore,
  type WebhookHealth,
  type WebhookPatch,
  WebhookStore,
} from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Environment } from '@baton/config';
import { explainLimit, LimitsService, PushSecrets } from '@baton/identity';
import { Outbound } from '@baton/outbound';
import { Inject, Injectable } from '@nestjs/common';
import { v7 as uuid } from 'uuid';
import { AgentDirectory } from '../catalog/agent-directory.js';
import type { Viewer } from '../catalog/catalog.js';
import { callOnce, type ReceiverReply } from '../push/call-once.js';
import { DeliverySigner } from '../push/delivery-signer.js';
import { ReceiverCheck } from '../push/receiver-check.js';

/** The time of a real notice. */
const TEST_MS = 10_000;

/** What a webhook is made of. */
export type WebhookSpec = Pick<Webhook, 'url' | 'agents' | 'states' | 'enabled'>;

/** A tenant's webhooks, for the tenant itself. A caller with a list of agents has only the webhooks of these agents. */
@Injectable()
export class Webhooks {
  constructor(
    private readonly store: WebhookStore,
    private readonly deliveries: WebhookDeliveryStore,
    @Inject(Messaging) private readonly messaging: Pick<Messaging, 'enqueuePushes'>,
    private readonly secrets: PushSecrets,
    private readonly signer: DeliverySigner,
    private readonly receivers: ReceiverCheck,
    private readonly directory: AgentDirectory,
    @Inject(LimitsService) private readonly limits: Pick<LimitsService, 'egress'>,
    @Inject(Outbound) private readonly outbound: Pick<Outbound, 'forTenant'>,
    private readonly environment: Environment,
  ) {}

  /** A page in the order in which they were made; less than asked for, if some do not exist for the viewer. */
  async page({ tenantId }: Viewer, page: PageAfter): Promise<Webhook[]> {
    if (page.after !== undefined && !isUuid(page.after)) {
      throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page');
    }
    return this.store.list(tenantId, page);
  }

  /** Throws `not-found`, also for a webhook of agents that do not exist for the viewer. */
  async find(viewer: Viewer, id: string): Promise<Webhook> {
    return (await this.read(viewer, id)).webhook;
  }

  /**
   * @returns the webhook, and its secret, which is never shown again
   * @throws ProtocolError `invalid-params` that names the field, `not-configured`, `limit-exceeded`
   */
  async create(viewer: Viewer, spec: WebhookSpec, by: Actor): Promise<{ webhook: Webhook; secret: string }> {
    const { tenantId } = viewer;
    this.assertMasterKey();
    // A caller with a list of agents gets only the events of these agents.
    const agents = spec.agents.length > 0 ? spec.agents : [...(viewer.agents?.slugs ?? [])];
    await this.assertAgents(viewer, agents);
    const key = { tenantId, id: uuid() };
    const { secret, sealed } = this.secrets.create(key);
    await this.assertReceiver(key, spec.url, [secret]);
    const webhook = await this.store.create({ ...spec, agents, ...key }, sealed, by).catch(explainLimit);
    return { webhook, secret };
  }

  /** Change the given members. @throws ProtocolError as `create` and `find` do */
  async change(viewer: Viewer, id: string, patch: WebhookPatch, by: Actor): Promise<Webhook> {
    const { webhook, sealed } = await this.read(viewer, id);
    if (patch.agents) await this.assertAgents(viewer, patch.agents);
    if (patch.url !== undefined) {
      this.assertMasterKey();
      await this.assertReceiver(webhook, patch.url, this.secrets.inForce(webhook, sealed));
    }
    return (await this.store.change(viewer.tenantId, id, patch, by)) ?? missing(id);
  }

  /**
   * Give it another secret. The one before continues to sign for a while, beside it.
   * @returns the secret, which is never shown again
   */
  async rotate(
    viewer: Viewer,
    id: string,
    overlapMs: number,
    by: Actor,
  ): Promise<{ webhook: Webhook; secret: string }> {
    await this.find(viewer, id);
    this.assertMasterKey();
    const { tenantId } = viewer;
    let secret = '';
    const webhook = await this.store.rotate(
      tenantId,
      id,
      (before) => {
        const next = this.secrets.rotate({ tenantId, id }, before, overlapMs);
        ({ secret } = next);
        return next.sealed;
      },
      by,
    );
    return { webhook: webhook ?? missing(id), secret };
  }

  /** It gets no more events. */
  async remove(viewer: Viewer, id: string, by: Actor): Promise<void> {
    await this.find(viewer, id);
    if (!(await this.store.remove(viewer.tenantId, id, by))) missing(id);
  }

  /** Call the receiver once, with an event of the type `webhook.test`, and return its answer. */
  async test(viewer: Viewer, id: string, by: Actor): Promise<ReceiverReply> {
    const { webhook, sealed } = await this.read(viewer, id);
    this.assertMasterKey();
    const { tenantId, url } = webhook;
    const at = clock.date();
    const body = JSON.stringify({
      type: 'webhook.test',
      timestamp: at.toISOString(),
      data: { webhook_id: id },
    });
    const delivery = { id: `test:${id}:${uuid()}`, body, url, at };
    const signingSecrets = this.secrets.inForce(webhook, sealed);
    const headers = await this.signer.headers(delivery, { signingSecrets });
    const calls = this.outbound.forTenant(tenantId, () => this.limits.egress(tenantId));
    const result = await callOnce(calls.fetchWithin({ timeoutMs: TEST_MS }), url, headers, body);
    await this.store.noteTest(webhook, by, result.status);
    return result;
  }

  /** The state of the webhooks of the tenant for its newest tasks, by their ids. A webhook that received none of them is left out. */
  async health({ tenantId }: Viewer, webhooks: readonly Webhook[]): Promise<Map<string, WebhookHealth>> {
    const found = await this.deliveries.health(
      tenantId,
      webhooks.map(({ id }) => id),
    );
    return new Map(found.map((each) => [each.webhookId, each]));
  }

  /** The deliveries of a webhook by task, newest first. Throws as `find` does. */
  async deliveriesOf(
    viewer: Viewer,
    id: string,
    page: PageAfter & { task?: string | undefined },
  ): Promise<WebhookDelivery[]> {
    if (page.after !== undefined && !isUuid(page.after)) {
      throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page');
    }
    if (page.task !== undefined && !isUuid(page.task)) {
      throw ProtocolError.invalidParams('task', 'must be the id of a task');
    }
    await this.find(viewer, id);
    return this.deliveries.list(viewer.tenantId, id, page);
  }

  /** The newest requests about a task to a webhook that `find` has found, the oldest first. */
  triesOf({ tenantId }: Viewer, id: string, taskId: string): Promise<PushTry[]> {
    return this.deliveries.tries(tenantId, id, taskId);
  }

  /**
   * Deliver again, now: the events of a task that the receiver has not taken, or the last one if it has all.
   * @param taskId unset = of the newest tasks whose events it has not taken
   * @returns the tasks; none of those for which a request is under way
   * @throws ProtocolError `not-found`, `invalid-params`
   */
  async redeliver(viewer: Viewer, id: string, taskId: string | undefined, by: Actor): Promise<string[]> {
    await this.find(viewer, id);
    if (taskId !== undefined && !isUuid(taskId))
      throw ProtocolError.invalidParams('task', 'must be the id of a task');
    const { tenantId } = viewer;
    const wanted = taskId === undefined ? await this.deliveries.failing(tenantId, id) : [taskId];
    const tasks: string[] = [];
    for (const each of wanted) if (await this.deliveries.redeliver(tenantId, id, each, by)) tasks.push(each);
    // If the queue is away, the sweep finds what is due.
    if (tasks.length > 0)
      await this.messaging
        .enqueuePushes(tasks.map((task) => ({ tenantId, taskId: task })))
        .catch(() => undefined);
    return tasks;
  }

  private async read({ tenantId, agents }: Viewer, id: string) {
    const found = isUuid(id) ? await this.store.find(tenantId, id) : undefined;
    if (!found) return missing(id);
    const { agents: of } = found.webhook;
    const exists = !agents || (of.length > 0 && of.every((slug) => agents.slugs.includes(slug)));
    return exists ? found : missing(id);
  }

  /** Throws `invalid-params` for a receiver that may not be called, or does not take the challenge. */
  private assertReceiver(
    { tenantId, id }: Pick<Webhook, 'tenantId' | 'id'>,
    url: string,
    signingSecrets: string[],
  ): Promise<void> {
    const secrets = { signingSecrets };
    return this.receivers.check({ tenantId, url, field: 'url', secrets, of: { webhook_id: id } });
  }

  /** Throws `invalid-params` for an agent that is not there for the viewer. */
  private async assertAgents(
    { tenantId, agents: allowed }: Viewer,
    agents: readonly string[],
  ): Promise<void> {
    if (allowed && agents.length === 0) {
      throw ProtocolError.invalidParams('agents', 'name agents: not all agents exist for your token');
    }
    const found = await Promise.all(agents.map(async (slug) => this.directory.find(tenantId, slug)));
    for (const [i, slug] of agents.entries()) {
      if (found[i] && isAllowedName(allowed, slug)) continue;
      throw ProtocolError.invalidParams(`agents[${i}]`, `there is no agent "${slug}"`);
    }
  }

  private assertMasterKey(): void {
    if (this.environment.masterKey) return;
    throw new ProtocolError(
      'not-configured',
      'this installation stores no secrets: its operator must set BATON_MASTER_KEY (or _FILE, _COMMAND) for every process',
    );
  }
}

const missing = (id: string): never => {
  throw new ProtocolError('not-found', `Webhook not found: ${isUuid(id) ? id : 'name it by its id'}`);
};
