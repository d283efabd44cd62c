import {
  type CallContext,
  type Message,
  ProtocolError,
  type SendMessageRequest,
  turnOfAlias,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { type EarlierTurn, type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { type AcceptedTurn, type TaskAlias, TurnIntake } from './accept-turn.js';
import { TaskFinder } from './find-task.js';
import { messageKey } from './message-key.js';
import { pushNotSupported } from './push-not-supported.js';

/** Two callers that give one id to a message at once settle within this many looks. */
const MAX_LOOKS = 5;

/** Finds out what a message is: a new task, the next turn of one, or the repetition of a call. */
@Injectable()
export class MessagePlacement {
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
  async place(call: CallContext, request: SendMessageRequest, signal: AbortSignal): Promise<AcceptedTurn> {
    const { message, configuration } = request;
    if (!message) throw ProtocolError.invalidParams('message', 'is required');
    if (configuration?.taskPushNotificationConfig) throw pushNotSupported();
    if (call.clientTaskId !== undefined && call.rules.clientTaskIds) {
      return this.placeUnderAlias(call, request, message, call.clientTaskId, signal);
    }
    return this.placeOnce(call, request, message, signal);
  }

  /** The same message makes one turn, however often it comes; later ones join it. */
  private async placeOnce(
    call: CallContext,
    request: SendMessageRequest,
    message: Message,
    signal: AbortSignal,
  ): Promise<AcceptedTurn> {
    const sent = messageKey(call, request, message);
    const hours = this.environment.idempotencyHours;
    let goneTaskId: string | undefined;
    for (let look = 0; look < MAX_LOOKS; look++) {
      const key = sent && { ...sent, hours, goneTaskId };
      const turn = message.taskId
        ? await this.intake.continueTask(call, message, signal, key)
        : await this.intake.createTask(call, request, message, signal, { key });
      if ('watch' in turn) return turn;
      const stored = await this.tasks.get(call.tenantId, turn.taskId);
      if (stored && !isSameContent(sent?.content, turn.content)) throw usedOtherwise(call);
      if (stored) return this.intake.join(call, stored, signal);
      goneTaskId = turn.taskId;
    }
    throw new ProtocolError('internal', 'The same message came too often at once: send it again');
  }

  /** The caller has chosen the id: it may have used it before, and its meaning depends on that task. */
  private async placeUnderAlias(
    call: CallContext,
    request: SendMessageRequest,
    message: Message,
    clientId: string,
    signal: AbortSignal,
  ): Promise<AcceptedTurn> {
    const { tenantId, profile, agent } = call;
    for (let look = 0; look < MAX_LOOKS; look++) {
      const known = await this.tasks.findAlias({ tenantId, agentId: agent.id, profile, clientId });
      const alias = { clientId, previousTaskId: known?.taskId };
      // The id may also be the server's own, from an earlier answer.
      const taskId = known?.taskId ?? clientId;
      const stored = await this.tasks.get(tenantId, taskId);
      if (!stored) await this.assertNotDeleted(call, clientId, taskId);
      const turn =
        stored?.agentId === agent.id
          ? await this.placeAfter(call, request, message, stored, alias, signal)
          : created(await this.intake.createTask(call, request, message, signal, { alias }));
      if (turn) return turn;
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

  private async placeAfter(
    call: CallContext,
    request: SendMessageRequest,
    message: Message,
    stored: StoredTask,
    alias: TaskAlias,
    signal: AbortSignal,
  ): Promise<AcceptedTurn | undefined> {
    const rule = call.rules.clientTaskIds;
    if (!rule) throw ProtocolError.taskNotFound(alias.clientId);
    const { id: taskId, contextId } = stored.task;
    switch (turnOfAlias(stored.task, message, rule)) {
      case 'join':
        return this.intake.join(call, stored, signal);
      case 'answer':
        return created(await this.intake.continueTask(call, { ...message, taskId, contextId }, signal));
      case 'new-turn':
        return created(
          await this.intake.createTask(call, request, { ...message, contextId }, signal, { alias }),
        );
    }
  }
}

/** Undefined: another call was faster with the alias. */
const created = (turn: AcceptedTurn | EarlierTurn): AcceptedTurn | undefined =>
  'watch' in turn ? turn : undefined;

const isSameContent = (sent: Buffer | null | undefined, first: Buffer | null): boolean =>
  !sent || !first || sent.equals(first);

/** The Idempotency-Key belongs to another message. */
const usedOtherwise = ({ idempotencyKey }: CallContext): ProtocolError =>
  ProtocolError.invalidParams(
    'Idempotency-Key',
    `"${idempotencyKey ?? ''}" was sent before with another message: send each message under a key of its own`,
  );
