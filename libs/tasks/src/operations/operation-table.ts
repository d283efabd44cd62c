import { type Operations, ProtocolError } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CancelOperation } from './cancel-task.js';
import { pushNotSupported } from './push-not-supported.js';
import { ReadOperations } from './read-tasks.js';
import { SendOperations } from './send-message.js';
import { SubscribeOperation } from './subscribe-to-task.js';

/** The operations map: one entry per use case, for every profile alike. */
@Injectable()
export class OperationTable {
  readonly operations: Operations;

  constructor(
    send: SendOperations,
    read: ReadOperations,
    cancel: CancelOperation,
    subscribe: SubscribeOperation,
  ) {
    this.operations = {
      sendMessage: (call, request, signal) => send.sendMessage(call, request, signal),
      sendStreamingMessage: (call, request, signal) => send.sendStreamingMessage(call, request, signal),
      getTask: (call, request) => read.getTask(call, request),
      listTasks: (call, request) => read.listTasks(call, request),
      cancelTask: (call, request) => cancel.cancelTask(call, request),
      subscribeToTask: (call, request, signal) => subscribe.subscribeToTask(call, request, signal),
      pushNotificationConfig: async () => {
        throw pushNotSupported();
      },
      getExtendedAgentCard: refuseExtendedCard,
    };
  }
}

/** No agent declares `extendedAgentCard` yet (A2A 1.0 §3.1.11). */
async function refuseExtendedCard(): Promise<never> {
  throw new ProtocolError('extended-card-not-configured', 'This agent has no extended card');
}
