import {
  type Agent,
  type CallContext,
  type Message,
  ProtocolError,
  type RunRetry,
  type SendMessageRequest,
  type Task,
  type TaskSnapshot,
  TaskState,
  runRetry,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { type EarlierTurn, type MessageKey, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { v7 as uuid } from 'uuid';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { Relay } from '../relay/relay.js';
import type { TaskWatch } from '../relay/task-watch.js';
import { explainQuota } from '../turns/ensure-task.js';
import { TaskFinder } from './find-task.js';

/** A turn that is in Postgres, and a watch that misses none of its events. */
export interface AcceptedTurn {
  /** The task as of the event with which the turn was accepted, or as it is when a repeated call joined it. */
  cut: TaskSnapshot;
  /** The artifacts that the turns before this one have made. */
  priorArtifacts: Task['artifacts'];
  watch: TaskWatch;
}

/** The id that a caller has chosen for a task, and the task it named before. */
export interface TaskAlias {
  clientId: string;
  previousTaskId?: string | undefined;
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
    private readonly finder: TaskFinder,
    private readonly relay: Relay,
    private readonly dispatcher: RunDispatcher,
    private readonly environment: Environment,
  ) {}

  /**
   * Accept a message as a new task.
   * @returns what there is already under the message's key, or under the alias; nothing was written then
   */
  async createTask(
    call: CallContext,
    request: SendMessageRequest,
    message: Message,
    signal: AbortSignal,
    { alias, key }: { alias?: TaskAlias; key?: MessageKey | undefined },
  ): Promise<AcceptedTurn | EarlierTurn> {
    assertEnabled(call.agent);
    const task = newTask(message, request.metadata);
    const { tenantId, agent, extensions, traceparent, profile } = call;
    const run = { tenantId, taskId: task.id, runId: uuid(), attempt: 0 };
    const quota = await this.dispatcher.quotaFor(tenantId);
    // Subscribing does not need the row: both at once, and the run is enqueued when both are done.
    const [watch, { created, dispatched, ...earlier }] = await Promise.all([
      this.relay.watch({ tenantId, taskId: task.id }, 1, 1, signal),
      this.tasks.create({
        ...{ tenantId, agentId: agent.id, runId: run.runId, task, extensions, traceparent },
        alias: alias && { profile, ...alias },
        ...{ key, quota, retry: this.retryOf(agent) },
      }),
    ]).catch(explainQuota(quota));
    if (!created) {
      this.relay.leave(watch);
      return earlier;
    }
    await this.dispatcher.enqueue(run, dispatched);
    return { cut: { task, sequence: 1 }, priorArtifacts: [], watch };
  }

  /**
   * Accept a message as the next turn of an interrupted task.
   * @returns what there is already under the message's key; nothing was written then
   * @throws ProtocolError if the agent is disabled, or the task is unknown, over, busy or of another context (A2A 1.0 §3.4.3)
   */
  async continueTask(
    call: CallContext,
    message: Message,
    signal: AbortSignal,
    key?: MessageKey,
  ): Promise<AcceptedTurn | EarlierTurn> {
    const stored = await this.finder.find(call, message.taskId, { historyLength: 0, artifacts: false });
    const { id: taskId, contextId, status } = stored.task;
    if (message.contextId && message.contextId !== contextId) {
      throw ProtocolError.invalidParams(
        'message.contextId',
        'contradicts the task, which is in another context',
      );
    }
    const { tenantId, agent, extensions, traceparent } = call;
    assertEnabled(agent);
    const retry = this.retryOf(agent);
    const runId = uuid();
    const turn = { tenantId, agentId: stored.agentId, taskId, runId };
    const said = { ...named(message), taskId, contextId };
    const quota = await this.dispatcher.quotaFor(tenantId);
    const next = { ...turn, message: said, extensions, traceparent, key, quota, retry };
    const accepted = await this.tasks.continue(next).catch(explainQuota(quota));
    if (!accepted.ok) {
      if (accepted.reason === 'repeated') return accepted.earlier;
      if (accepted.reason === 'not-found') throw await this.finder.notFound(call, taskId, taskId);
      throw refusal(taskId, accepted.reason, status?.state);
    }
    const { sequence, dispatched } = accepted;
    const watch = await this.relay.watch({ tenantId, taskId }, sequence, sequence, signal);
    const cut = await this.tasks.get(tenantId, taskId, { memory: call.memory });
    await this.dispatcher.enqueue({ tenantId, taskId, runId, attempt: 0 }, dispatched);
    if (!cut) throw await this.finder.notFound(call, taskId, taskId);
    // A cancel may have come in between: what the snapshot shows must not follow it once more.
    watch.skipTo(cut.sequence);
    return { cut, priorArtifacts: cut.task.artifacts, watch };
  }

  /** Wait for the task there is, as a repeated call does. */
  async join(call: CallContext, cut: TaskSnapshot, signal: AbortSignal): Promise<AcceptedTurn> {
    const key = { tenantId: call.tenantId, taskId: cut.task.id };
    const watch = await this.relay.watch(key, cut.sequence, cut.sequence, signal);
    // The subscription came after the snapshot: what happened between them is only in the log.
    watch.refresh();
    // What the task has made so far is part of the reply that the repeated call asks for.
    return { cut, priorArtifacts: [], watch };
  }

  private retryOf({ definition }: Agent): RunRetry {
    return runRetry(definition.retry, this.environment.maxAttempts);
  }
}

/** Throws for an agent that takes no messages now; what it has been asked before, it still does. */
function assertEnabled({ slug, closed }: Agent): void {
  if (closed === undefined) return;
  throw new ProtocolError(
    'agent-disabled',
    `The agent "${slug}" is ${closed} and takes no messages: ask its tenant to enable it, or send to another`,
    { metadata: { agent: slug } },
  );
}

/** Some families let callers leave the message's id out. */
const named = (message: Message): Message => ({ ...message, messageId: message.messageId || uuid() });

function newTask(message: Message, metadata: Task['metadata']): Task {
  const id = uuid();
  const contextId = message.contextId || uuid();
  const timestamp = new Date().toISOString();
  return {
    id,
    contextId,
    status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp },
    artifacts: [],
    history: [{ ...named(message), taskId: id, contextId }],
    metadata,
  };
}

function refusal(taskId: string, reason: 'terminal' | 'busy', state: TaskState | undefined): ProtocolError {
  const why =
    reason === 'terminal'
      ? 'the task has ended; send a message without taskId to start a new one'
      : 'the task is still working; wait until it asks for input, or cancel it';
  const canceled = reason === 'terminal' && state === TaskState.TASK_STATE_CANCELED;
  return new ProtocolError(canceled ? 'task-canceled' : 'unsupported-operation', `message.taskId: ${why}`, {
    metadata: { taskId },
  });
}
