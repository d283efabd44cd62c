/**
 * The canonical model: the A2A 1.0 types of `@a2a-js/sdk`. Everything behind a codec speaks these and
 * nothing else; the words of older protocol versions (`kind`, `final`, `sessionId`) stay in their codec.
 */
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

/** Any value JSON can carry. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
