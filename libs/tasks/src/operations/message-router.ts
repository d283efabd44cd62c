import { hash } from 'node:crypto';
import {
  type CallContext,
  type ClientTaskIdRule,
  Message,
  ProtocolError,
  type RequestDetails,
  type SendMessageRequest,
  detailsOf,
  ownTasks,
  turnOfAlias,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { type EarlierTurn, type MessageKey, type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { TaskFinder } from './task-finder.js';
import { explainPush, type PreparedPush, PushOperations } from './push-operations.js';
import { MessageAcceptance, type AcceptedTurn, type ClientTaskId } from './message-acceptance.js';

/** Maximum number of tries to find the turn of a message that several callers send under one id at once. */
const MAX_LOOKS = 5;

/** How long an Idempotency-Key counts where messages are not known by their id: who sends one relies on it. */
const HEADER_HOURS = 24;

interface RoutedMessage {
  call: CallContext;
  request: SendMessageRequest;
  message: Message;
  signal: AbortSignal;
  /** Unset: messages are not deduplicated. */
  key?: MessageKey;
  details: RequestDetails | undefined;
  /** Who is to be told of the turn. A repeated message joins its turn, and changes nothing here. */
  push?: PreparedPush | undefined;
}

/** Finds out what a message is: a new task, the next turn of one, or the repetition of a call. */
@Injectable()
export class MessageRouter {
  constructor(
    private readonly acceptance: MessageAcceptance,
    private readonly tasks: TaskStore,
    private readonly environment: Environment,
    private readonly finder: TaskFinder,
    private readonly push: PushOperations,
  ) {}

  /**
   * Accept the message where it belongs.
   * @throws ProtocolError if the task it names is unknown, over, busy or of another context (A2A 1.0 §3.4.3)
   */
  async route(call: CallContext, request: SendMessageRequest, signal: AbortSignal): Promise<AcceptedTurn> {
    const { message, configuration } = request;
    if (!message) throw ProtocolError.invalidParams('message', 'is required');
    const config = configuration?.taskPushNotificationConfig;
    const push = config && (await this.push.prepare(call, config));
    const details = detailsOf(request);
    const sent = { call, request, message, signal, key: this.keyOf(call, request, message), push, details };
    if (!push) return this.routeSent(sent);
    return this.routeSent(sent).catch((error: unknown) =>
      explainPush(error, `${call.rules.pushFields.inSend}.`),
    );
  }

  private routeSent(sent: RoutedMessage): Promise<AcceptedTurn> {
    const { clientTaskId, rules } = sent.call;
    if (clientTaskId === undefined || !rules.clientTaskIds) return this.routeNew(sent);
    return this.routeByAlias(sent, clientTaskId, rules.clientTaskIds);
  }

  /** Undefined: the message is never deduplicated. */
  private keyOf(call: CallContext, request: SendMessageRequest, message: Message): MessageKey | undefined {
    const { idempotencyHours: hours = this.environment.idempotencyHours } = call.agent.definition;
    if (hours === 0 && call.idempotencyKey === undefined) return undefined;
    const key = messageKey(call, request, message);
    return key && { ...key, hours: hours || HEADER_HOURS };
  }

  /** A message makes one turn, even if it arrives several times. Repetitions join it. */
  private async routeNew(sent: RoutedMessage): Promise<AcceptedTurn> {
    const { call, request, message, signal, key, push, details } = sent;
    for (let look = 0; look < MAX_LOOKS; look++) {
      const turn = message.taskId
        ? await this.acceptance.continueTask(call, message, signal, { key, push, details })
        : await this.acceptance.createTask(call, request, message, signal, { key, push, details });
      const accepted = 'watch' in turn ? turn : await this.join(sent, turn);
      if (accepted) return accepted;
    }
    throw new ProtocolError('internal', 'This message arrived too often at the same time: send it again');
  }

  /** The caller has chosen the id. It may have used the id before. Then that task decides what the id means. */
  private async routeByAlias(
    sent: RoutedMessage,
    clientId: string,
    rule: ClientTaskIdRule,
  ): Promise<AcceptedTurn> {
    const { call, request, message, signal, key, push, details } = sent;
    const { tenantId, profile, agent } = call;
    const own = ownTasks(call);
    for (let look = 0; look < MAX_LOOKS; look++) {
      const known = await this.tasks.findAlias({ tenantId, agentId: agent.id, profile, clientId, own });
      const alias = { clientId, previousTaskId: known?.taskId };
      // The id may also be the server's own, from an earlier answer.
      const taskId = known?.taskId ?? clientId;
      const stored = await this.finder.reachable(call, taskId);
      // After the task was read: the turn that set its state has written the key by then.
      const earlier = key && (await this.tasks.earlierTurn(tenantId, key));
      const joined = earlier && (await this.join(sent, earlier));
      if (joined) return joined;
      if (!stored) await this.assertNotDeleted(call, clientId, taskId);
      const turn =
        stored?.agentId === agent.id
          ? await this.routeAfter(sent, stored, alias, rule)
          : await this.acceptance.createTask(call, request, message, signal, { alias, key, push, details });
      if ('watch' in turn) return turn;
    }
    throw new ProtocolError(
      'internal',
      'Too many messages with this id arrived at the same time: send it again',
    );
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

  private async routeAfter(
    { call, request, message, signal, key, push, details }: RoutedMessage,
    stored: StoredTask,
    alias: ClientTaskId,
    rule: ClientTaskIdRule,
  ): Promise<AcceptedTurn | EarlierTurn> {
    const { id: taskId, contextId } = stored.task;
    switch (turnOfAlias(stored.task, message, rule)) {
      case 'join':
        return this.acceptance.join(call, stored, signal);
      case 'answer':
        return this.acceptance.continueTask(call, { ...message, taskId, contextId }, signal, {
          key,
          push,
          details,
        });
      case 'new-turn':
        return this.acceptance.createTask(call, request, { ...message, contextId }, signal, {
          alias,
          key,
          push,
          details,
        });
    }
  }

  /**
   * Join the turn that a message with the same key has made. Undefined: its task is gone, and the key counts as
   * new from now on.
   * @throws ProtocolError if the key is an Idempotency-Key and the message was another one
   */
  private async join(
    { call, key, signal }: RoutedMessage,
    earlier: EarlierTurn,
  ): Promise<AcceptedTurn | undefined> {
    const stored = await this.finder.reachable(call, earlier.taskId);
    if (stored) {
      if (!isSameContent(key?.content, earlier.content)) throw usedOtherwise(call);
      return this.acceptance.join(call, stored, signal);
    }
    if (key) key.goneTaskId = earlier.taskId;
    return undefined;
  }
}

const isSameContent = (sent: Buffer | null | undefined, first: Buffer | null): boolean =>
  !sent || !first || sent.equals(first);

/** The Idempotency-Key belongs to another message. */
const usedOtherwise = ({ idempotencyKey }: CallContext): ProtocolError =>
  ProtocolError.invalidParams(
    'Idempotency-Key',
    `"${idempotencyKey ?? ''}" was sent before with another message: use a new key for each message`,
  );

/**
 * The key that identifies a message when it comes again: a hash of everything that was sent, with its `messageId`. With an
 * `Idempotency-Key` the key is a hash of that header; the content, without the `messageId`, is kept to find out whether the
 * header was used for another message. Undefined: the message is never deduplicated, because it has no id, or because its
 * caller chooses the ids of tasks (`turnOfAlias`). The same message of another principal has another key.
 * How the caller wants to be answered (`configuration`) is no part of the key.
 */
export function messageKey(
  call: Pick<CallContext, 'agent' | 'clientTaskId' | 'idempotencyKey' | 'principal'>,
  request: SendMessageRequest,
  message: Message,
): Pick<MessageKey, 'hash' | 'earlierHash' | 'content'> | undefined {
  const { agent, clientTaskId, idempotencyKey, principal } = call;
  const hasHeader = idempotencyKey !== undefined;
  if (!hasHeader && (!message.messageId || clientTaskId !== undefined)) return undefined;
  const { messageId, ...said } = Message.toJSON(message) as { messageId?: string };
  const content = { said, id: clientTaskId, metadata: request.metadata };
  const shared = hasHeader
    ? digest(['header', agent.id, idempotencyKey])
    : digest(['message', agent.id, messageId, content]);
  return {
    hash: hash('sha256', Buffer.concat([shared, Buffer.from(principal.key)]), 'buffer'),
    // Earlier releases knew messages of all callers by this. They had no principals, and guests reach nothing of theirs.
    ...(principal.kind === 'token' && { earlierHash: shared }),
    content: hasHeader ? digest(content) : null,
  };
}

/** SHA-256 of the value's JSON, the members of every object in order. */
const digest = (value: unknown): Buffer => hash('sha256', JSON.stringify(inOrder(value)), 'buffer');

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}
