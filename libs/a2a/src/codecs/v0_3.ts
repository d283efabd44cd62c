/**
 * A2A 0.3 (and 0.2.x, which has the same shapes) over JSON-RPC. Where it differs from the canonical model:
 * - methods are paths (`message/send`); there is no list of tasks;
 * - roles are `user`, `agent`; states are lower case with hyphens (`input-required`), unset is `unknown`;
 * - objects carry `kind`; parts are `{kind: "text" | "file" | "data"}`, a file is `{file: {bytes | uri}}`;
 * - text and data parts have neither file name nor media type: those of a 1.0 part are left out;
 * - `data` must be an object: other values travel as `{value}` with metadata `data_part_compat`;
 * - a status event carries `final`, true when the turn is over;
 * - `configuration.blocking: false` is `returnImmediately: true`; left out it blocks;
 * - a unary result and a frame are the bare object, without the 1.0 wrapper member;
 * - push authentication has a list of `schemes`, of which the first is kept;
 * - an agent without an extended card is -32007 (1.0: -32004).
 */
import {
  LEGACY_METHOD_GET_AUTHENTICATED_EXTENDED_CARD,
  LEGACY_METHOD_MESSAGE_SEND,
  LEGACY_METHOD_MESSAGE_STREAM,
  LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_DELETE,
  LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_GET,
  LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_LIST,
  LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_SET,
  LEGACY_METHOD_TASKS_CANCEL,
  LEGACY_METHOD_TASKS_GET,
  LEGACY_METHOD_TASKS_RESUBSCRIBE,
} from '@a2a-js/sdk/compat/v0_3';
import { encodeCard } from '../cards/agent-card.js';
import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type SendMessageConfiguration,
  type SendMessageRequest,
  type Task,
  type TaskPushNotificationConfig,
  TaskState,
  type JsonObject,
} from '../model.js';
import type { StreamItem } from '../operation.js';
import { endsTurn, stateName } from '../task.js';
import { type EventPayload } from '../artifact-fold.js';
import { isArtifactJson } from '../logged-event.js';
import { type WireMethods, type WireVersion, defineCodec } from './codec.js';
import { readMessage, readPushConfig, WRAPPED_DATA } from './params.js';
import type { Fields } from './fields.js';

/** The roles of 0.3, and of 0.1 before it. */
export const ROLES = {
  user: 'user',
  parse: (value: unknown) =>
    value === 'user' ? Role.ROLE_USER : value === 'agent' ? Role.ROLE_AGENT : Role.UNRECOGNIZED,
};

const streamMethod = (messageId: 'required' | 'optional'): WireMethods<'sendStreamingMessage'> => ({
  methods: { [LEGACY_METHOD_MESSAGE_STREAM]: (params) => readSend(params, messageId) },
});

/** Every JSON-RPC method of A2A 0.3 (§7). */
export const V0_3: WireVersion = {
  version: '0.3',
  operations: {
    sendMessage: {
      methods: { [LEGACY_METHOD_MESSAGE_SEND]: (params) => readSend(params, 'required') },
      encode: (result) => (result.$case === 'task' ? encodeTask(result.value) : encodeMessage(result.value)),
    },
    sendStreamingMessage: streamMethod('required'),
    getTask: {
      methods: {
        [LEGACY_METHOD_TASKS_GET]: (params) => ({
          ...readTaskId(params),
          historyLength: params.historyLength(),
        }),
      },
      encode: encodeTask,
    },
    listTasks: {
      methods: {},
      encode: ({ tasks, ...page }) => ({ tasks: tasks.map(encodeTask), ...page }),
    },
    cancelTask: {
      methods: {
        [LEGACY_METHOD_TASKS_CANCEL]: (params) => ({
          ...readTaskId(params),
          metadata: params.object('metadata'),
        }),
      },
      encode: encodeTask,
    },
    subscribeToTask: { methods: { [LEGACY_METHOD_TASKS_RESUBSCRIBE]: readTaskId } },
    // `set` names the task `taskId`, the others `id`.
    createTaskPushNotificationConfig: {
      methods: { [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_SET]: readSetConfig },
      encode: encodeTaskConfig,
    },
    getTaskPushNotificationConfig: {
      methods: {
        [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_GET]: (params) => ({
          ...readConfigTask(params),
          // Left out: the one that the task had first.
          id: params.id('pushNotificationConfigId'),
        }),
      },
      encode: encodeTaskConfig,
    },
    listTaskPushNotificationConfigs: {
      methods: {
        [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_LIST]: (params) => ({
          ...readConfigTask(params),
          // 0.3 has no pages.
          pageSize: MAX_CONFIGS,
          pageToken: '',
        }),
      },
      encode: ({ configs }) => configs.map(encodeTaskConfig),
    },
    deleteTaskPushNotificationConfig: {
      methods: {
        [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_DELETE]: (params) => ({
          ...readConfigTask(params),
          id: params.requiredId('pushNotificationConfigId'),
        }),
      },
      encode: () => null,
    },
    getExtendedAgentCard: {
      methods: { [LEGACY_METHOD_GET_AUTHENTICATED_EXTENDED_CARD]: () => ({}) },
      encode: (card) => encodeCard(card, '0.2'),
    },
  },
  encodeItem,
  rules: {
    // 0.3 has this error alone for an agent without an extended card (0.3 §7.10, §8.2).
    extendedCard: 'extended-card-not-configured',
    pushFields: {
      config: 'pushNotificationConfig',
      inSend: 'configuration.pushNotificationConfig',
      scheme: 'schemes',
    },
  },
};

export const V0_3_CODEC = defineCodec(V0_3);

/** 0.3 with a `message/stream` whose message may have no id. */
export const V0_3_WITH_LAX_STREAM: WireVersion = {
  ...V0_3,
  operations: { ...V0_3.operations, sendStreamingMessage: streamMethod('optional') },
};

function readSend(params: Fields, messageId: 'required' | 'optional'): SendMessageRequest {
  const kind = params.child('message')?.get('kind') ?? 'message';
  if (kind !== 'message') throw params.refuse('message.kind', 'must be "message"');
  const configuration = params.child('configuration');
  return {
    tenant: '',
    message: readMessage(params, ROLES, messageId),
    configuration: configuration && readConfiguration(configuration),
    metadata: params.object('metadata'),
  };
}

function readConfiguration(configuration: Fields): SendMessageConfiguration {
  const push = configuration.child('pushNotificationConfig');
  return {
    acceptedOutputModes: configuration.strings('acceptedOutputModes'),
    taskPushNotificationConfig: push && readPushConfig(push),
    historyLength: configuration.historyLength(),
    returnImmediately: configuration.boolean('blocking') === false,
  };
}

function readTaskId(params: Fields) {
  return { tenant: '', id: params.requiredId('id') };
}

/** Maximum number of configs of one task that are listed. */
const MAX_CONFIGS = 1000;

const readConfigTask = (params: Fields) => ({ tenant: '', taskId: params.requiredId('id') });

export function readSetConfig(params: Fields): TaskPushNotificationConfig {
  const taskId = params.requiredId('taskId');
  const fields = params.child('pushNotificationConfig');
  if (!fields) throw params.refuse('pushNotificationConfig', 'is required and must be an object');
  return readPushConfig(fields, taskId);
}

function encodeTaskConfig({ taskId, ...config }: TaskPushNotificationConfig): JsonObject {
  return { taskId, pushNotificationConfig: encodeConfig(config) };
}

/** A config without its task. */
export const encodeConfig = ({
  id,
  url,
  authentication,
}: Omit<TaskPushNotificationConfig, 'taskId'>): JsonObject => ({
  id,
  url,
  ...(authentication && { authentication: { schemes: [authentication.scheme] } }),
});

/** The JSON of an event. Most events are chunks of text. Their stored text is enough: they need no canonical payload. */
function encodeItem(item: StreamItem): JsonObject {
  return (item.json === undefined ? undefined : encodeStoredText(item.json)) ?? encodeEvent(item.payload);
}

/** A chunk of an artifact as ProtoJSON, as far as it is known to be text. Fields with default values are left out. */
interface StoredChunk {
  taskId?: string;
  contextId?: string;
  artifact?: Partial<Omit<Artifact, 'parts'>> & { parts?: { text?: unknown; metadata?: object }[] };
  append?: boolean;
  lastChunk?: boolean;
  metadata?: object;
}

/** @param json as `serializePayload` wrote it @returns undefined unless it is a chunk of text */
function encodeStoredText(json: string): JsonObject | undefined {
  if (!isArtifactJson(json)) return undefined;
  const { artifactUpdate } = JSON.parse(json) as { artifactUpdate: StoredChunk };
  const {
    taskId = '',
    contextId = '',
    artifact,
    append = false,
    lastChunk = false,
    metadata,
  } = artifactUpdate;
  const { artifactId = '', parts = [], name, description, extensions } = artifact ?? {};
  if (!artifact || !parts.every(({ text }) => typeof text === 'string')) return undefined;
  return {
    kind: 'artifact-update',
    taskId,
    contextId,
    artifact: {
      artifactId,
      parts: parts.map((part) => ({
        kind: 'text',
        text: part.text,
        ...(part.metadata && { metadata: part.metadata }),
      })),
      ...(name && { name }),
      ...(description && { description }),
      ...(artifact.metadata && { metadata: artifact.metadata }),
      ...(extensions && { extensions }),
    },
    append,
    lastChunk,
    ...(metadata && { metadata }),
  };
}

/** The SDK writes the same JSON, but only as a text that would have to be parsed again; a test compares the two. */
function encodeEvent(payload: EventPayload): JsonObject {
  switch (payload.$case) {
    case 'task':
      return encodeTask(payload.value);
    case 'statusUpdate': {
      const { taskId, contextId, status, metadata } = payload.value;
      return {
        kind: 'status-update',
        taskId,
        contextId,
        status: encodeStatus(status),
        // A stream also ends when the task waits for its caller.
        final: status !== undefined && endsTurn(status.state),
        ...(metadata && { metadata }),
      };
    }
    case 'artifactUpdate': {
      const { taskId, contextId, artifact, append, lastChunk, metadata } = payload.value;
      return {
        kind: 'artifact-update',
        taskId,
        contextId,
        artifact: artifact && encodeArtifact(artifact),
        append,
        lastChunk,
        ...(metadata && { metadata }),
      };
    }
  }
}

function encodeTask({ id, contextId, status, history, artifacts, metadata }: Task): JsonObject {
  return {
    kind: 'task',
    id,
    contextId,
    status: encodeStatus(status),
    ...(history.length > 0 && { history: history.map(encodeMessage) }),
    ...(artifacts.length > 0 && { artifacts: artifacts.map(encodeArtifact) }),
    ...(metadata && { metadata }),
  };
}

function encodeStatus(status: Task['status']): JsonObject {
  if (!status) return { state: 'unknown' };
  const { state, message, timestamp } = status;
  const isKnown = state !== TaskState.TASK_STATE_UNSPECIFIED && state !== TaskState.UNRECOGNIZED;
  return {
    state: isKnown ? stateName(state) : 'unknown',
    ...(message && { message: encodeMessage(message) }),
    ...(timestamp && { timestamp }),
  };
}

function encodeMessage(message: Message): JsonObject {
  const { messageId, role, parts, contextId, taskId, metadata, extensions, referenceTaskIds } = message;
  return {
    kind: 'message',
    messageId,
    role: role === Role.ROLE_USER ? 'user' : 'agent',
    parts: parts.map(encodePart),
    ...(contextId && { contextId }),
    ...(taskId && { taskId }),
    ...(metadata && { metadata }),
    ...(extensions.length > 0 && { extensions }),
    ...(referenceTaskIds.length > 0 && { referenceTaskIds }),
  };
}

function encodeArtifact({
  artifactId,
  parts,
  name,
  description,
  metadata,
  extensions,
}: Artifact): JsonObject {
  return {
    artifactId,
    parts: parts.map(encodePart),
    ...(name && { name }),
    ...(description && { description }),
    ...(metadata && { metadata }),
    ...(extensions.length > 0 && { extensions }),
  };
}

/** A data part with null is stored without content. 0.3 encodes it as a wrapped null. */
function encodePart({ content, metadata, filename, mediaType }: Part): JsonObject {
  switch (content?.$case) {
    case 'text':
      return { kind: 'text', text: content.value, ...(metadata && { metadata }) };
    case 'raw':
    case 'url': {
      const file = {
        ...(content.$case === 'raw'
          ? { bytes: Buffer.from(content.value).toString('base64') }
          : { uri: content.value }),
        ...(mediaType && { mimeType: mediaType }),
        ...(filename && { name: filename }),
      };
      return { kind: 'file', file, ...(metadata && { metadata }) };
    }
    default: {
      const value: unknown = content?.value ?? null;
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
        return { kind: 'data', data: value, ...(metadata && { metadata }) };
      }
      return { kind: 'data', data: { value }, metadata: { ...metadata, [WRAPPED_DATA]: true } };
    }
  }
}
