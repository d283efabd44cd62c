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
import { Role, type SendMessageConfiguration, type SendMessageRequest } from '../../model.js';
import type { OperationCall } from '../../operation.js';
import type { Fields } from '../fields.js';
import type { ReadParams } from '../define-codec.js';
import { readMessage } from '../read-message.js';
import { readPushConfig } from '../read-push-config.js';

/** The roles of 0.3, and of 0.1 before it. */
export const ROLES = {
  user: 'user',
  parse: (value: unknown) =>
    value === 'user' ? Role.ROLE_USER : value === 'agent' ? Role.ROLE_AGENT : Role.UNRECOGNIZED,
};

/** `set` names the task `taskId`, the others `id`. */
const pushCall =
  (name: 'taskId' | 'id') =>
  (params: Fields): OperationCall => ({
    operation: 'pushNotificationConfig',
    request: { taskId: params.requiredId(name) },
  });

const streamCall =
  (messageId: 'required' | 'optional') =>
  (params: Fields): OperationCall => ({
    operation: 'sendStreamingMessage',
    request: readSend(params, messageId),
  });

/** Every JSON-RPC method of A2A 0.3 (§7) and how its params become an operation. */
export const METHODS: ReadonlyMap<string, ReadParams> = new Map<string, ReadParams>([
  [LEGACY_METHOD_MESSAGE_SEND, (params) => ({ operation: 'sendMessage', request: readSend(params) })],
  [LEGACY_METHOD_MESSAGE_STREAM, streamCall('required')],
  [LEGACY_METHOD_TASKS_GET, (params) => ({ operation: 'getTask', request: readGetTask(params) })],
  [LEGACY_METHOD_TASKS_CANCEL, (params) => ({ operation: 'cancelTask', request: readCancelTask(params) })],
  [
    LEGACY_METHOD_TASKS_RESUBSCRIBE,
    (params) => ({ operation: 'subscribeToTask', request: readTaskId(params) }),
  ],
  [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_SET, pushCall('taskId')],
  [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_GET, pushCall('id')],
  [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_LIST, pushCall('id')],
  [LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_DELETE, pushCall('id')],
  [LEGACY_METHOD_GET_AUTHENTICATED_EXTENDED_CARD, () => ({ operation: 'getExtendedAgentCard', request: {} })],
]);

/** The same with a `message/stream` that may leave the messageId out. */
export const METHODS_WITH_LAX_STREAM: ReadonlyMap<string, ReadParams> = new Map([
  ...METHODS,
  [LEGACY_METHOD_MESSAGE_STREAM, streamCall('optional')],
]);

function readSend(params: Fields, messageId: 'required' | 'optional' = 'required'): SendMessageRequest {
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

const readTaskId = (params: Fields) => ({ tenant: '', id: params.requiredId('id') });

const readGetTask = (params: Fields) => ({ ...readTaskId(params), historyLength: params.historyLength() });

const readCancelTask = (params: Fields) => ({ ...readTaskId(params), metadata: params.object('metadata') });
