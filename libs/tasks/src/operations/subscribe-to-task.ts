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
import { Relay } from '../relay/relay.js';
import { NO_LONGER_WATCHED } from '../relay/task-watch.js';
import { TaskFinder } from './find-task.js';

/** SubscribeToTask (A2A 1.0 §3.1.6) and tasks/resubscribe (0.3 §7.9). */
@Injectable()
export class SubscribeOperation {
  constructor(
    private readonly finder: TaskFinder,
    private readonly relay: Relay,
  ) {}

  /**
   * With `Last-Event-ID`, exactly the events after it, also of a task that has ended meanwhile. Without it,
   * the task as it is now, cut at a sequence, and only later events: an older `append` after a snapshot
   * would double the artifact (invariant 9). Where a profile replays instead, the whole log from event 1.
   */
  async *subscribeToTask(
    call: CallContext,
    request: SubscribeToTaskRequest,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem> {
    const { lastEventId } = call;
    const stored = await this.finder.find(call, request.id);
    const terminal = isTerminal(stateOf(stored));
    if (lastEventId === undefined && terminal) {
      yield finalItem(call, stored);
      return;
    }
    // A replay is read from event 1 also when it is resumed: its frames depend on those before them, and the
    // encoder leaves out what the caller has.
    const replays = call.rules.subscribe === 'replay';
    const cursor = replays ? 0 : cursorOf(stored, lastEventId);
    if (lastEventId === undefined && !replays) {
      yield { sequence: stored.sequence, payload: { $case: 'task', value: stored.task } };
    }
    if (terminal && cursor === stored.sequence) return;
    for await (const event of this.follow(call, request.id, stored, cursor, signal)) {
      if (replays && liesInThePast(event, stored)) continue;
      yield event;
    }
  }

  private async *follow(
    call: CallContext,
    id: string,
    { task, sequence }: StoredTask,
    cursor: number,
    signal: AbortSignal,
  ): AsyncGenerator<TaskEvent> {
    const watching = new AbortController();
    try {
      const key = { tenantId: call.tenantId, taskId: task.id };
      const both = AbortSignal.any([signal, watching.signal]);
      const watch = await this.relay.watch(key, cursor, sequence, both);
      // The subscription came after the snapshot: what happened between them is only in the log.
      watch.refresh();
      yield* this.finder.follow(call, id, watch);
    } finally {
      watching.abort(NO_LONGER_WATCHED);
    }
  }
}

const stateOf = ({ task }: StoredTask): TaskState => task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;

/** An interruption that was answered long ago would end a replayed stream too early for its reader. */
const liesInThePast = ({ sequence, payload }: TaskEvent, stored: StoredTask): boolean =>
  payload.$case === 'statusUpdate' &&
  sequence < stored.sequence &&
  isInterrupted(payload.value.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED);

function cursorOf(stored: StoredTask, lastEventId: number | undefined): number {
  if (lastEventId === undefined) return stored.sequence;
  if (lastEventId <= stored.sequence) return lastEventId;
  throw ProtocolError.invalidParams(
    'Last-Event-ID',
    `is beyond the task's newest event (${String(stored.sequence)}); send the last id you received`,
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
