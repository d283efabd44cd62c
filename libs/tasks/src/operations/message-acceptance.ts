import {
  type Agent,
  type CallContext,
  Message,
  ProtocolError,
  type RequestDetails,
  type SendMessageRequest,
  type Task,
  type TaskSnapshot,
  TaskState,
  partsWithoutReserved,
  withoutReserved,
} from '@baton/a2a';
import { SENT_BY_AGENT, withApprover } from '@baton/agents';
import { type EarlierTurn, type MessageKey, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { Relay } from '../relay/relay.js';
import { type TaskWatch } from '../relay/task-watch.js';
import { TurnAcceptance, newTask, withMessageId } from '../turns/turn-acceptance.js';
import { approvalRecord, approverFor, approvingBy } from './approval-rights.js';
import { TaskFinder } from './task-finder.js';
import { type PreparedPush } from './push-operations.js';

/** An accepted turn, and a watch that misses none of its events. */
export interface AcceptedTurn {
  /** The task as of the event with which the turn was accepted, or as it is when a repeated call joined it. */
  snapshot: TaskSnapshot;
  /** The artifacts that the turns before this one have made. */
  priorArtifacts: Task['artifacts'];
  watch: TaskWatch;
}

/** The id that a caller has chosen for a task, and the task that it names so far. */
export interface ClientTaskId {
  clientId: string;
  previousTaskId?: string | undefined;
}

/** The data that is stored together with a message. */
interface StoredWithMessage {
  /** What the request says beside the message. */
  details: RequestDetails | undefined;
  key?: MessageKey | undefined;
  push?: PreparedPush | undefined;
}

/** Accepts the messages of calls, and opens the watch for the answer. */
@Injectable()
export class MessageAcceptance {
  constructor(
    private readonly acceptance: TurnAcceptance,
    private readonly tasks: TaskStore,
    private readonly finder: TaskFinder,
    private readonly relay: Relay,
  ) {}

  /**
   * Accept a message as a new task.
   * @returns the earlier turn under the message's key or the alias, if there is one; nothing was written then
   */
  async createTask(
    call: CallContext,
    request: SendMessageRequest,
    message: Message,
    signal: AbortSignal,
    { alias, key, push, details }: StoredWithMessage & { alias?: ClientTaskId },
  ): Promise<AcceptedTurn | EarlierTurn> {
    const { tenantId, agent, extensions, traceparent, profile, principal } = call;
    const owner = principal.key;
    const isGuest = principal.kind === 'guest';
    assertEnabled(agent);
    const said = fromCaller(message);
    const task = newTask(said, {
      contextId: message.contextId || undefined,
      metadata: withoutReserved(request.metadata),
    });
    const created = await this.acceptance.createTask(
      {
        tenantId,
        owner,
        isGuest,
        agent,
        task,
        details,
        extensions,
        traceparent,
        alias: alias && { profile, ...alias },
        key,
        push: push?.forTask(task.id),
      },
      // Subscribing does not need the row.
      () => this.relay.watch({ tenantId, taskId: task.id }, 1, 1, signal),
    );
    const watch = created.opened;
    if (created.created) return { snapshot: { task, sequence: 1 }, priorArtifacts: [], watch };
    this.relay.leave(watch);
    return created.earlier;
  }

  /**
   * Accept a message as the next turn of an interrupted task.
   * @returns the earlier turn under the message's key, if there is one; nothing was written then
   * @throws ProtocolError if the agent is disabled, or the task is unknown, over, busy or of another context (A2A 1.0 §3.4.3),
   * or waits for an approval that the caller may not give
   */
  async continueTask(
    call: CallContext,
    message: Message,
    signal: AbortSignal,
    { key, push, details }: StoredWithMessage,
  ): Promise<AcceptedTurn | EarlierTurn> {
    const stored = await this.finder.find(call, message.taskId, { historyLength: 0, artifacts: false });
    const { id: taskId, contextId, status } = stored.task;
    if (message.contextId && message.contextId !== contextId) {
      throw ProtocolError.invalidParams(
        'message.contextId',
        'does not match the task, which is in another context',
      );
    }
    const { tenantId, agent, extensions, traceparent, principal } = call;
    const isGuest = principal.kind === 'guest';
    assertEnabled(agent);
    const own = fromCaller(message);
    const approver = approverFor(call, stored);
    const metadata = withApprover(own.metadata, approver);
    const said = { ...withMessageId(own), taskId, contextId, metadata };
    const record = approver && approvalRecord(call, stored);
    const continued = await this.acceptance.continueTask(
      {
        tenantId,
        isGuest,
        agent,
        agentId: stored.agentId,
        message: said,
        details,
        extensions,
        traceparent,
        key,
        ...(record && { record, ...approvingBy(call) }),
        push: push?.forTask(taskId),
      },
      async (sequence) => ({
        watch: await this.relay.watch({ tenantId, taskId }, sequence, sequence, signal),
        snapshot: await this.tasks.get(tenantId, taskId, { memory: call.memory }),
      }),
    );
    if (!continued.ok) {
      if (continued.reason === 'repeated') return continued.earlier;
      if (continued.reason === 'not-found') throw await this.finder.notFound(call, taskId, taskId);
      throw refusal(taskId, continued.reason, status?.state);
    }
    const { snapshot, watch } = continued.opened;
    if (!snapshot) throw await this.finder.notFound(call, taskId, taskId);
    // A cancel may have happened in between: events in the snapshot must not follow it again.
    watch.skipTo(snapshot.sequence);
    return { snapshot, priorArtifacts: snapshot.task.artifacts, watch };
  }

  /** Wait for the existing task, as a repeated call does. */
  async join(call: CallContext, snapshot: TaskSnapshot, signal: AbortSignal): Promise<AcceptedTurn> {
    const key = { tenantId: call.tenantId, taskId: snapshot.task.id };
    const watch = await this.relay.watch(key, snapshot.sequence, snapshot.sequence, signal);
    // The subscription came after the snapshot: events between them are only in the log.
    watch.refresh();
    // The earlier artifacts of the task are part of the reply to a repeated call.
    return { snapshot, priorArtifacts: [], watch };
  }
}

/**
 * The message without metadata that only the platform writes. `baton.sender` stays: another Baton says with it that an
 * agent has sent the message, which takes rights away.
 */
const fromCaller = (message: Message): Message => ({
  ...message,
  metadata: withoutReserved(message.metadata, Object.keys(SENT_BY_AGENT)),
  parts: partsWithoutReserved(message.parts),
});

/** Throws if the agent takes no new messages. */
function assertEnabled({ slug, status }: Agent): void {
  if (status === undefined) return;
  throw new ProtocolError(
    'agent-disabled',
    `The agent "${slug}" is ${status} and takes no messages: ask its tenant to enable it, or send to another`,
    { metadata: { agent: slug } },
  );
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
