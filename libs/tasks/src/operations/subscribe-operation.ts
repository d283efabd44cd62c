import {
  type CallContext,
  ProtocolError,
  type StreamItem,
  type SubscribeToTaskRequest,
  type TaskEvent,
  TaskState,
  isInterrupted,
  isTerminal,
} from '@baton/a2a';
import type { StoredTask } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { logKeyOf } from '../relay/log-key.js';
import { Relay } from '../relay/relay.js';
import { type Opening, TaskFinder, takeFirst } from './task-finder.js';

/** SubscribeToTask (A2A 1.0 §3.1.6) and tasks/resubscribe (0.3 §7.9). */
@Injectable()
export class SubscribeOperation {
  constructor(
    private readonly finder: TaskFinder,
    private readonly relay: Relay,
  ) {}

  /**
   * With `Last-Event-ID`: exactly the events after it, also of a task that has ended meanwhile. Without it: a snapshot
   * of the task, and only events after the snapshot. An older `append` after a snapshot would double the artifact
   * (invariant 9). A profile that replays gets the whole log from event 1.
   * @throws ProtocolError `task-not-found`; `invalid-params` for a `Last-Event-ID` after the newest event; `unsupported-operation` in
   *   1.0 for a task that has ended
   */
  async *subscribeToTask(
    call: CallContext,
    request: SubscribeToTaskRequest,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem[]> {
    const opening = await this.open(call, request.id);
    if (opening.first) yield takeFirst(opening);
    if (opening.isOver) return;
    for await (const events of this.follow(call, request.id, opening, signal)) {
      // Out of the array: the reader empties only the array that it gets.
      yield call.rules.subscribe === 'replay'
        ? events.splice(0).filter((event) => !isPastInterruption(event, opening.head))
        : events;
    }
  }

  private async open(call: CallContext, id: string): Promise<SubscriptionOpening> {
    const { lastEventId } = call;
    // A resumed replay also reads from event 1: frames depend on earlier ones, and the encoder leaves out those that
    // the caller has.
    const replays = call.rules.subscribe === 'replay';
    const isNew = lastEventId === undefined;
    const isWhole = isNew && call.rules.artifacts === 'read';
    const stored = await this.finder.find(call, id, isWhole ? {} : { historyLength: 0, artifacts: false });
    const { sequence: head, task } = stored;
    const terminal = isTerminal(task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED);
    const cursor = replays ? 0 : cursorOf(head, lastEventId);
    const opening = { taskId: task.id, head, cursor, isOver: terminal && (isNew || cursor === head) };
    if (!isNew) return { ...opening, first: undefined };
    if (terminal) return { ...opening, first: finalItem(call, stored) };
    const snapshot: StreamItem = { sequence: head, payload: { $case: 'task', value: task } };
    return { ...opening, first: replays ? undefined : snapshot };
  }

  private async *follow(
    call: CallContext,
    id: string,
    { taskId, cursor, head }: SubscriptionOpening,
    signal: AbortSignal,
  ): AsyncGenerator<TaskEvent[]> {
    const key = logKeyOf(call, taskId);
    const watch = await this.relay.watch(key, cursor, head, signal);
    // The subscription came after the snapshot: events between them are only in the log.
    watch.refresh();
    yield* this.finder.follow(call, id, watch, call.rules.streamEnds);
  }
}

interface SubscriptionOpening extends Opening {
  /** Sequence of the newest event. */
  head: number;
  /** Sequence after which the stream continues. */
  cursor: number;
}

/** An interruption that was answered before must not end a replayed stream. */
const isPastInterruption = ({ sequence, payload }: TaskEvent, head: number): boolean =>
  payload.$case === 'statusUpdate' &&
  sequence < head &&
  isInterrupted(payload.value.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED);

function cursorOf(head: number, lastEventId: number | undefined): number {
  if (lastEventId === undefined) return head;
  if (lastEventId <= head) return lastEventId;
  throw ProtocolError.invalidParams(
    'Last-Event-ID',
    `is beyond the task's newest event (${String(head)}); send the last id you received`,
  );
}

/**
 * A terminal task has nothing to follow: 1.0 refuses (§3.1.6), 0.3 gets its final status once more, and a
 * profile that replays gets the task.
 */
function finalItem(call: CallContext, { task, sequence }: StoredTask): StreamItem {
  if (call.rules.subscribe === 'replay') return { sequence, payload: { $case: 'task', value: task } };
  if (call.version !== '0.3') {
    throw new ProtocolError('unsupported-operation', 'The task has ended; read it with GetTask', {
      metadata: { taskId: task.id },
    });
  }
  const { id: taskId, contextId, status } = task;
  return {
    sequence,
    payload: { $case: 'statusUpdate', value: { taskId, contextId, status, metadata: undefined } },
  };
}
