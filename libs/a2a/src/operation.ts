import type {
  AgentCard,
  Artifact,
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  SubscribeToTaskRequest,
  Task,
} from './model.js';
import type { EventPayload } from './task-event.js';

/** One frame of a stream. The Task that opens a stream carries the sequence it is cut at. */
export interface StreamItem {
  sequence: number;
  payload: EventPayload;
}

/** A send answers with the task, or with a bare message when that is what the agent replied. */
export type SendResult =
  | {
      $case: 'task';
      value: Task;
      /** The task's artifacts as they were when the message was accepted; unset = it had none. */
      priorArtifacts?: readonly Artifact[];
    }
  | { $case: 'message'; value: Message };

/** Every unary operation of A2A 1.0 §3.1 with its canonical request and result. */
export interface UnaryOperations {
  sendMessage: { request: SendMessageRequest; result: SendResult };
  getTask: { request: GetTaskRequest; result: Task };
  listTasks: { request: ListTasksRequest; result: ListTasksResponse };
  cancelTask: { request: CancelTaskRequest; result: Task };
  /** Create, get, list and delete of push notification configs; refused until an agent supports push. */
  pushNotificationConfig: { request: { taskId: string }; result: never };
  getExtendedAgentCard: { request: Record<string, never>; result: AgentCard };
}

/** Every streaming operation; each yields `StreamItem`s. */
export interface StreamingOperations {
  sendStreamingMessage: { request: SendMessageRequest };
  subscribeToTask: { request: SubscribeToTaskRequest };
}

export type UnaryOperationName = keyof UnaryOperations;
export type StreamingOperationName = keyof StreamingOperations;
export type OperationName = UnaryOperationName | StreamingOperationName;

/** A decoded request: which operation, with its canonical request. */
export type OperationCall =
  | {
      [K in UnaryOperationName]: { operation: K; request: UnaryOperations[K]['request'] };
    }[UnaryOperationName]
  | {
      [K in StreamingOperationName]: { operation: K; request: StreamingOperations[K]['request'] };
    }[StreamingOperationName];

/** A call with what a family says besides the canonical request. */
export type DecodedCall = OperationCall & {
  /** The id the caller has chosen for the task of this message; it is an alias, not the task's own id. */
  clientTaskId?: string;
};
