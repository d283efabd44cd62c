import type { Environment } from '@baton/config';
import { AuditStore, type Database, UsageStore } from '@baton/database';
import {
  createMessaging,
  type Messaging,
  MessagingUnavailableError,
  type PushJob,
  type RunJob,
} from '@baton/messaging';
import { TenantSettings } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import type { Terminal } from '../output.js';
import { type Platform, START_MS, UNTOLD } from '../platform.js';

/** Messaging to the running processes. It connects at its first use, so a command that only reads does without. */
class Channels implements Pick<
  Messaging,
  'publishControl' | 'publishTask' | 'stopTicks' | 'enqueueRuns' | 'enqueuePushes'
> {
  private opened: Promise<Messaging | undefined> | undefined;
  /** Whether there was news that nobody could be told. Every process reads Postgres again within a second or two. */
  isMissed = false;

  constructor(private readonly environment: Environment) {}

  async publishControl(message: Parameters<Messaging['publishControl']>[0]): Promise<void> {
    const messaging = await this.open();
    this.isMissed ||= !messaging;
    if (!messaging) throw new MessagingUnavailableError('Messaging does not answer');
    await messaging.publishControl(message);
  }

  async publishTask(...published: Parameters<Messaging['publishTask']>): Promise<void> {
    await (await this.open())?.publishTask(...published);
  }

  async stopTicks(scheduleId: string): Promise<void> {
    await (await this.open())?.stopTicks(scheduleId);
  }

  /** If the queue is away, the sweeper enqueues the runs. */
  async enqueueRuns(runs: readonly RunJob[]): Promise<void> {
    await (await this.open())?.enqueueRuns(runs).catch(() => undefined);
  }

  /** If the queue is away, the sweep finds due configs. */
  async enqueuePushes(pushes: readonly PushJob[]): Promise<void> {
    await (await this.open())?.enqueuePushes(pushes).catch(() => undefined);
  }

  async close(): Promise<void> {
    await (await this.opened)?.close();
  }

  private open(): Promise<Messaging | undefined> {
    this.opened ??= this.connect();
    return this.opened;
  }

  private async connect(): Promise<Messaging | undefined> {
    const { redisUrl, databaseDirectUrl: databaseUrl } = this.environment;
    const messaging = createMessaging({ redisUrl, databaseUrl, log: Logger.silent() });
    return messaging.start(START_MS).then(
      () => messaging,
      () => undefined,
    );
  }
}

/** A command serves no requests, so it knows nothing that could be stale. */
export const NOTHING_IN_USE = { forget: (): void => undefined };

/** The use case of the settings of tenants, on the database. */
export const tenantSettings = (
  { database, tenants, agents, environment }: Platform & { database: Database },
  channels: Channels,
): TenantSettings =>
  new TenantSettings(
    ...([tenants, agents, new UsageStore(database), new AuditStore(database)] as const),
    ...([channels, NOTHING_IN_USE, environment] as const),
  );

/** Do `work` with messaging, which is closed after it. A note says so if running processes were not told of a change. */
export async function withChannels<T>(
  terminal: Terminal,
  environment: Environment,
  work: (channels: Channels) => Promise<T>,
): Promise<T> {
  const channels = new Channels(environment);
  try {
    return await work(channels);
  } finally {
    await channels.close();
    if (channels.isMissed) terminal.err(UNTOLD);
  }
}
