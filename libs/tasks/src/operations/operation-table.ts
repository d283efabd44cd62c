import type { Operations } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CancelOperation } from './cancel-task.js';
import { getExtendedAgentCard } from './get-extended-card.js';
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
      sendMessage: send.sendMessage.bind(send),
      sendStreamingMessage: send.sendStreamingMessage.bind(send),
      getTask: read.getTask.bind(read),
      listTasks: read.listTasks.bind(read),
      cancelTask: cancel.cancelTask.bind(cancel),
      subscribeToTask: subscribe.subscribeToTask.bind(subscribe),
      pushNotificationConfig: async () => {
        throw pushNotSupported();
      },
      getExtendedAgentCard,
    };
  }
}
