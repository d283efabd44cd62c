/**
 * A2A 1.0 over JSON-RPC. The canonical model is this version's own, so little is bridged:
 * - methods are PascalCase; fields may come in camelCase or snake_case (ProtoJSON), and leave in camelCase;
 * - parts are written in the member form (`{text}`, `{raw}`, `{url}`, `{data}`); `kind` and `type` are read;
 * - ProtoJSON leaves defaults out, but a ListTasks answer always has all four of its members (§3.1.4).
 */
import { SendMessageResponse, roleFromJSON, taskStateFromJSON } from '@a2a-js/sdk';
import { encodeCard } from '../cards/agent-card.js';
import {
  type DeleteTaskPushNotificationConfigRequest,
  ListTaskPushNotificationConfigsResponse,
  type ListTasksRequest,
  type SendMessageConfiguration,
  type SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
  TaskState,
} from '../model.js';
import { decodePageToken } from '../page-token.js';
import { BARE_FRAMES, type WireVersion, defineCodec } from './codec.js';
import { readMessage, readPushConfig, UNRECOGNIZED } from './params.js';
import type { Fields } from './fields.js';

const ROLES = { user: 'ROLE_USER', parse: roleFromJSON };
/** The maximum of A2A 1.0 (§3.1.4). */
const MAX_PAGE_SIZE = 100;

/** Every JSON-RPC method of A2A 1.0 (§9.4). */
export const V1_0: WireVersion = {
  version: '1.0',
  operations: {
    sendMessage: {
      methods: { SendMessage: readSend },
      encode: (result) => SendMessageResponse.toJSON({ payload: result }),
    },
    sendStreamingMessage: { methods: { SendStreamingMessage: readSend } },
    getTask: { methods: { GetTask: readGetTask }, encode: (task) => Task.toJSON(task) },
    listTasks: {
      methods: { ListTasks: readListTasks },
      encode: ({ tasks, ...page }) => ({ tasks: tasks.map((task) => Task.toJSON(task)), ...page }),
    },
    cancelTask: { methods: { CancelTask: readCancelTask }, encode: (task) => Task.toJSON(task) },
    subscribeToTask: { methods: { SubscribeToTask: readTaskId } },
    createTaskPushNotificationConfig: {
      methods: {
        CreateTaskPushNotificationConfig: (params) => readPushConfig(params, params.requiredId('taskId')),
      },
      encode: (config) => TaskPushNotificationConfig.toJSON(config),
    },
    getTaskPushNotificationConfig: {
      methods: { GetTaskPushNotificationConfig: readConfigId },
      encode: (config) => TaskPushNotificationConfig.toJSON(config),
    },
    listTaskPushNotificationConfigs: {
      methods: {
        ListTaskPushNotificationConfigs: (params) => ({
          tenant: params.string('tenant') ?? '',
          taskId: params.requiredId('taskId'),
          // 0 is the default.
          pageSize: params.integer('pageSize', 0, MAX_PAGE_SIZE) ?? 0,
          pageToken: params.string('pageToken') ?? '',
        }),
      },
      encode: (page) => ({
        configs: [],
        ...(ListTaskPushNotificationConfigsResponse.toJSON(page) as object),
      }),
    },
    deleteTaskPushNotificationConfig: {
      methods: { DeleteTaskPushNotificationConfig: readConfigId },
      encode: (empty) => empty,
    },
    getExtendedAgentCard: {
      methods: { GetExtendedAgentCard: () => ({}) },
      encode: (card) => encodeCard(card, '1.0'),
    },
  },
  encodeItem: ({ payload }) => StreamResponse.toJSON({ payload }),
  writesAsStored: true,
};

export const V1_0_CODEC = defineCodec(V1_0);

/** A2A 1.0 over HTTP+JSON, whose params and results are the same JSON (§11.4). */
export const V1_0_HTTP_CODEC = defineCodec({ ...V1_0, framing: BARE_FRAMES });

function readSend(params: Fields): SendMessageRequest {
  const configuration = params.child('configuration');
  return {
    tenant: params.string('tenant') ?? '',
    message: readMessage(params, ROLES),
    configuration: configuration && readConfiguration(configuration),
    metadata: params.object('metadata'),
  };
}

function readConfiguration(configuration: Fields): SendMessageConfiguration {
  const push = configuration.child('taskPushNotificationConfig');
  return {
    acceptedOutputModes: configuration.strings('acceptedOutputModes'),
    taskPushNotificationConfig: push && readPushConfig(push),
    historyLength: configuration.historyLength(),
    returnImmediately: configuration.boolean('returnImmediately') ?? false,
  };
}

function readTaskId(params: Fields) {
  return { tenant: params.string('tenant') ?? '', id: params.requiredId('id') };
}

function readGetTask(params: Fields) {
  return { ...readTaskId(params), historyLength: params.historyLength() };
}

function readCancelTask(params: Fields) {
  return { ...readTaskId(params), metadata: params.object('metadata') };
}

function readConfigId(params: Fields): DeleteTaskPushNotificationConfigRequest {
  return {
    tenant: params.string('tenant') ?? '',
    taskId: params.requiredId('taskId'),
    id: params.requiredId('id'),
  };
}

function readListTasks(params: Fields): ListTasksRequest {
  const pageToken = params.string('pageToken') ?? '';
  if (pageToken !== '') decodePageToken(pageToken);
  return {
    tenant: params.string('tenant') ?? '',
    contextId: params.contextId(),
    status: readState(params),
    pageSize: params.integer('pageSize', 1, MAX_PAGE_SIZE),
    pageToken,
    historyLength: params.historyLength(),
    statusTimestampAfter: params.timestamp('statusTimestampAfter')?.toISOString(),
    includeArtifacts: params.boolean('includeArtifacts'),
  };
}

/** What a state in a filter is that was left out: some typed clients write it as a text. */
const UNSET_STATES: ReadonlySet<unknown> = new Set([undefined, UNRECOGNIZED, '']);

function readState(params: Fields): TaskState {
  const status = params.get('status');
  if (UNSET_STATES.has(status)) return TaskState.TASK_STATE_UNSPECIFIED;
  const state = taskStateFromJSON(status);
  if (state !== TaskState.UNRECOGNIZED) return state;
  throw params.mismatch('status', 'a task state such as "TASK_STATE_COMPLETED"');
}
