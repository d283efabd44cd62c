import {
  type CallContext,
  type Message,
  ProtocolError,
  type SendMessageRequest,
  type Task,
  type TaskCut,
  TaskState,
} from '@baton/a2a';
import { type NextTurnResult, TaskStore } from '@baton/database';
import { Messaging, type RunJob } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { v7 as uuid } from 'uuid';
import { pushNotSupported } from './push-not-supported.js';
import { Relay } from '../relay/relay.js';
import type { TaskWatch } from '../relay/task-watch.js';

/** A turn that is in Postgres, and a watch that misses none of its events. */
export interface AcceptedTurn {
  /** The task as of the event with which the turn was accepted. */
  cut: TaskCut;
  watch: TaskWatch;
}

/**
 * Takes a message in: one transaction writes task, message, run and event, and only then is the run put on
 * the queue. The queued row is the outbox: if the queue is away the sweeper enqueues the run later, and the
 * caller's task exists all the same (invariant 1).
 */
@Injectable()
export class TurnIntake {
  constructor(
    private readonly tasks: TaskStore,
    private readonly messaging: Messaging,
    private readonly relay: Relay,
    private readonly logger: Logger,
  ) {}

  /**
   * Accept the message as a new task, or as the next turn of the interrupted task it names.
   * @throws ProtocolError if the named task is unknown, over, busy or of another context (A2A 1.0 §3.4.3)
   */
  async accept(call: CallContext, request: SendMessageRequest, signal: AbortSignal): Promise<AcceptedTurn> {
    const message = request.message;
    if (!message) throw ProtocolError.invalidParams('message', 'is required');
    if (request.configuration?.taskPushNotificationConfig) throw pushNotSupported();
    return message.taskId
      ? this.continueTask(call, message, signal)
      : this.createTask(call, message, request.metadata, signal);
  }

  private async createTask(
    call: CallContext,
    message: Message,
    metadata: Task['metadata'],
    signal: AbortSignal,
  ): Promise<AcceptedTurn> {
    const taskId = uuid();
    const contextId = message.contextId || uuid();
    const task: Task = {
      id: taskId,
      contextId,
      status: {
        state: TaskState.TASK_STATE_SUBMITTED,
        message: undefined,
        timestamp: new Date().toISOString(),
      },
      artifacts: [],
      history: [{ ...message, taskId, contextId }],
      metadata,
    };
    const { tenantId, agent, extensions, traceparent } = call;
    const run = { tenantId, taskId, runId: uuid(), attempt: 0 };
    // Subscribing does not need the row: both at once, and the run is enqueued when both are done.
    const [watch] = await Promise.all([
      this.relay.watch({ tenantId, taskId }, 1, 1, signal),
      this.tasks.create({ tenantId, agentId: agent.id, runId: run.runId, task, extensions, traceparent }),
    ]);
    await this.enqueue(run);
    return { cut: { task, sequence: 1 }, watch };
  }

  private async continueTask(
    call: CallContext,
    message: Message,
    signal: AbortSignal,
  ): Promise<AcceptedTurn> {
    const { tenantId, agent, extensions, traceparent } = call;
    const { taskId } = message;
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    if (!stored || stored.agentId !== agent.id) throw ProtocolError.taskNotFound(taskId);
    const { contextId } = stored.task;
    if (message.contextId && message.contextId !== contextId) {
      throw ProtocolError.invalidParams(
        'message.contextId',
        `contradicts the task, which is in another context`,
      );
    }
    const runId = uuid();
    const turn = { tenantId, agentId: agent.id, taskId, runId, message: { ...message, contextId } };
    const accepted = await this.tasks.continue({ ...turn, extensions, traceparent });
    if (!accepted.ok) throw refusal(taskId, accepted);
    const { sequence } = accepted;
    const watch = await this.relay.watch({ tenantId, taskId }, sequence, sequence, signal);
    const cut = await this.tasks.get(tenantId, taskId);
    await this.enqueue({ tenantId, taskId, runId, attempt: 0 });
    if (!cut) throw ProtocolError.taskNotFound(taskId);
    // A cancel may have come in between: what the snapshot shows must not follow it once more.
    watch.skipTo(cut.sequence);
    return { cut, watch };
  }

  private async enqueue(run: RunJob): Promise<void> {
    try {
      await this.messaging.enqueueRuns([run]);
    } catch (error) {
      this.logger.warn('queue is away; the sweeper will enqueue the run', { err: error, ...run });
    }
  }
}

function refusal(taskId: string, { reason }: Extract<NextTurnResult, { ok: false }>): ProtocolError {
  if (reason === 'not-found') return ProtocolError.taskNotFound(taskId);
  const why =
    reason === 'terminal'
      ? 'the task has ended; send a message without taskId to start a new one'
      : 'the task is still working; wait until it asks for input, or cancel it';
  return new ProtocolError('unsupported-operation', `message.taskId: ${why}`, { metadata: { taskId } });
}
