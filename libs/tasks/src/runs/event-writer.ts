import { type EventPayload, TaskState, serializePayload } from '@baton/a2a';
import {
  type AppendBatch,
  type AppendResult,
  type ClaimedRun,
  type NewEvent,
  type WaitReminders,
  RunStore,
  TaskStore,
  type TurnOutcome,
  isUnstorable,
  type Backoff,
  retryTransient,
} from '@baton/database';
import type { Messaging, TaskSignal } from '@baton/messaging';
import { counter, histogram, type Metrics, type Tracing, within } from '@baton/telemetry';
import type { EventAllowance } from './event-allowance.js';
import { TurnFailure } from '../core/turn-failure.js';
import { AppendRefused } from '../core/append-refused.js';
import type { EndedTurn } from '../turns/turn-ends.js';
import { SmallArtifacts } from './small-artifacts.js';

const EVENTS_APPENDED = counter('baton_events_appended_total', 'Events appended to task logs');
/** Measured for the first event of each batch. */
const EVENT_APPEND = histogram('baton_event_append_seconds', 'Time from the output of an agent to the log');

/** The metrics of the writers of a process. */
export const writerMetrics = (metrics: Metrics) => ({
  appended: metrics.get(EVENTS_APPENDED),
  append: metrics.get(EVENT_APPEND),
});

/** Maximum time from the first event of a batch to its append, in ms. */
const MAX_BATCH_MS = 5;
/** A batch of this size is appended immediately, so that one append stays small. */
const MAX_BATCH_BYTES = 64 * 1024;
/** A batch of this many events is appended immediately. */
const MAX_BATCH_EVENTS = 256;
/** How long the `working` event of a run waits for the first output of its agent, in ms, so that one append has both. */
const MAX_SILENCE_MS = 2;
const RETRY: Backoff = { firstMs: 100, maxMs: 100 };
/** How long a batch waits for its signal to be sent. Without the signal, readers find the events in the log. */
const PUBLISH_WAIT_MS = 1_000;

/** A shared instance: every run ends with it, and creating an error with a stack is slow. */
const RUN_IS_OVER = new AppendRefused('the run is over');

/** Postgres's answer for a batch that is in the log. Undefined if the answer was lost. */
type StoredBatch = Pick<Extract<AppendResult, { ok: true }>, 'hasChildren' | 'hasPushConfigs'>;

/** How the turn ends; travels with the last batch so that event, task and run change in one transaction. */
export interface EndOfTurn {
  state: TaskState;
  outcome: TurnOutcome | null;
  error?: string;
  /** For a question: the task continues after this time without an answer. */
  wakeInMs?: number;
  /** Set for a question: when the webhooks are notified that it waits. */
  reminders?: WaitReminders;
}

export interface WriterPorts {
  runs: Pick<RunStore, 'append'>;
  tasks: Pick<TaskStore, 'readEvents'>;
  messaging: Pick<Messaging, 'publishTask' | 'enqueuePushes'>;
  metrics: ReturnType<typeof writerMetrics>;
  tracing: Pick<Tracing, 'during'>;
  /** Called once, when a batch could not be appended: the run must stop. */
  onFailure: (error: Error) => void;
}

/**
 * Appends one run's events in batches and publishes each batch after its commit (invariant 3). Only the
 * holder of the current attempt gets anything into the log (invariant 5).
 */
export class EventWriter {
  private pending: NewEvent[] = [];
  private pendingBytes = 0;
  /** When the agent produced the oldest pending event, in ms. */
  private pendingSince = 0;
  private timer: NodeJS.Timeout | undefined;
  private chain: Promise<void> = Promise.resolve();
  private failure: Error | undefined;
  private ending: EndOfTurn | undefined;
  private endedTurn: EndedTurn | undefined;
  private metadata: Record<string, unknown> | undefined;
  /** The task's metadata differ from those of its events. */
  private hasMetadata = false;
  private allowance: EventAllowance | undefined;
  private sequence: number;
  private isPublisherStuck = false;
  private readonly refused = new AbortController();
  private readonly artifacts: SmallArtifacts;

  constructor(
    private readonly run: ClaimedRun,
    private readonly ports: WriterPorts,
  ) {
    this.sequence = run.snapshot.sequence;
    this.artifacts = new SmallArtifacts(run);
    const { workingEvent } = run;
    if (workingEvent && !workingEvent.isAppended) {
      this.sequence = workingEvent.sequence - 1;
      this.add(workingEvent.payload, false);
      this.flushIn(MAX_SILENCE_MS);
    }
  }

  /**
   * Add one event. Resolves at once while there is room, otherwise when the batch is in the log, so that an agent
   * cannot run ahead of Postgres. Rejects with `AppendRefused` when the run must stop, and with `TurnFailure` when the
   * event exceeds a limit. Then the event is not added.
   * @param isFromAgent false: the platform repeats earlier events, and no limit applies
   */
  async write(payload: EventPayload, isFromAgent = true): Promise<void> {
    if (this.failure) throw this.failure;
    this.refusal.throwIfAborted();
    this.add(payload, isFromAgent);
    if (payload.$case === 'statusUpdate' || this.isFull()) await this.flush();
    else this.flushIn(MAX_BATCH_MS);
  }

  /** From now on apply this budget to the agent. */
  allow(allowance: EventAllowance): void {
    this.allowance = allowance;
  }

  /** Merge keys into the task's metadata, together with the next batch. */
  mergeMetadata(metadata: Record<string, unknown>): void {
    this.metadata = { ...this.metadata, ...metadata };
    this.hasMetadata = true;
  }

  /**
   * Append the last event together with all pending events, and end the run. No limit applies to an end with an
   * `error`, because the platform writes it.
   */
  async end(payload: EventPayload, end: EndOfTurn): Promise<void> {
    if (this.failure) throw this.failure;
    const isFromAgent = end.error === undefined;
    if (isFromAgent) this.refusal.throwIfAborted();
    this.add(payload, isFromAgent);
    // Not an argument of `flush`: a flush that waits for another one already includes this event.
    this.ending = end;
    await this.flush();
  }

  /**
   * Aborts when the log cannot store the agent's output, with a `TurnFailure` as its reason. The platform can still end
   * the turn.
   */
  get refusal(): AbortSignal {
    return this.refused.signal;
  }

  /** Set once the end of the turn is in the log. */
  get ended(): EndedTurn | undefined {
    return this.endedTurn;
  }

  /** Sequence of the last event in the log. */
  get head(): number {
    return this.sequence;
  }

  /** Append the pending events. One append at a time; events that arrive during a slow one form the next batch. */
  async flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const appended = this.chain.then(() => this.append());
    this.chain = appended.catch(() => undefined);
    await appended;
  }

  /** The run is over or was stopped: drop the events that were not appended. */
  discard(): void {
    clearTimeout(this.timer);
    this.pending = [];
    this.failure ??= RUN_IS_OVER;
  }

  private add(payload: EventPayload, isFromAgent = true): void {
    const json = serializePayload(payload);
    if (isFromAgent) this.allowance?.spend(json);
    if (this.pending.length === 0) this.pendingSince = performance.now();
    const isFirst = this.artifacts.apply(payload, json.length);
    this.pending.push({ payload, json, isFirst });
    this.pendingBytes += json.length;
  }

  /** Flushes after this time, unless another flush comes first. */
  private flushIn(ms: number): void {
    this.timer ??= setTimeout(() => void this.flush().catch(() => undefined), ms);
  }

  private isFull(): boolean {
    return this.pendingBytes >= MAX_BATCH_BYTES || this.pending.length >= MAX_BATCH_EVENTS;
  }

  private async append(): Promise<void> {
    if (this.failure) throw this.failure;
    const events = this.pending;
    const since = this.pendingSince;
    const end = this.ending;
    this.pending = [];
    this.pendingBytes = 0;
    if (events.length === 0) return;
    const batch: AppendBatch = {
      afterSequence: this.sequence,
      events,
      contextId: this.run.snapshot.task.contextId,
      end: end && { ...end, artifacts: this.artifacts.folded() },
      metadata: this.metadata,
    };
    this.metadata = undefined;
    const append = (): Promise<StoredBatch | undefined> => this.appendUntilKnown(batch);
    // A trace has a span only for the last append of a turn: a long stream has too many.
    const appended = end
      ? this.ports.tracing.during('end turn', this.run.traceparent, append, { kind: 'client' })
      : append();
    const written = await appended.catch((error: unknown) => {
      if (isUnstorable(error) && end?.error === undefined) return this.refuse(error);
      return this.fail(error);
    });
    if (!written) return this.fail(new AppendRefused('the task has ended or another attempt owns it'));
    if (end) this.endedTurn = { state: end.state, mayHaveChildren: written.hasChildren ?? true };
    const first = this.sequence + 1;
    this.sequence += events.length;
    const { tenantId, taskId, attempt } = this.run;
    this.ports.metrics.appended.inc(events.length);
    this.ports.metrics.append.observe({}, (performance.now() - since) / 1000);
    if (written.hasPushConfigs) this.wakePushes();
    await this.publish(tenantId, taskId, {
      lastSequence: this.sequence,
      events: events.map(({ json }, i) => ({
        sequence: first + i,
        attempt,
        json,
        ...(end && i === events.length - 1 && !this.hasMetadata && { outcome: end.outcome ?? 'none' }),
      })),
    });
  }

  /** Not awaited: a queue that is away must not hold up the run. The sweep finds due configs. */
  private wakePushes(): void {
    const { tenantId, taskId } = this.run;
    this.ports.messaging.enqueuePushes([{ tenantId, taskId }]).catch(() => undefined);
  }

  /**
   * Wait for the signal to be sent, for a second at most. If Redis or Postgres hangs, do not wait again before it has answered.
   */
  private async publish(tenantId: string, taskId: string, signal: TaskSignal): Promise<void> {
    const published = this.ports.messaging.publishTask(tenantId, taskId, signal).then(
      () => true,
      () => true,
    );
    if (this.isPublisherStuck || (await within(published, PUBLISH_WAIT_MS))) return;
    this.isPublisherStuck = true;
    void published.then(() => (this.isPublisherStuck = false));
  }

  /**
   * Try until Postgres has answered. After a lost connection it is unknown whether the batch was committed;
   * the guard on the log's head makes the second try safe. The attempt of the events in the log then shows whether they are ours.
   */
  private async appendUntilKnown(batch: AppendBatch): Promise<StoredBatch | undefined> {
    return retryTransient(
      async (failedTries) => {
        const result = await this.ports.runs.append(this.run, batch);
        if (result.ok) return result;
        return failedTries > 0 && (await this.isInLog(batch.events.length)) ? {} : undefined;
      },
      { backoff: RETRY },
    );
  }

  private async isInLog(count: number): Promise<boolean> {
    const { tenantId, taskId, attempt } = this.run;
    const events = await this.ports.tasks.readEvents(tenantId, taskId, this.sequence, count);
    return events.length === count && events.every((event) => event.attempt === attempt);
  }

  /** Drops the batch, and rejects all further events of the agent. */
  private refuse(cause: unknown): never {
    const failure = new TurnFailure('The agent sent something that cannot be stored', undefined, { cause });
    this.pending = [];
    this.pendingBytes = 0;
    this.ending = undefined;
    this.refused.abort(failure);
    throw failure;
  }

  private fail(error: unknown): never {
    const failure = error instanceof Error ? error : new Error(String(error));
    if (!this.failure) {
      this.failure = failure;
      this.ports.onFailure(failure);
    }
    throw failure;
  }
}
