/**
 * The canonical model: the A2A 1.0 types of `@a2a-js/sdk`. Everything behind a codec uses these types and
 * nothing else; the words of older protocol versions (`kind`, `final`, `sessionId`) stay in their codec.
 */
import { Part as SdkPart } from '@a2a-js/sdk';

export {
  AgentCard,
  AgentSkill,
  Artifact,
  Message,
  Part,
  Role,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskPushNotificationConfig,
  TaskState,
  TaskStatus,
  TaskStatusUpdateEvent,
  SendMessageRequest,
  SendMessageConfiguration,
  GetTaskRequest,
  ListTasksRequest,
  ListTasksResponse,
  CancelTaskRequest,
  SubscribeToTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  taskStateToJSON,
} from '@a2a-js/sdk';
export type { AgentCapabilities, AgentExtension, AgentInterface } from '@a2a-js/sdk';

// The SDK reads `{"data": null}` as a part without content, and writes such a part as `{}` (a2a-js#642). Null is a value like any
// other (google.protobuf.Value). The SDK reads and writes messages, artifacts and tasks with these two functions, so they are
// replaced here, once.
const sdk = { ...SdkPart };
SdkPart.fromJSON = (object: { data?: unknown }) => {
  const part = sdk.fromJSON(object);
  return part.content === undefined && object.data === null
    ? { ...part, content: { $case: 'data', value: null } }
    : part;
};
SdkPart.toJSON = (part) => {
  const json = sdk.toJSON(part) as object;
  return part.content === undefined ? { data: null, ...json } : json;
};

/** A JSON object of which nothing is known yet. */
export type JsonObject = Record<string, unknown>;

/** Any value JSON can carry. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
