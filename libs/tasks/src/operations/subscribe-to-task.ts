import {
  type CallContext,
  ProtocolError,
  type StreamItem,
  type SubscribeToTaskRequest,
  isTerminal,
  TaskState,
} from '@baton/a2a';
import { type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { Relay } from '../relay/relay.js';
import { NO_LONGER_WATCHED } from '../relay/task-watch.js';

/** SubscribeToTask (A2A 1.0 §3.1.6) and tasks/resubscribe (0.3 §7.9). */
@Injectable()
export class SubscribeOperation {
  constructor(
    private readonly tasks: TaskStore,
    private readonly relay: Relay,
  ) {}

  /**
   * With `Last-Event-ID`, exactly the events after it, also of a task that has ended meanwhile. Without it,
   * the task as it is now, cut at a sequence, and only later events: an older `append` after a snapshot
   * would double the artifact (invariant 9).
   */
  async *subscribeToTask(
    call: CallContext,
    request: SubscribeToTaskRequest,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem> {
    const { tenantId, lastEventId } = call;
    const stored = await this.tasks.get(tenantId, request.id, { artifacts: lastEventId === undefined });
    if (!stored || stored.agentId !== call.agent.id) throw ProtocolError.taskNotFound(request.id);
    const terminal = isTerminal(stored.task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED);
    if (lastEventId === undefined && terminal) {
      yield finalStatus(call, stored);
      return;
    }
    const cursor = cursorOf(stored, lastEventId);
    if (lastEventId === undefined) {
      yield { sequence: stored.sequence, payload: { $case: 'task', value: stored.task } };
    }
    if (terminal && cursor === stored.sequence) return;
    const watching = new AbortController();
    try {
      const key = { tenantId, taskId: request.id };
      const both = AbortSignal.any([signal, watching.signal]);
      const watch = await this.relay.watch(key, cursor, stored.sequence, both);
      // The subscription came after the snapshot: what happened between them is only in the log.
      watch.refresh();
      yield* watch.events();
    } finally {
      watching.abort(NO_LONGER_WATCHED);
    }
  }
}

function cursorOf(stored: StoredTask, lastEventId: number | undefined): number {
  if (lastEventId === undefined) return stored.sequence;
  if (lastEventId <= stored.sequence) return lastEventId;
  throw ProtocolError.invalidParams(
    'Last-Event-ID',
    `is beyond the task's newest event (${String(stored.sequence)}); send the last id you received`,
  );
}

/** A terminal task has nothing to follow: 1.0 refuses (§3.1.6), 0.3 gets its final status once more. */
function finalStatus(call: CallContext, { task, sequence }: StoredTask): StreamItem {
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
