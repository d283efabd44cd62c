import { Environment } from '@baton/config';
import { TaskStore } from '@baton/database';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { type TaskKey, TaskWatch } from './task-watch.js';

/** How long opening a watch waits for its subscription; later it is only slower, not wrong. */
const SUBSCRIBE_WAIT_MS = 500;

/**
 * Log catch-up plus live tail for any number of readers in this process. A slow tick compares the head of
 * every watched log with its reader, because a lost last signal shows no gap.
 */
@Injectable()
export class Relay implements OnModuleInit, OnModuleDestroy {
  private readonly watches = new Map<TaskWatch, Promise<Unsubscribe>>();
  private timer: NodeJS.Timeout | undefined;
  private stopReconnect: Unsubscribe | undefined;
  private ticking = false;

  constructor(
    private readonly tasks: TaskStore,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.stopReconnect = this.messaging.onReconnect(() => this.refreshAll());
    this.timer = setInterval(() => void this.tick(), this.environment.relayTickMs);
    this.timer.unref();
    this.metrics.onScrape(async () => this.metrics.taskWatches.set(this.size));
  }

  onModuleDestroy(): void {
    clearInterval(this.timer);
    this.stopReconnect?.();
  }

  /**
   * Start to follow a task after `cursor`. When this resolves, no later event can be missed.
   * @param head the newest sequence the caller knows of; events up to it are read from the log
   * @param signal ends the watch and frees its subscription
   */
  async watch(key: TaskKey, cursor: number, head: number, signal: AbortSignal): Promise<TaskWatch> {
    const watch = new TaskWatch(key, this.tasks, cursor, head, signal);
    if (signal.aborted) return watch;
    const subscription = this.messaging.subscribeTask(key.tenantId, key.taskId, (news) => watch.notify(news));
    this.watches.set(watch, subscription);
    signal.addEventListener('abort', () => this.leave(watch), { once: true });
    await this.settle(watch, subscription);
    return watch;
  }

  /** Free the watch's subscription before its signal does: nobody reads it. */
  leave(watch: TaskWatch): void {
    const subscription = this.watches.get(watch);
    this.watches.delete(watch);
    subscription?.then(
      (unsubscribe) => unsubscribe(),
      () => undefined,
    );
  }

  /** Number of watches open in this process. */
  get size(): number {
    return this.watches.size;
  }

  /** Wait for the subscription, but not long: without it the watch lives on the slow tick. */
  private async settle(watch: TaskWatch, subscription: Promise<Unsubscribe>): Promise<void> {
    let late = false;
    const done = subscription.then(
      () => {
        if (late) watch.refresh();
      },
      (error: unknown) =>
        this.logger.warn('task channel not subscribed; following the log only', { err: error }),
    );
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        late = true;
        resolve();
      }, SUBSCRIBE_WAIT_MS);
    });
    await Promise.race([done, timeout]);
    clearTimeout(timer);
  }

  private refreshAll(): void {
    for (const watch of this.watches.keys()) watch.refresh();
  }

  private async tick(): Promise<void> {
    if (this.ticking || this.watches.size === 0) return;
    this.ticking = true;
    try {
      const watches = [...this.watches.keys()];
      // Thousands may watch one task: it is asked for once.
      const keys = new Map(watches.map(({ key }) => [key.taskId, key]));
      const heads = await this.tasks.heads([...keys.values()]);
      for (const watch of watches) {
        const head = heads.get(watch.key.taskId) ?? 0;
        if (head > watch.sequence) watch.refresh(head);
      }
    } catch (error) {
      this.logger.warn('relay tick failed', { err: error });
    } finally {
      this.ticking = false;
    }
  }
}
