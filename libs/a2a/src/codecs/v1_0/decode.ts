import { roleFromJSON, taskStateFromJSON } from '@a2a-js/sdk';
import {
  type ListTasksRequest,
  type SendMessageConfiguration,
  type SendMessageRequest,
  TaskState,
} from '../../model.js';
import type { OperationCall } from '../../operation.js';
import { decodePageToken } from '../../page-token.js';
import type { Fields } from '../fields.js';
import type { ReadParams } from '../define-codec.js';
import { readMessage } from '../read-message.js';
import { readPushConfig } from '../read-push-config.js';

const ROLES = { user: 'ROLE_USER', parse: roleFromJSON };
const MAX_PAGE_SIZE = 100;
/** RFC 3339, as ProtoJSON writes a Timestamp; any offset and up to nanoseconds. */
const TIMESTAMP = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/i;

const pushCall = (params: Fields): OperationCall => ({
  operation: 'pushNotificationConfig',
  request: { taskId: params.requiredId('taskId') },
});

/** Every JSON-RPC method of A2A 1.0 (§9.4) and how its params become an operation. */
export const METHODS: ReadonlyMap<string, ReadParams> = new Map<string, ReadParams>([
  ['SendMessage', (params) => ({ operation: 'sendMessage', request: readSend(params) })],
  ['SendStreamingMessage', (params) => ({ operation: 'sendStreamingMessage', request: readSend(params) })],
  ['GetTask', (params) => ({ operation: 'getTask', request: readGetTask(params) })],
  ['ListTasks', (params) => ({ operation: 'listTasks', request: readListTasks(params) })],
  ['CancelTask', (params) => ({ operation: 'cancelTask', request: readCancelTask(params) })],
  ['SubscribeToTask', (params) => ({ operation: 'subscribeToTask', request: readTaskId(params) })],
  ['CreateTaskPushNotificationConfig', pushCall],
  ['GetTaskPushNotificationConfig', pushCall],
  ['ListTaskPushNotificationConfigs', pushCall],
  ['DeleteTaskPushNotificationConfig', pushCall],
  ['GetExtendedAgentCard', () => ({ operation: 'getExtendedAgentCard', request: {} })],
]);

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

const readTaskId = (params: Fields) => ({
  tenant: params.string('tenant') ?? '',
  id: params.requiredId('id'),
});

const readGetTask = (params: Fields) => ({ ...readTaskId(params), historyLength: params.historyLength() });

const readCancelTask = (params: Fields) => ({ ...readTaskId(params), metadata: params.object('metadata') });

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
    statusTimestampAfter: readTimestamp(params),
    includeArtifacts: params.boolean('includeArtifacts'),
  };
}

function readState(params: Fields): TaskState {
  const state = taskStateFromJSON(params.get('status') ?? TaskState.TASK_STATE_UNSPECIFIED);
  if (state !== TaskState.UNRECOGNIZED) return state;
  throw params.refuse('status', 'is not a task state: send for example "TASK_STATE_COMPLETED"');
}

function readTimestamp(params: Fields): string | undefined {
  const text = params.string('statusTimestampAfter');
  if (text === undefined) return undefined;
  const at = TIMESTAMP.test(text) ? new Date(text) : undefined;
  if (at && !Number.isNaN(at.getTime())) return at.toISOString();
  throw params.refuse('statusTimestampAfter', 'must be a timestamp such as "2026-01-31T12:00:00.000Z"');
}
