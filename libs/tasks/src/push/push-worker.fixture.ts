import { type Environment, loadEnvironment } from '@baton/config';
import {
  CatalogClient,
  type Database,
  PushDeliveryStore,
  PushReceiverStore,
  RunStore,
  TaskStore,
  WebhookStore,
} from '@baton/database';
import { type LimitsService, PushSecrets } from '@baton/identity';
import type { Messaging, PushJob } from '@baton/messaging';
import { type EgressLists, NO_EGRESS_LISTS, Outbound } from '@baton/outbound';
import { Logger, Metrics } from '@baton/telemetry';
import { setTimeout as delay } from 'node:timers/promises';
import { SweepLeader } from '../core/sweep-leader.js';
import { DeliverySigner } from './delivery-signer.js';
import { PushSender } from './push-sender.js';
import { PushWorker } from './push-worker.js';

/** A worker that only delivers push notifications, with a queue that is in this test's hand. */
export class PushWorkerFixture {
  readonly metrics = new Metrics();
  readonly environment: Environment;
  readonly outbound: Outbound;
  readonly worker: PushWorker;
  readonly webhooks: WebhookStore;
  readonly secrets: PushSecrets;
  private readonly catalog: CatalogClient;
  /** Of every tenant. */
  egress: EgressLists = NO_EGRESS_LISTS;
  /** What the queue calls with a job. */
  readonly enqueued: PushJob[] = [];
  private readonly leader: SweepLeader;
  private looking = new AbortController();
  private take: ((job: PushJob) => Promise<void>) | undefined;

  constructor(database: Database, url: string, id: string, settings: Record<string, string> = {}) {
    const environment = loadEnvironment({
      DATABASE_URL: url,
      OUTBOUND_ALLOW: '127.0.0.1',
      LOG_LEVEL: 'silent',
      PUSH_FIRST_RETRY_MS: '100',
      PUSH_MAX_RETRY_MS: '300',
      ...settings,
    });
    this.environment = environment;
    this.outbound = new Outbound(environment, this.metrics);
    const messaging = {
      consumePushes: (_: number, take: (job: PushJob) => Promise<void>) => {
        this.take = take;
        const nothing = (): void => undefined;
        return { pause: nothing, resume: nothing, close: () => Promise.resolve() };
      },
      enqueuePushes: async (jobs: readonly PushJob[]) => void this.enqueued.push(...jobs),
    } as unknown as Messaging;
    const store = new PushDeliveryStore(database);
    const limits = { egress: async () => this.egress } as unknown as LimitsService;
    this.catalog = new CatalogClient(url);
    this.webhooks = new WebhookStore(this.catalog, database);
    this.secrets = new PushSecrets(environment);
    const sender = new PushSender(
      store,
      new PushReceiverStore(database),
      new TaskStore(database),
      this.secrets,
      this.webhooks,
      limits,
      this.outbound,
      new DeliverySigner(environment),
      environment,
      this.metrics,
      Logger.silent(),
    );
    this.leader = new SweepLeader(new RunStore(database));
    this.worker = new PushWorker(
      store,
      sender,
      messaging,
      { id },
      environment,
      this.leader,
      this.metrics,
      Logger.silent(),
    );
  }

  /** Also looks for what is due from now on, as the worker that sweeps does. */
  start(): this {
    this.worker.onApplicationBootstrap();
    void this.lookAgainAndAgain();
    return this;
  }

  /** As a job of the queue does. */
  wake(tenantId: string, taskId: string): Promise<void> {
    return this.take?.({ tenantId, taskId }) ?? Promise.resolve();
  }

  private async lookAgainAndAgain(): Promise<void> {
    const { signal } = this.looking;
    while (!signal.aborted) {
      await this.leader.sweep(60_000, 0).catch(() => undefined);
      await delay(20, undefined, { signal }).catch(() => undefined);
    }
  }

  async stop(): Promise<void> {
    this.looking.abort();
    await this.worker.onModuleDestroy();
    await this.worker.beforeApplicationShutdown();
    await this.outbound.onApplicationShutdown();
    await this.catalog.close();
  }
}
