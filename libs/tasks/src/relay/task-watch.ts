import { type TaskEvent, endsTurn, isTerminal, parsePayload } from '@baton/a2a';
import type { PublishedEvent, TaskSignal } from '@baton/messaging';
import { type Backoff, retryTransient } from '../core/retry.js';
import type { LogPage, LogReader, TaskKey } from './log-reader.js';

/** How much may wait for a slow reader, in events and characters, before it is dropped and read from the log instead. */
const MAX_PENDING = 512;
const MAX_PENDING_CHARS = 256 * 1024;
const RETRY: Backoff = { firstMs: 250, maxMs: 5_000 };

/** Reason of an abort that ends a watch. One for all: an abort without a reason builds an exception with a stack. */
export const NO_LONGER_WATCHED = new Error('nobody watches the task any more');

/** The log has lost events that its reader has not read: the task was deleted. */
export class LogDeletedError extends Error {
  override readonly name = 'LogDeletedError';
}

/**
 * One reader of one task's log: what the log holds after the cursor, then what is signalled live. Signals are
 * only a short cut: on any gap the log is read again, so a lost, late or doubled signal changes nothing
 * (invariant 8).
 */
export class TaskWatch {
  private pending: PublishedEvent[] = [];
  private pendingChars = 0;
  private stale: boolean;
  private wake: (() => void) | undefined;
  /** As far as is known, the log goes to here. */
  private head: number;
  /** Told of every event that was written after the watch had begun, when its reader gets it. */
  onLive: ((event: TaskEvent) => void) | undefined;

  constructor(
    readonly key: TaskKey,
    private readonly log: Pick<LogReader, 'read'>,
    private cursor: number,
    /** Head of the log when the watch was made: an interruption at or before it lies in the past. */
    private readonly headAtStart: number,
    private readonly signal: AbortSignal,
  ) {
    this.stale = headAtStart > cursor;
    this.head = headAtStart;
    signal.addEventListener('abort', () => this.wake?.(), { once: true });
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

  /** Signals may have been missed: read the log again. @param head how far it goes, if that is known */
  refresh(head = 0): void {
    this.head = Math.max(this.head, head);
    this.stale = true;
    this.forgetPending();
    this.wake?.();
  }

  /**
   * Every event after the cursor, in order, each once. Returns after the event that ends the turn, or when
   * the signal aborts. While Postgres is away the reader waits. Rejects when the log can't be read for another reason,
   * and with `LogDeletedError` when it is no longer there.
   * @param ends `with-task`: go on over interruptions until the task has ended
   */
  async *events(ends: 'with-turn' | 'with-task' = 'with-turn'): AsyncGenerator<TaskEvent> {
    while (!this.signal.aborted) {
      const events = this.stale ? await this.readLog() : this.takePending();
      for (const event of events) {
        // oxlint-disable-next-line typescript/no-unnecessary-condition -- it may abort between two events
        if (this.signal.aborted) return;
        this.cursor = event.sequence;
        if (event.sequence > this.headAtStart) this.onLive?.(event);
        yield event;
        if (this.isLast(event, ends)) return;
      }
      if (!this.stale && this.pending.length === 0) await this.news();
    }
  }

  private async readLog(): Promise<TaskEvent[]> {
    this.stale = false;
    const { cursor, head } = this;
    const { events, more } = await this.readPage(cursor);
    if (this.signal.aborted) return [];
    // A log is deleted from its beginning, and what is known of it was committed before it was read.
    const [first] = events;
    if (first ? first.sequence > cursor + 1 : cursor < head) {
      throw new LogDeletedError(`the log of task ${this.key.taskId} does not go on after event ${cursor}`);
    }
    if (more) this.stale = true;
    return events;
  }

  /** A page of the log, however long Postgres is away. */
  private async readPage(cursor: number): Promise<LogPage> {
    const { signal } = this;
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
  private takePending(): TaskEvent[] {
    const taken: TaskEvent[] = [];
    let next = this.cursor + 1;
    for (const event of this.pending) {
      if (event.sequence < next) continue;
      if (event.sequence > next) {
        this.stale = true;
        break;
      }
      taken.push({ sequence: event.sequence, attempt: event.attempt, payload: parsePayload(event.json) });
      next += 1;
    }
    this.forgetPending();
    return taken;
  }

  private isLast({ sequence, payload }: TaskEvent, ends: 'with-turn' | 'with-task'): boolean {
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
      if (this.signal.aborted) this.wake();
    });
  }
}
