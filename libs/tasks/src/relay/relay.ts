import { LoggedEvent, type TaskEvent, endsTurn, isTerminal } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type Backoff, retryTransient, TaskStore } from '@baton/database';
import { Messaging, type Unsubscribe, type PublishedEvent, type TaskSignal } from '@baton/messaging';
import { untilStatementEnded } from '@baton/postgres';
import { clock, FailureLog, gauge, histogram, Logger, type MetricOf, Metrics } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { LogReader, type TaskKey, type LogPage } from './log-reader.js';

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
 * log with its reader, because a lost last signal leaves no gap. After an outage of messaging this happens soon. Only
 * readers with missing events read the log.
 */
@Injectable()
export class Relay implements OnModuleInit, OnModuleDestroy {
  /** Each with the function that ends its subscription. */
  private readonly watches = new Map<TaskWatch, Unsubscribe>();
  private timer: NodeJS.Timeout | undefined;
  private stopReconnect: Unsubscribe | undefined;
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
    this.lag = metrics.of(EVENT_LAG);
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
   * Start to follow a task after `cursor`. Once this resolves, no later event is missed.
   * @param head the newest sequence the caller knows of; events up to it are read from the log
   * @param signal ends the watch and frees its subscription: it must abort when the reader's call is over
   */
  async watch(key: TaskKey, cursor: number, head: number, signal: AbortSignal): Promise<TaskWatch> {
    const watch = new TaskWatch(key, this.log, cursor, head);
    watch.onLive = this.observeLag;
    if (signal.aborted) {
      watch.end();
      return watch;
    }
    const { inForce, end } = this.messaging.subscribeTask(key.tenantId, key.taskId, (news) =>
      watch.notify(news),
    );
    this.watches.set(watch, end);
    signal.addEventListener('abort', () => this.leave(watch), { once: true });
    await this.waitFor(inForce);
    return watch;
  }

  private readonly observeLag = (event: WatchedEvent): void => {
    if (event.isArtifact) return;
    const { payload } = event;
    const said = payload.$case === 'statusUpdate' && payload.value.status?.timestamp;
    if (said) this.lag.observe({}, Math.max(0, clock.now() - Date.parse(said)) / 1000);
  };

  /** End the watch and free its subscription, because nobody reads it. */
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
    let late = false;
    const done = inForce.then(() => {
      if (late) void this.catchUp();
    });
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

/** Maximum that waits for a slow reader, in events and characters. More is dropped and later read from the log. */
const MAX_PENDING = 512;
const MAX_PENDING_CHARS = 256 * 1024;
const RETRY: Backoff = { firstMs: 250, maxMs: 5_000 };

/** Reason of an abort that ends a read. One for all: an abort without a reason builds an exception with a stack. */
const NO_LONGER_WATCHED = new Error('the task has no readers');

/** An event of a watch. All readers in this process that get it from the same signal or page share it. */
export interface WatchedEvent extends TaskEvent, Partial<Pick<LoggedEvent, 'json' | 'isArtifact'>> {
  /** Set if it came as a signal and not from the log. */
  signal?: { chars: number; outcome: PublishedEvent['outcome'] };
}

/** An event from a signal. */
class LiveEvent extends LoggedEvent implements WatchedEvent {
  private static readonly known = new WeakMap<PublishedEvent, LiveEvent>();
  readonly signal: WatchedEvent['signal'];

  private constructor({ sequence, attempt, json, outcome }: PublishedEvent) {
    super(sequence, attempt, json);
    this.signal = { chars: json.length, outcome };
  }

  /** The same for every reader. */
  static of(published: PublishedEvent): LiveEvent {
    let event = LiveEvent.known.get(published);
    if (!event) LiveEvent.known.set(published, (event = new LiveEvent(published)));
    return event;
  }
}

/** The log has lost events that its reader has not read: the task was deleted. */
export class LogDeletedError extends Error {
  override readonly name = 'LogDeletedError';
}

/**
 * One reader of one task's log: first the events after the cursor, then live signals. Signals are only a shortcut:
 * after any gap the log is read again, so a lost, late or doubled signal changes nothing (invariant 8).
 */
export class TaskWatch {
  private pending: PublishedEvent[] = [];
  private pendingChars = 0;
  private stale: boolean;
  private wake: (() => void) | undefined;
  private isOver = false;
  /** Ends reads of the log. Most watches never read it. */
  private reads: AbortController | undefined;
  /** The newest known sequence of the log. */
  private head: number;
  /** Called when the reader gets an event that was written after the watch had begun. */
  onLive: ((event: WatchedEvent) => void) | undefined;

  constructor(
    readonly key: TaskKey,
    private readonly log: Pick<LogReader, 'read'>,
    private cursor: number,
    /** Head of the log when the watch began: an interruption at or before it is an old one. */
    private readonly headAtStart: number,
  ) {
    this.stale = headAtStart > cursor;
    this.head = headAtStart;
  }

  /** Nothing more is yielded, and a read of the log ends at once. */
  end(): void {
    this.isOver = true;
    this.reads?.abort(NO_LONGER_WATCHED);
    this.wake?.();
  }

  /** A method, because the compiler takes a field for unchanged after an `await`. */
  private hasEnded(): boolean {
    return this.isOver;
  }

  /** Sequence of the last event that was yielded. */
  get sequence(): number {
    return this.cursor;
  }

  /** Leave out the events up to `sequence`: the reader has them from a snapshot. */
  skipTo(sequence: number): void {
    this.cursor = Math.max(this.cursor, sequence);
  }

  /** A signal arrived from the task's channel. */
  notify(signal: TaskSignal): void {
    if (signal.lastSequence <= this.cursor) return;
    this.head = Math.max(this.head, signal.lastSequence);
    this.pending.push(...signal.events);
    for (const { json } of signal.events) this.pendingChars += json.length;
    const tooMany = this.pending.length > MAX_PENDING || this.pendingChars > MAX_PENDING_CHARS;
    if (signal.events.length === 0 || tooMany) this.refresh();
    else this.wake?.();
  }

  /** Signals may have been missed: read the log again. @param head its newest sequence, if known */
  refresh(head = 0): void {
    this.head = Math.max(this.head, head);
    this.stale = true;
    this.forgetPending();
    this.wake?.();
  }

  /**
   * Every event after the cursor, in order, each once, as many at a time as have come. Returns after the event that ends the
   * turn, or when the watch has ended. While Postgres is away the reader waits. Rejects when the log can't be read for another reason,
   * and with `LogDeletedError` when it is no longer there.
   * @param ends `with-task`: go on over interruptions until the task has ended
   */
  async *events(ends: 'with-turn' | 'with-task' = 'with-turn'): AsyncGenerator<WatchedEvent[]> {
    while (!this.hasEnded()) {
      const read: WatchedEvent[] = this.stale ? await this.readLog() : this.takePending();
      const last = read.findIndex((event) => this.isLast(event, ends));
      const events = last === -1 ? read : read.slice(0, last + 1);
      for (const event of events) if (event.sequence > this.headAtStart) this.onLive?.(event);
      this.cursor = events.at(-1)?.sequence ?? this.cursor;
      if (events.length > 0) yield events;
      if (last !== -1) return;
      if (!this.stale && this.pending.length === 0) await this.news();
    }
  }

  private async readLog(): Promise<TaskEvent[]> {
    this.stale = false;
    const { cursor, head } = this;
    const { events, more } = await this.readPage(cursor);
    if (this.hasEnded()) return [];
    // Retention deletes a log from its beginning. The known head was committed before this read.
    const [first] = events;
    if (first ? first.sequence > cursor + 1 : cursor < head) {
      throw new LogDeletedError(`the log of task ${this.key.taskId} does not go on after event ${cursor}`);
    }
    if (more) this.stale = true;
    return events;
  }

  /** A page of the log. Waits while Postgres is away. */
  private async readPage(cursor: number): Promise<LogPage> {
    const { signal } = (this.reads ??= new AbortController());
    try {
      return await retryTransient(() => this.log.read(this.key, cursor, signal), { signal, backoff: RETRY });
    } catch (error) {
      if (!signal.aborted) throw error;
      return { events: [], more: false };
    }
  }

  private forgetPending(): void {
    this.pending = [];
    this.pendingChars = 0;
  }

  /** The signalled events that follow the cursor without a hole. */
  private takePending(): WatchedEvent[] {
    const taken: WatchedEvent[] = [];
    let next = this.cursor + 1;
    for (const event of this.pending) {
      if (event.sequence < next) continue;
      if (event.sequence > next) {
        this.stale = true;
        break;
      }
      taken.push(LiveEvent.of(event));
      next += 1;
    }
    this.forgetPending();
    return taken;
  }

  private isLast(event: WatchedEvent, ends: 'with-turn' | 'with-task'): boolean {
    if (event.isArtifact) return false;
    const { sequence, payload } = event;
    const state = payload.$case === 'artifactUpdate' ? undefined : payload.value.status?.state;
    if (state === undefined) return false;
    if (isTerminal(state)) return true;
    return ends === 'with-turn' && endsTurn(state) && sequence >= this.headAtStart;
  }

  private news(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = () => {
        this.wake = undefined;
        resolve();
      };
      if (this.isOver) this.wake();
    });
  }
}
