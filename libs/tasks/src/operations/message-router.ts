import {
  type CallContext,
  type ClientTaskIdRule,
  type Message,
  ProtocolError,
  type SendMessageRequest,
  turnOfAlias,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { type EarlierTurn, type MessageKey, type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { type AcceptedTurn, type TaskAlias, TurnIntake } from './accept-turn.js';
import { TaskFinder } from './find-task.js';
import { messageKey } from './message-key.js';
import { pushNotSupported } from './push-not-supported.js';

/** Two callers that give one id to a message at once settle within this many looks. */
const MAX_LOOKS = 5;

interface Sent {
  call: CallContext;
  request: SendMessageRequest;
  message: Message;
  signal: AbortSignal;
  /** Unset where a message that comes again is a new one. */
  key?: MessageKey;
}

/** Finds out what a message is: a new task, the next turn of one, or the repetition of a call. */
@Injectable()
export class MessageRouter {
  constructor(
    private readonly intake: TurnIntake,
    private readonly tasks: TaskStore,
    private readonly environment: Environment,
    private readonly finder: TaskFinder,
  ) {}

  /**
   * Accept the message where it belongs.
   * @throws ProtocolError if the task it names is unknown, over, busy or of another context (A2A 1.0 §3.4.3)
   */
  async route(call: CallContext, request: SendMessageRequest, signal: AbortSignal): Promise<AcceptedTurn> {
    const { message, configuration } = request;
    if (!message) throw ProtocolError.invalidParams('message', 'is required');
    if (configuration?.taskPushNotificationConfig) throw pushNotSupported();
    const key = messageKey(call, request, message);
    const { idempotencyHours: hours } = this.environment;
    const sent = { call, request, message, signal, key: key && { ...key, hours } };
    const { clientTaskId, rules } = call;
    if (clientTaskId === undefined || !rules.clientTaskIds) return this.routeNew(sent);
    return this.routeByAlias(sent, clientTaskId, rules.clientTaskIds);
  }

  /** The same message makes one turn, however often it comes; later ones join it. */
  private async routeNew(sent: Sent): Promise<AcceptedTurn> {
    const { call, request, message, signal, key } = sent;
    for (let look = 0; look < MAX_LOOKS; look++) {
      const turn = message.taskId
        ? await this.intake.continueTask(call, message, signal, key)
        : await this.intake.createTask(call, request, message, signal, { key });
      const accepted = 'watch' in turn ? turn : await this.join(sent, turn);
      if (accepted) return accepted;
    }
    throw new ProtocolError('internal', 'This message came too often at once: send it again');
  }

  /** The caller has chosen the id: it may have used it before, and its meaning depends on that task. */
  private async routeByAlias(sent: Sent, clientId: string, rule: ClientTaskIdRule): Promise<AcceptedTurn> {
    const { call, request, message, signal, key } = sent;
    const { tenantId, profile, agent } = call;
    for (let look = 0; look < MAX_LOOKS; look++) {
      const known = await this.tasks.findAlias({ tenantId, agentId: agent.id, profile, clientId });
      const alias = { clientId, previousTaskId: known?.taskId };
      // The id may also be the server's own, from an earlier answer.
      const taskId = known?.taskId ?? clientId;
      const stored = await this.tasks.get(tenantId, taskId, { memory: call.memory });
      // After the task was read: whoever made it what it is has written the key by then.
      const earlier = key && (await this.tasks.earlierTurn(tenantId, key));
      const joined = earlier && (await this.join(sent, earlier));
      if (joined) return joined;
      if (!stored) await this.assertNotDeleted(call, clientId, taskId);
      const turn =
        stored?.agentId === agent.id
          ? await this.routeAfter(sent, stored, alias, rule)
          : await this.intake.createTask(call, request, message, signal, { alias, key });
      if ('watch' in turn) return turn;
    }
    throw new ProtocolError('internal', 'Too many messages came under this id at once: send it again');
  }

  /**
   * A message that may repeat the one of a deleted task must not be done a second time. Where only a task at work
   * is joined, one that is gone is followed by a new turn, as any that has ended.
   */
  private async assertNotDeleted(call: CallContext, clientId: string, taskId: string): Promise<void> {
    if (call.rules.clientTaskIds?.joins !== 'any-task') return;
    const deleted = await this.finder.deleted(call, clientId, taskId);
    if (deleted) throw deleted;
  }

  private async routeAfter(
    { call, request, message, signal, key }: Sent,
    stored: StoredTask,
    alias: TaskAlias,
    rule: ClientTaskIdRule,
  ): Promise<AcceptedTurn | EarlierTurn> {
    const { id: taskId, contextId } = stored.task;
    switch (turnOfAlias(stored.task, message, rule)) {
      case 'join':
        return this.intake.join(call, stored, signal);
      case 'answer':
        return this.intake.continueTask(call, { ...message, taskId, contextId }, signal, key);
      case 'new-turn':
        return this.intake.createTask(call, request, { ...message, contextId }, signal, { alias, key });
    }
  }

  /**
   * Join the turn that a message with the same key has made. Undefined: its task is gone, and the key counts as
   * new from now on.
   * @throws ProtocolError if the key is an Idempotency-Key and the message was another one
   */
  private async join({ call, key, signal }: Sent, earlier: EarlierTurn): Promise<AcceptedTurn | undefined> {
    const stored = await this.tasks.get(call.tenantId, earlier.taskId, { memory: call.memory });
    if (stored) {
      if (!isSameContent(key?.content, earlier.content)) throw usedOtherwise(call);
      return this.intake.join(call, stored, signal);
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
    `"${idempotencyKey ?? ''}" was sent before with another message: send each message under a key of its own`,
  );
