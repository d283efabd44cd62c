import { LoggedEvent, type TaskEvent, endsTurn, isTerminal } from '@baton/a2a';
import { type Backoff, retryTransient } from '@baton/database';
import { type PublishedEvent, type TaskSignal } from '@baton/messaging';
import { type LogKey } from './log-key.js';
import { LogReader, type LogPage } from './log-reader.js';
import { LogDeletedError } from './log-deleted-error.js';

/** Maximum events that are kept for a slow reader. Further ones are dropped and later read from the log. */
const MAX_PENDING = 512;
/** Maximum characters of the events that are kept for a slow reader. */
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

  /** The event of a publication. All its readers share one object. */
  static from(published: PublishedEvent): LiveEvent {
    let event = LiveEvent.known.get(published);
    if (!event) LiveEvent.known.set(published, (event = new LiveEvent(published)));
    return event;
  }
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
  /** Gives back the memory of the page that the reader has. */
  private release: (() => void) | undefined;
  /** The newest known sequence of the log. */
  private head: number;
  /** Called when the reader gets an event that was written after the watch had begun. */
  onLive: ((event: WatchedEvent) => void) | undefined;

  constructor(
    readonly key: LogKey,
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
    this.releasePage();
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
   * Every event after the cursor, in order, each once, as many at a time as have come. The reader takes the events out of each array
   * before it asks for the next one. Returns after the event that ends the turn, or when the watch has ended. While Postgres is away
   * the reader waits. Rejects when the log cannot be read for another reason, and with `LogDeletedError` when it is no longer there.
   * @param ends `with-task`: continue over interruptions until the task has ended
   */
  async *events(ends: 'with-turn' | 'with-task' = 'with-turn'): AsyncGenerator<WatchedEvent[]> {
    try {
      yield* this.readEvents(ends);
    } finally {
      this.releasePage();
    }
  }

  private async *readEvents(ends: 'with-turn' | 'with-task'): AsyncGenerator<WatchedEvent[]> {
    while (!this.hasEnded()) {
      const events = this.stale ? await this.readLog() : this.takePending();
      const last = events.findIndex((event) => this.isLast(event, ends));
      if (last !== -1) events.length = last + 1;
      this.observe(events);
      this.cursor = events.at(-1)?.sequence ?? this.cursor;
      if (events.length > 0) yield events;
      this.releasePage();
      if (last !== -1) return;
      if (!this.stale && this.pending.length === 0) await this.untilNotified();
    }
  }

  private observe(events: readonly WatchedEvent[]): void {
    for (const event of events) if (event.sequence > this.headAtStart) this.onLive?.(event);
  }

  /** A list of its own, though readers of the same page share its events. */
  private async readLog(): Promise<WatchedEvent[]> {
    this.stale = false;
    const { cursor, head } = this;
    const { events, more } = await this.readPage(cursor);
    if (this.hasEnded()) {
      this.releasePage();
      return [];
    }
    // Retention deletes a log from its beginning. The known head was committed before this read.
    const [first] = events;
    if (first ? first.sequence > cursor + 1 : cursor < head) {
      throw new LogDeletedError(`the log of task ${this.key.taskId} does not continue after event ${cursor}`);
    }
    if (more) this.stale = true;
    return [...events];
  }

  /** A page of the log. Waits while Postgres is away. */
  private async readPage(cursor: number): Promise<LogPage> {
    const { signal } = (this.reads ??= new AbortController());
    try {
      const page = await retryTransient(() => this.log.read(this.key, cursor, signal), {
        signal,
        backoff: RETRY,
      });
      this.release = page.release;
      return page;
    } catch (error) {
      if (!signal.aborted) throw error;
      return { events: [], more: false };
    }
  }

  private releasePage(): void {
    this.release?.();
    this.release = undefined;
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
      taken.push(LiveEvent.from(event));
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

  private untilNotified(): Promise<void> {
    return new Promise((resolve) => {
      this.wake = () => {
        this.wake = undefined;
        resolve();
      };
      if (this.isOver) this.wake();
    });
  }
}
