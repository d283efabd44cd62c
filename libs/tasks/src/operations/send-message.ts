import {
  type CallContext,
  ProtocolError,
  type SendMessageRequest,
  type SendResult,
  type StreamItem,
  type Task,
  TaskState,
  endsTurn,
  historyTail,
} from '@baton/a2a';
import { type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { NO_LONGER_WATCHED } from '../relay/task-watch.js';
import { TurnIntake } from './accept-turn.js';

/** SendMessage and SendStreamingMessage (A2A 1.0 §3.1.1, §3.1.2). */
@Injectable()
export class SendOperations {
  constructor(
    private readonly intake: TurnIntake,
    private readonly tasks: TaskStore,
  ) {}

  /** Blocks until the turn ends, unless `returnImmediately`. Rejects with `agent-threw` if the agent did. */
  async sendMessage(
    call: CallContext,
    request: SendMessageRequest,
    signal: AbortSignal,
  ): Promise<SendResult> {
    const historyLength = request.configuration?.historyLength;
    const watching = new AbortController();
    try {
      const both = AbortSignal.any([signal, watching.signal]);
      const { cut, watch } = await this.intake.accept(call, request, both);
      if (request.configuration?.returnImmediately) {
        const history = historyTail(cut.task.history, historyLength);
        return { $case: 'task', value: { ...cut.task, history } };
      }
      if (!turnIsOver(cut.task)) for await (const _ of watch.events());
      const stored = await this.tasks.get(call.tenantId, cut.task.id, { historyLength });
      if (!stored) throw ProtocolError.taskNotFound(cut.task.id);
      return replyOf(stored);
    } finally {
      watching.abort(NO_LONGER_WATCHED);
    }
  }

  /** The task as accepted, then every event up to the one that ends the turn. */
  async *sendStreamingMessage(
    call: CallContext,
    request: SendMessageRequest,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem> {
    const watching = new AbortController();
    try {
      const { cut, watch } = await this.intake.accept(
        call,
        request,
        AbortSignal.any([signal, watching.signal]),
      );
      const history = historyTail(cut.task.history, request.configuration?.historyLength);
      yield { sequence: cut.sequence, payload: { $case: 'task', value: { ...cut.task, history } } };
      if (!turnIsOver(cut.task)) yield* watch.events();
    } finally {
      watching.abort(NO_LONGER_WATCHED);
    }
  }
}

/** A cancel can overtake the turn between its acceptance and the first look at it. */
const turnIsOver = (task: Task): boolean => task.status !== undefined && endsTurn(task.status.state);

/** What a blocking caller gets: the task, the agent's bare message, or the error that the agent threw. */
function replyOf({ task, outcome }: StoredTask): SendResult {
  const { status } = task;
  if (outcome === 'agent-threw' && status?.state === TaskState.TASK_STATE_FAILED) {
    throw new ProtocolError('agent-threw', 'The agent stopped with an error; the task has failed', {
      metadata: { taskId: task.id },
    });
  }
  const over = status && endsTurn(status.state);
  if (over && outcome === 'message' && status.message) return { $case: 'message', value: status.message };
  return { $case: 'task', value: task };
}
