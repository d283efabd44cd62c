import type { Operations } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CancelOperation } from './cancel-operation.js';
import { getExtendedAgentCard } from './get-extended-card.js';
import { PushOperations } from './push-operations.js';
import { ReadOperations } from './read-operations.js';
import { SendOperations } from './send-operations.js';
import { SubscribeOperation } from './subscribe-operation.js';

/** The operations map: one entry per use case, for every profile alike. */
@Injectable()
export class OperationTable {
  readonly operations: Operations;

  constructor(
    send: SendOperations,
    read: ReadOperations,
    cancel: CancelOperation,
    subscribe: SubscribeOperation,
    push: PushOperations,
  ) {
    this.operations = {
      sendMessage: send.sendMessage.bind(send),
      sendStreamingMessage: send.sendStreamingMessage.bind(send),
      getTask: read.getTask.bind(read),
      listTasks: read.listTasks.bind(read),
      cancelTask: cancel.cancelTask.bind(cancel),
      subscribeToTask: subscribe.subscribeToTask.bind(subscribe),
      createTaskPushNotificationConfig: push.create.bind(push),
      getTaskPushNotificationConfig: push.get.bind(push),
      listTaskPushNotificationConfigs: push.list.bind(push),
      deleteTaskPushNotificationConfig: push.delete.bind(push),
      getExtendedAgentCard,
    };
  }
}
