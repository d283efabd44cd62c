import type { TaskEvent } from '@baton/a2a';
import { Environment } from '@baton/config';
import { TaskStore } from '@baton/database';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { FailureLog, gauge, histogram, Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { LogReader, type TaskKey } from './log-reader.js';
import { TaskWatch } from './task-watch.js';

/** Streams, and calls that wait for the end of a turn. */
const TASK_WATCHES = gauge('baton_task_watches', 'Task logs followed by this process');
/** Measured with status events: they have a time. */
const EVENT_LAG = histogram('baton_event_lag_seconds', 'From output to reader of a status');

/** How long opening a watch waits for its subscription; later it is only slower, not wrong. */
const SUBSCRIBE_WAIT_MS = 500;
/** After an outage of messaging the processes look at the logs within this time, not all at once. */
const CATCH_UP_SPREAD_MS = 500;
/** Part of the pool of connections that reading logs may take. */
const POOL_SHARE = 0.25;
/** Tasks whose heads are asked for in one statement. */
const HEADS_AT_ONCE = 1_000;

/**
 * Log catch-up plus live tail for any number of readers in this process. A slow tick compares the head of every watched
 * log with its reader, because a lost last signal shows no gap. After an outage of messaging it does so soon: only who
 * has missed something reads.
 */
@Injectable()
export class Relay implements OnModuleInit, OnModuleDestroy {
  private readonly watches = new Map<TaskWatch, Promise<Unsubscribe>>();
  private timer: NodeJS.Timeout | undefined;
  private stopReconnect: Unsubscribe | undefined;
  private readonly log: LogReader;
  private readonly ticks: FailureLog;
  private isCatchUpPlanned = false;
  private comparing: Promise<boolean> | undefined;
  private readonly closed = new AbortController();

  constructor(
    private readonly tasks: TaskStore,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly metrics: Metrics,
  ) {
    this.ticks = new FailureLog('The comparison of watched logs', logger);
    this.log = new LogReader(tasks, Math.ceil(environment.databasePoolSize * POOL_SHARE));
  }

  onModuleInit(): void {
    this.stopReconnect = this.messaging.onReconnect(() => void this.catchUp());
    this.timer = setInterval(() => void this.tick(), this.environment.relayTickMs);
    this.timer.unref();
    this.metrics.onScrape(async () => this.metrics.of(TASK_WATCHES).set(this.size));
  }

  onModuleDestroy(): void {
    this.closed.abort();
    clearInterval(this.timer);
    this.stopReconnect?.();
  }

  /**
   * Start to follow a task after `cursor`. When this resolves, no later event can be missed.
   * @param head the newest sequence the caller knows of; events up to it are read from the log
   * @param signal ends the watch and frees its subscription
   */
  async watch(key: TaskKey, cursor: number, head: number, signal: AbortSignal): Promise<TaskWatch> {
    const watch = new TaskWatch(key, this.log, cursor, head, signal);
    watch.onLive = (event) => this.observeLag(event);
    if (signal.aborted) return watch;
    const subscription = this.messaging.subscribeTask(key.tenantId, key.taskId, (news) => watch.notify(news));
    this.watches.set(watch, subscription);
    signal.addEventListener('abort', () => this.leave(watch), { once: true });
    await this.waitFor(subscription);
    return watch;
  }

  private observeLag({ payload }: TaskEvent): void {
    const said = payload.$case === 'statusUpdate' && payload.value.status?.timestamp;
    if (said) this.metrics.of(EVENT_LAG).observe(Math.max(0, Date.now() - Date.parse(said)) / 1000);
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
  private async waitFor(subscription: Promise<Unsubscribe>): Promise<void> {
    let late = false;
    const done = subscription.then(
      () => {
        if (late) void this.catchUp();
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

  /** Signals may have been missed: compare every watch with its log soon, and again until that succeeds. */
  private async catchUp(): Promise<void> {
    if (this.isCatchUpPlanned) return;
    this.isCatchUpPlanned = true;
    const { signal } = this.closed;
    try {
      await delay(Math.random() * CATCH_UP_SPREAD_MS, undefined, { signal, ref: false });
    } catch {
      return;
    } finally {
      this.isCatchUpPlanned = false;
    }
    // A comparison that runs may have read its heads before the outage was over.
    await this.comparing;
    if (!(await this.tick())) void this.catchUp();
  }

  /** One comparison at a time. @returns whether it succeeded */
  private tick(): Promise<boolean> {
    this.comparing ??= this.compare()
      .then(
        () => {
          this.ticks.worked();
          return true;
        },
        (error: unknown) => {
          this.ticks.failed(error);
          return false;
        },
      )
      .finally(() => (this.comparing = undefined));
    return this.comparing;
  }

  /** Let those read the log who have missed something. */
  private async compare(): Promise<void> {
    const watches = [...this.watches.keys()];
    // Thousands may watch one task: it is asked for once.
    const keys = [...new Map(watches.map(({ key }) => [key.taskId, key])).values()];
    const heads = new Map<string, number>();
    for (let i = 0; i < keys.length; i += HEADS_AT_ONCE) {
      const some = await this.tasks.heads(keys.slice(i, i + HEADS_AT_ONCE));
      for (const [taskId, head] of some) heads.set(taskId, head);
    }
    for (const watch of watches) {
      const head = heads.get(watch.key.taskId) ?? 0;
      if (head > watch.sequence) watch.refresh(head);
    }
  }
}
