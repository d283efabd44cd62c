import { Environment } from '@baton/config';
import { TaskStore } from '@baton/database';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { untilStatementEnded } from '@baton/postgres';
import {
  clock,
  FailureLog,
  gauge,
  histogram,
  Logger,
  type MetricOf,
  Metrics,
  within,
} from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { type LogKey } from './log-key.js';
import { LogReader } from './log-reader.js';
import { PageMemory } from './page-memory.js';
import { TaskWatch, type WatchedEvent } from './task-watch.js';

/** Streams, and calls that wait for the end of a turn. */
const TASK_WATCHES = gauge(
  'baton_task_watches',
  'Streams and waiting calls of this process that follow the log of a task',
);
/** Measured with status events: they have a time. */
const EVENT_LAG = histogram(
  'baton_event_lag_seconds',
  'Time from the output of an agent to a connected reader, of status events',
);

/** How long a new watch waits for its subscription. A late subscription makes it slower, not wrong. */
const SUBSCRIBE_WAIT_MS = 500;
/** After an outage of messaging, each process compares its logs at a random moment within this time. */
const CATCH_UP_SPREAD_MS = 500;
/** Share of the connection pool for reads of logs. */
const POOL_SHARE = 0.25;
/** Number of tasks whose heads one statement reads. */
const HEADS_AT_ONCE = 1_000;

/**
 * Log catch-up plus live tail for any number of readers in this process. A slow tick compares the head of every watched
 * log with its reader, because a lost last signal leaves no gap. After an outage of messaging, here or at a process that
 * publishes, this happens soon. Only readers with missing events read the log.
 */
@Injectable()
export class Relay implements OnModuleInit, OnModuleDestroy {
  /** Each with the function that ends its subscription. */
  private readonly watches = new Map<TaskWatch, Unsubscribe>();
  private timer: NodeJS.Timeout | undefined;
  private stopListening: Unsubscribe | undefined;
  private readonly log: LogReader;
  private readonly ticks: FailureLog;
  private isCatchUpPlanned = false;
  private comparing: Promise<boolean> | undefined;
  private readonly closed = new AbortController();
  private readonly lag: MetricOf<typeof EVENT_LAG>;

  constructor(
    private readonly tasks: TaskStore,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    logger: Logger,
    private readonly metrics: Metrics,
  ) {
    this.lag = metrics.get(EVENT_LAG);
    this.ticks = new FailureLog('The comparison of watched logs', logger);
    this.log = new LogReader(
      tasks,
      Math.ceil(environment.databasePoolSize * POOL_SHARE),
      new PageMemory(environment.sseBufferTotalBytes),
    );
  }

  onModuleInit(): void {
    this.stopListening = this.messaging.onSignalsMissed(() => void this.catchUp());
    this.timer = setInterval(() => void this.tick(), this.environment.relayTickMs);
    this.timer.unref();
    this.metrics.onScrape(async () => this.metrics.get(TASK_WATCHES).set(this.size));
  }

  onModuleDestroy(): void {
    this.closed.abort();
    clearInterval(this.timer);
    this.stopListening?.();
  }

  /**
   * Start to follow a task after `cursor`. Once this resolves, no later event is missed.
   * @param head the newest sequence that the caller has read; events up to it are read from the log
   * @param signal ends the watch and frees its subscription: it must abort when the reader's call is over
   */
  async watch(key: LogKey, cursor: number, head: number, signal: AbortSignal): Promise<TaskWatch> {
    const watch = new TaskWatch(key, this.log, cursor, head);
    watch.onLive = this.observeLag;
    if (signal.aborted) {
      watch.end();
      return watch;
    }
    const { inForce, end } = this.messaging.subscribeTask(key.tenantId, key.taskId, (signal) =>
      watch.notify(signal),
    );
    this.watches.set(watch, end);
    signal.addEventListener('abort', () => this.leave(watch), { once: true });
    await this.waitFor(inForce);
    return watch;
  }

  private readonly observeLag = (event: WatchedEvent): void => {
    if (event.isArtifact) return;
    const { payload } = event;
    const timestamp = payload.$case === 'statusUpdate' && payload.value.status?.timestamp;
    if (timestamp) this.lag.observe({}, Math.max(0, clock.now() - Date.parse(timestamp)) / 1000);
  };

  /** End the watch and unsubscribe, because it has no reader. */
  leave(watch: TaskWatch): void {
    watch.end();
    this.watches.get(watch)?.();
    this.watches.delete(watch);
  }

  /** Number of watches open in this process. */
  get size(): number {
    return this.watches.size;
  }

  /** Wait for the subscription, but not for long: without it the watch uses the slow tick. */
  private async waitFor(inForce: Promise<void>): Promise<void> {
    const done = inForce.then(() => true);
    if (await within(done, SUBSCRIBE_WAIT_MS)) return;
    done.then(
      () => this.catchUp(),
      () => undefined,
    );
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
    // A running comparison may have read the heads before the outage was over.
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
        async (error: unknown) => {
          this.ticks.failed(error);
          await untilStatementEnded(error);
          return false;
        },
      )
      .finally(() => (this.comparing = undefined));
    return this.comparing;
  }

  /** Let the readers with missing events read the log. */
  private async compare(): Promise<void> {
    const watches = [...this.watches.keys()];
    // Thousands may watch one task: its head is read once.
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
