/**
 * A2A 0.3 over HTTP+JSON. Its JSON is that of the protocol buffers of 0.3, which is neither that of 0.3 over JSON-RPC nor
 * that of 1.0:
 * - a message has `content` instead of `parts`; roles and states are the names of enums (`ROLE_USER`,
 *   `TASK_STATE_CANCELLED` with two L);
 * - a part is `{text}`, `{file: {fileWithUri | fileWithBytes, mimeType, name}}` or `{data: {data: {…}}}`;
 * - a result and a frame have a wrapper member (`task`, `message`, `statusUpdate`, `artifactUpdate`);
 * - `configuration.blocking` left out is false, as defaults are left out; without `configuration` a send blocks.
 * Messages in the form of 0.3 over JSON-RPC are read as well.
 */
import { roleFromJSON } from '@a2a-js/sdk';
import { LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_SET } from '@a2a-js/sdk/compat/v0_3';
import { isJsonObject } from '../json-object.js';
import { encodeCard } from '../cards/agent-card.js';
import {
  type AgentCard,
  type Artifact,
  type Message,
  type Part,
  Role,
  type SendMessageConfiguration,
  type SendMessageRequest,
  type Task,
  type TaskPushNotificationConfig,
  TaskState,
  taskStateToJSON,
  type JsonObject,
} from '../model.js';
import { endsTurn } from '../task.js';
import { type EventPayload } from '../artifact-fold.js';
import { BARE_FRAMES, defineCodec, type WireMethods } from './codec.js';
import { type MessageGrammar, readMessage, readPushConfig, WRAPPED_DATA } from './params.js';
import type { Fields } from './fields.js';
import { encodeConfig, readSetConfig, ROLES, V0_3 } from './v0_3.js';

const GRAMMAR: MessageGrammar = {
  user: 'ROLE_USER',
  parse: (value) => {
    const role = ROLES.parse(value);
    return role === Role.UNRECOGNIZED ? roleFromJSON(value) : role;
  },
  partsNames: ['content', 'parts'],
  unwrapPart,
};

const sendMethods = (methods: WireMethods<'sendMessage'>['methods']): typeof methods =>
  Object.fromEntries(Object.keys(methods).map((method) => [method, readSend]));

const { operations } = V0_3;

export const V0_3_HTTP_CODEC = defineCodec({
  ...V0_3,
  framing: BARE_FRAMES,
  operations: {
    ...operations,
    sendMessage: {
      methods: sendMethods(operations.sendMessage.methods),
      encode: (result) =>
        result.$case === 'task'
          ? { task: encodeTask(result.value) }
          : { message: encodeMessage(result.value) },
    },
    sendStreamingMessage: { methods: sendMethods(operations.sendStreamingMessage.methods) },
    getTask: { ...operations.getTask, encode: encodeTask },
    cancelTask: { ...operations.cancelTask, encode: encodeTask },
    createTaskPushNotificationConfig: {
      methods: { [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_SET]: readCreateConfig },
      encode: encodeTaskConfig,
    },
    getTaskPushNotificationConfig: {
      ...operations.getTaskPushNotificationConfig,
      encode: encodeTaskConfig,
    },
    listTaskPushNotificationConfigs: {
      ...operations.listTaskPushNotificationConfigs,
      encode: ({ configs }) => ({ configs: configs.map(encodeTaskConfig) }),
    },
    deleteTaskPushNotificationConfig: {
      ...operations.deleteTaskPushNotificationConfig,
      encode: (empty) => empty,
    },
    getExtendedAgentCard: { ...operations.getExtendedAgentCard, encode: encodeCardForAll },
  },
  encodeItem: ({ payload }) => encodeEvent(payload),
});

function readSend(params: Fields): SendMessageRequest {
  const configuration = params.child('configuration');
  return {
    tenant: '',
    message: readMessage(params, GRAMMAR),
    configuration: configuration && readConfiguration(configuration),
    metadata: params.object('metadata'),
  };
}

function readConfiguration(configuration: Fields): SendMessageConfiguration {
  const push = configuration.child('pushNotification') ?? configuration.child('pushNotificationConfig');
  return {
    acceptedOutputModes: configuration.strings('acceptedOutputModes'),
    taskPushNotificationConfig: push && readPushConfig(push),
    // 0 is the default, which means all.
    historyLength: configuration.historyLength() || undefined,
    returnImmediately: configuration.boolean('blocking') !== true,
  };
}

/**
 * The body is the config with its resource name (the proto names it as the body), the whole request of the proto with the
 * config in it, or the params of JSON-RPC.
 */
function readCreateConfig(params: Fields): TaskPushNotificationConfig {
  const inRequest = params.child('config');
  if (!inRequest) return readSetConfig(params);
  const taskId = params.requiredId('taskId');
  const fields = inRequest.child('pushNotificationConfig');
  if (!fields) throw inRequest.refuse('pushNotificationConfig', 'is required and must be an object');
  const config = readPushConfig(fields, taskId);
  return { ...config, id: config.id || params.id('configId') };
}

function encodeTaskConfig({ taskId, ...config }: TaskPushNotificationConfig): JsonObject {
  return {
    name: `tasks/${taskId}/pushNotificationConfigs/${config.id}`,
    pushNotificationConfig: encodeConfig(config),
  };
}

/** The proto's form of a part as that of JSON-RPC, as far as they differ. */
function unwrapPart(value: unknown): unknown {
  if (!isJsonObject(value) || 'kind' in value || 'type' in value) return value;
  const { file, data } = value;
  if (isJsonObject(data) && Object.keys(data).length === 1 && isJsonObject(data.data)) {
    return { ...value, kind: 'data', data: data.data };
  }
  if (!isJsonObject(file)) return value;
  const { fileWithUri, file_with_uri, fileWithBytes, file_with_bytes, ...rest } = file;
  const [uri, bytes] = [fileWithUri ?? file_with_uri, fileWithBytes ?? file_with_bytes];
  return {
    ...value,
    file: { ...rest, ...(uri !== undefined && { uri }), ...(bytes !== undefined && { bytes }) },
  };
}

/**
 * The one answer that Python's SDK reads in the JSON of 0.3, and JavaScript's in that of the protocol buffers. They differ in
 * the security: each scheme has both forms. JavaScript's then finds no scheme in `security`, which it does not need.
 */
function encodeCardForAll(card: AgentCard): JsonObject {
  const { securitySchemes } = encodeCard(card, 'both');
  return { ...encodeCard(card, '0.2'), securitySchemes };
}

function encodeEvent(payload: EventPayload): JsonObject {
  switch (payload.$case) {
    case 'task':
      return { task: encodeTask(payload.value) };
    case 'statusUpdate': {
      const { taskId, contextId, status, metadata } = payload.value;
      const final = status !== undefined && endsTurn(status.state);
      return {
        statusUpdate: {
          taskId,
          contextId,
          status: encodeStatus(status),
          ...(final && { final }),
          ...(metadata && { metadata }),
        },
      };
    }
    case 'artifactUpdate': {
      const { taskId, contextId, artifact, append, lastChunk, metadata } = payload.value;
      return {
        artifactUpdate: {
          taskId,
          contextId,
          artifact: artifact && encodeArtifact(artifact),
          ...(append && { append }),
          ...(lastChunk && { lastChunk }),
          ...(metadata && { metadata }),
        },
      };
    }
  }
}

function encodeTask({ id, contextId, status, history, artifacts, metadata }: Task): JsonObject {
  return {
    id,
    contextId,
    status: encodeStatus(status),
    ...(artifacts.length > 0 && { artifacts: artifacts.map(encodeArtifact) }),
    ...(history.length > 0 && { history: history.map(encodeMessage) }),
    ...(metadata && { metadata }),
  };
}

function encodeStatus(status: Task['status']): JsonObject {
  if (!status) return {};
  const { state, message, timestamp } = status;
  const isKnown = state !== TaskState.TASK_STATE_UNSPECIFIED && state !== TaskState.UNRECOGNIZED;
  const name = state === TaskState.TASK_STATE_CANCELED ? 'TASK_STATE_CANCELLED' : taskStateToJSON(state);
  return {
    ...(isKnown && { state: name }),
    ...(message && { message: encodeMessage(message) }),
    ...(timestamp && { timestamp }),
  };
}

function encodeMessage(message: Message): JsonObject {
  const { messageId, contextId, taskId, role, parts, metadata, extensions } = message;
  return {
    messageId,
    ...(contextId && { contextId }),
    ...(taskId && { taskId }),
    role: role === Role.ROLE_USER ? 'ROLE_USER' : 'ROLE_AGENT',
    content: parts.map(encodePart),
    ...(metadata && { metadata }),
    ...(extensions.length > 0 && { extensions }),
  };
}

function encodeArtifact(artifact: Artifact): JsonObject {
  const { artifactId, name, description, parts, metadata, extensions } = artifact;
  return {
    artifactId,
    ...(name && { name }),
    ...(description && { description }),
    parts: parts.map(encodePart),
    ...(metadata && { metadata }),
    ...(extensions.length > 0 && { extensions }),
  };
}

/** Data that is no object is wrapped, as in 0.3 over JSON-RPC. */
function encodePart({ content, metadata, filename, mediaType }: Part): JsonObject {
  const described = metadata && { metadata };
  switch (content?.$case) {
    case 'text':
      return { text: content.value, ...described };
    case 'raw':
    case 'url': {
      const file = {
        ...(content.$case === 'raw'
          ? { fileWithBytes: Buffer.from(content.value).toString('base64') }
          : { fileWithUri: content.value }),
        ...(mediaType && { mimeType: mediaType }),
        ...(filename && { name: filename }),
      };
      return { file, ...described };
    }
    default: {
      const value: unknown = content?.value ?? null;
      if (isJsonObject(value)) return { data: { data: value }, ...described };
      return { data: { data: { value } }, metadata: { ...metadata, [WRAPPED_DATA]: true } };
    }
  }
}
