import {
  type Agent,
  type CallContext,
  type ClientTaskIdRule,
  type Message,
  ProtocolError,
  type RequestDetails,
  type SendMessageRequest,
  type Task,
  type TaskSnapshot,
  TaskState,
  detailsOf,
  ownTasks,
  partsWithoutReserved,
  turnOfAlias,
  withoutReserved,
} from '@baton/a2a';
import { SENT_BY_AGENT, withApprover } from '@baton/agents';
import { Environment } from '@baton/config';
import { type EarlierTurn, type MessageKey, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { logKeyOf } from '../relay/log-key.js';
import { Relay } from '../relay/relay.js';
import { type TaskWatch } from '../relay/task-watch.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask, withMessageId } from '../turns/new-task.js';
import { approvalRecord, approverFor, approvingBy } from './approval-rights.js';
import { CallerExchanges } from './caller-exchanges.js';
import { messageKey } from './message-key.js';
import { explainPush, type PreparedPush, PushOperations } from './push-operations.js';
import { TaskFinder } from './task-finder.js';

/** Maximum number of tries to find the turn of a message that several callers send under one id at once. */
const MAX_TRIES = 5;

/** Lifetime of an Idempotency-Key in profiles that do not deduplicate by message id. */
const HEADER_HOURS = 24;

/** An accepted turn, and a watch that misses none of its events. */
export interface AcceptedTurn {
  /** The task as of the event with which the turn was accepted, or as it is when a repeated call joined it. */
  snapshot: TaskSnapshot;
  /** The artifacts that the turns before this one have made. */
  priorArtifacts: Task['artifacts'];
  watch: TaskWatch;
}

/** The id that a caller has chosen for a task, and the task that it names so far. */
interface ClientTaskId {
  clientId: string;
  previousTaskId?: string | undefined;
}

interface RoutedMessage {
  call: CallContext;
  /** Metadata of the request. A new task gets it. */
  metadata: SendMessageRequest['metadata'];
  message: Message;
  signal: AbortSignal;
  /** Unset: the message is never deduplicated. */
  key?: MessageKey | undefined;
  /** Metadata and configuration of the request. */
  details: RequestDetails | undefined;
  /** The push config of the turn. A repeated message joins its turn, and does not change the config. */
  push?: PreparedPush | undefined;
}

/** Decides whether a message begins a task, continues one or repeats a call, and accepts it. */
@Injectable()
export class MessageRouter {
  constructor(
    private readonly acceptance: TurnAcceptance,
    private readonly tasks: TaskStore,
    private readonly environment: Environment,
    private readonly finder: TaskFinder,
    private readonly push: PushOperations,
    private readonly relay: Relay,
    private readonly exchanges: CallerExchanges,
  ) {}

  /**
   * Accept the message where it belongs. A message makes one turn, even if it arrives several times. Repetitions join it.
   * @throws ProtocolError if the task it names is unknown, over, busy or of another context (A2A 1.0 §3.4.3)
   */
  async route(call: CallContext, request: SendMessageRequest, signal: AbortSignal): Promise<AcceptedTurn> {
    const { message, configuration, metadata } = request;
    if (!message) throw ProtocolError.invalidParams('message', 'is required');
    await this.exchanges.ensure(call, message.taskId);
    const config = configuration?.taskPushNotificationConfig;
    const push = config && (await this.push.prepare(call, config));
    const key = this.keyOf(call, request, message);
    const sent = { call, metadata, message, signal, key, details: detailsOf(request), push };
    const { clientTaskId } = call;
    const aliasRule = clientTaskId === undefined ? undefined : call.rules.clientTaskIds;
    try {
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        if (clientTaskId !== undefined && aliasRule) {
          const turn = await this.acceptUnderAlias(sent, clientTaskId, aliasRule);
          if ('watch' in turn) return turn;
          continue;
        }
        const turn = message.taskId
          ? await this.continueTask(sent, message)
          : await this.createTask(sent, message);
        const accepted = 'watch' in turn ? turn : await this.joinEarlier(sent, turn);
        if (accepted) return accepted;
      }
    } catch (error) {
      if (push) explainPush(error, `${call.rules.pushFields.inSend}.`);
      throw error;
    }
    throw new ProtocolError(
      'internal',
      aliasRule
        ? 'Too many messages with this id arrived at the same time: send it again'
        : 'This message arrived too often at the same time: send it again',
    );
  }

  /** Undefined: the message is never deduplicated. */
  private keyOf(call: CallContext, request: SendMessageRequest, message: Message): MessageKey | undefined {
    const { idempotencyHours: hours = this.environment.idempotencyHours } = call.agent.definition;
    if (hours === 0 && call.idempotencyKey === undefined) return undefined;
    const key = messageKey(call, request, message);
    return key && { ...key, hours: hours || HEADER_HOURS };
  }

  /**
   * The caller has chosen the id. It may have used the id before. Then that task decides what the id means.
   * @returns the earlier turn if another call was faster: route again
   */
  private async acceptUnderAlias(
    sent: RoutedMessage,
    clientId: string,
    rule: ClientTaskIdRule,
  ): Promise<AcceptedTurn | EarlierTurn> {
    const { call, message, signal, key } = sent;
    const { tenantId, profile, agent } = call;
    const own = ownTasks(call);
    const known = await this.tasks.findAlias({ tenantId, agentId: agent.id, profile, clientId, own });
    const alias = { clientId, previousTaskId: known?.taskId };
    // The id may also be the server's own, from an earlier answer.
    const taskId = known?.taskId ?? clientId;
    const stored = await this.finder.reachable(call, taskId);
    // After the task was read: the turn that set its state has written the key by then.
    const earlier = key && (await this.tasks.earlierTurn(tenantId, key));
    const joined = earlier && (await this.joinEarlier(sent, earlier));
    if (joined) return joined;
    if (!stored) await this.assertNotDeleted(call, clientId, taskId);
    if (stored?.agentId !== agent.id) return this.createTask(sent, message, alias);
    const { id, contextId } = stored.task;
    switch (turnOfAlias(stored.task, message, rule)) {
      case 'join':
        return this.join(call, stored, signal);
      case 'answer':
        return this.continueTask(sent, { ...message, taskId: id, contextId });
      case 'new-turn':
        return this.createTask(sent, { ...message, contextId }, alias);
    }
  }

  /**
   * A message that may repeat the message of a deleted task must not run a second time. Where only working tasks are
   * joined, a deleted task counts as ended: a new turn follows.
   */
  private async assertNotDeleted(call: CallContext, clientId: string, taskId: string): Promise<void> {
    if (call.rules.clientTaskIds?.joins !== 'any-task') return;
    const deleted = await this.finder.deleted(call, clientId, taskId);
    if (deleted) throw deleted;
  }

  /**
   * Accept a message as a new task.
   * @returns the earlier turn under the message's key or the alias, if there is one; nothing was written then
   */
  private async createTask(
    { call, metadata, signal, key, push, details }: RoutedMessage,
    message: Message,
    alias?: ClientTaskId,
  ): Promise<AcceptedTurn | EarlierTurn> {
    const { tenantId, agent, extensions, traceparent, profile, principal } = call;
    const owner = principal.key;
    const isGuest = principal.kind === 'guest';
    assertEnabled(agent);
    const own = fromCaller(message);
    const task = newTask(own, {
      contextId: message.contextId || undefined,
      metadata: withoutReserved(metadata),
    });
    const created = await this.acceptance.createTask(
      {
        tenantId,
        owner,
        isGuest,
        agent,
        label: call.label,
        task,
        details,
        extensions,
        traceparent,
        alias: alias && { profile, ...alias },
        key,
        push: push?.forTask(task.id),
      },
      // Subscribing does not need the row.
      () => this.relay.watch(logKeyOf(call, task.id), 1, 1, signal),
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
  private async continueTask(
    { call, signal, key, push, details }: RoutedMessage,
    message: Message,
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
    const withIds = { ...withMessageId(own), taskId, contextId, metadata };
    const record = approver && approvalRecord(call, stored);
    const continued = await this.acceptance.continueTask(
      {
        tenantId,
        isGuest,
        agent,
        agentId: stored.agentId,
        message: withIds,
        sender: principal.key,
        details,
        extensions,
        traceparent,
        key,
        ...(record && { record, ...approvingBy(call) }),
        push: push?.forTask(taskId),
      },
      async (sequence) => ({
        watch: await this.relay.watch(logKeyOf(call, taskId), sequence, sequence, signal),
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
  private async join(call: CallContext, snapshot: TaskSnapshot, signal: AbortSignal): Promise<AcceptedTurn> {
    const key = logKeyOf(call, snapshot.task.id);
    const watch = await this.relay.watch(key, snapshot.sequence, snapshot.sequence, signal);
    // The subscription came after the snapshot: events between them are only in the log.
    watch.refresh();
    // The earlier artifacts of the task are part of the reply to a repeated call.
    return { snapshot, priorArtifacts: [], watch };
  }

  /**
   * Join the turn that a message with the same key has made. Undefined: its task is gone, and the key counts as
   * new from now on.
   * @throws ProtocolError if the key is an Idempotency-Key and the message was another one
   */
  private async joinEarlier(
    { call, key, signal }: RoutedMessage,
    earlier: EarlierTurn,
  ): Promise<AcceptedTurn | undefined> {
    const stored = await this.finder.reachable(call, earlier.taskId);
    if (stored) {
      if (!isSameContent(key?.content, earlier.content)) throw usedOtherwise(call);
      return this.join(call, stored, signal);
    }
    if (key) key.goneTaskId = earlier.taskId;
    return undefined;
  }
}

/**
 * The message without metadata that only the platform writes. `baton.sender` stays: another Baton marks a message of an agent with
 * it, which takes rights away.
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

const REFUSALS = {
  terminal: 'the task has ended; send a message without taskId to start a new one',
  busy: 'the task is still working; wait until it asks for input, or cancel it',
  late: 'the time for an answer is over, and the task has gone on without it; wait until it asks for input, or cancel it',
};

function refusal(taskId: string, reason: keyof typeof REFUSALS, state: TaskState | undefined): ProtocolError {
  const why = REFUSALS[reason];
  const canceled = reason === 'terminal' && state === TaskState.TASK_STATE_CANCELED;
  return new ProtocolError(canceled ? 'task-canceled' : 'unsupported-operation', `message.taskId: ${why}`, {
    metadata: { taskId },
  });
}

const isSameContent = (sent: Buffer | null | undefined, first: Buffer | null): boolean =>
  !sent || !first || sent.equals(first);

/** The Idempotency-Key belongs to another message. */
const usedOtherwise = ({ idempotencyKey }: CallContext): ProtocolError =>
  ProtocolError.invalidParams(
    'Idempotency-Key',
    `"${idempotencyKey ?? ''}" was sent before with another message: use a new key for each message`,
  );
