import {
  type CallContext,
  type Message,
  ProtocolError,
  type SendMessageRequest,
  turnOfAlias,
} from '@baton/a2a';
import { type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { type AcceptedTurn, type TaskAlias, TurnIntake } from './accept-turn.js';
import { pushNotSupported } from './push-not-supported.js';

/** Two callers that give one id to a message at once settle within this many looks. */
const MAX_LOOKS = 5;

/** Finds out what a message is: a new task, the next turn of one, or the repetition of a call. */
@Injectable()
export class MessagePlacement {
  constructor(
    private readonly intake: TurnIntake,
    private readonly tasks: TaskStore,
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
    if (message.taskId) return this.intake.continueTask(call, message, signal);
    return accepted(await this.intake.createTask(call, request, message, signal));
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
      const stored = await this.tasks.get(tenantId, known?.taskId ?? clientId);
      const turn =
        stored?.agentId === agent.id
          ? await this.placeAfter(call, request, message, stored, alias, signal)
          : await this.intake.createTask(call, request, message, signal, alias);
      if (turn) return turn;
    }
    throw new ProtocolError('internal', 'Too many messages came under this id at once: send it again');
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
        return this.intake.continueTask(call, { ...message, taskId, contextId }, signal);
      case 'new-turn':
        return this.intake.createTask(call, request, { ...message, contextId }, signal, alias);
    }
  }
}

/** Without an alias there is nobody to lose against. */
function accepted(turn: AcceptedTurn | undefined): AcceptedTurn {
  if (!turn) throw new Error('a task without an alias was not created');
  return turn;
}
