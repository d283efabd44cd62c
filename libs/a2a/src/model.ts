/**
 * The canonical model: the A2A 1.0 types of `@a2a-js/sdk`. Everything behind a codec speaks these and
 * nothing else; the words of older protocol versions (`kind`, `final`, `sessionId`) stay in their codec.
 */
import { Part as SdkPart } from '@a2a-js/sdk';

export {
  AgentCard,
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
export type { AgentCapabilities, AgentExtension, AgentInterface, AgentSkill } from '@a2a-js/sdk';

// The SDK reads `{"data": null}` as a part without content, and writes it as `{}` (a2a-js#642). It is a google.protobuf.Value like
// any other. Messages, artifacts and tasks are read and written with these two functions, so they are mended here, once.
const { fromJSON, toJSON } = SdkPart;
SdkPart.fromJSON = (object: { data?: unknown }) => {
  const part = fromJSON(object);
  return part.content === undefined && object.data === null
    ? { ...part, content: { $case: 'data', value: null } }
    : part;
};
SdkPart.toJSON = (part) => {
  const json = toJSON(part) as object;
  return part.content === undefined ? { data: null, ...json } : json;
};

/** Any value JSON can carry. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
