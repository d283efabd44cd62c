import type { JsonObject } from './model.js';
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
import type { Codec } from './codecs/codec.js';
import { V0_3_HTTP_CODEC } from './codecs/v0_3-http.js';
import { V1_0_HTTP_CODEC } from './codecs/v1_0.js';
import type { ErrorKind } from './errors.js';
import { ProtocolError } from './protocol-error.js';
import { httpErrorWire } from './http-json.js';

/**
 * One RPC of the gRPC binding. Its messages are the protocol buffers whose JSON is that of HTTP+JSON, so it has the same
 * codec, and does the same as a JSON-RPC method.
 */
export interface GrpcMethod {
  /** Full name of the service, such as `lf.a2a.v1.A2AService`. */
  readonly service: string;
  readonly rpc: string;
  /** The JSON-RPC method that does the same. */
  readonly method: string;
  readonly codec: Codec;
  /** The params of the method, from the JSON of the request. */
  params(request: JsonObject): JsonObject;
}

type RpcRow = readonly [rpc: string, method: string, params?: GrpcMethod['params']];

const unchanged = (request: JsonObject): JsonObject => request;

/** A2A 1.0 §10.4. */
const V1_0_RPCS: readonly RpcRow[] = [
  ['SendMessage', 'SendMessage'],
  ['SendStreamingMessage', 'SendStreamingMessage'],
  ['GetTask', 'GetTask'],
  ['ListTasks', 'ListTasks'],
  ['CancelTask', 'CancelTask'],
  ['SubscribeToTask', 'SubscribeToTask'],
  ['CreateTaskPushNotificationConfig', 'CreateTaskPushNotificationConfig'],
  ['GetTaskPushNotificationConfig', 'GetTaskPushNotificationConfig'],
  ['ListTaskPushNotificationConfigs', 'ListTaskPushNotificationConfigs'],
  ['DeleteTaskPushNotificationConfig', 'DeleteTaskPushNotificationConfig'],
  ['GetExtendedAgentCard', 'GetExtendedAgentCard'],
];

/** 0.3 names resources: `tasks/{id}`, `tasks/{id}/pushNotificationConfigs/{configId}`. */
const TASK = /^tasks\/([^/]+)$/;
const CONFIG = /^tasks\/([^/]+)\/pushNotificationConfigs\/([^/]+)$/;

const taskIn =
  (member: string) =>
  ({ [member]: name, ...rest }: JsonObject): JsonObject => ({
    ...rest,
    id: idsIn(member, name, TASK, 'tasks/{id}')[0],
  });

function configIn({ name }: JsonObject): JsonObject {
  const [id, pushNotificationConfigId] = idsIn(
    'name',
    name,
    CONFIG,
    'tasks/{id}/pushNotificationConfigs/{configId}',
  );
  return { id, pushNotificationConfigId };
}

function newConfigIn({ parent, configId, config }: JsonObject): JsonObject {
  const [taskId] = idsIn('parent', parent, TASK, 'tasks/{id}');
  const { pushNotificationConfig } = (config ?? {}) as JsonObject;
  const id = configId === undefined ? {} : { id: configId };
  return { taskId, pushNotificationConfig: { ...id, ...(pushNotificationConfig as object | undefined) } };
}

function idsIn(member: string, name: unknown, form: RegExp, shown: string): string[] {
  const [, ...ids] = form.exec(typeof name === 'string' ? name : '') ?? [];
  if (ids.length === 0) throw ProtocolError.invalidParams(member, `must have the form ${shown}`);
  return ids;
}

/** A2A 0.3 §3.2.2, §3.5.6. */
const V0_3_RPCS: readonly RpcRow[] = [
  ['SendMessage', LEGACY_METHOD_MESSAGE_SEND],
  ['SendStreamingMessage', LEGACY_METHOD_MESSAGE_STREAM],
  ['GetTask', LEGACY_METHOD_TASKS_GET, taskIn('name')],
  ['CancelTask', LEGACY_METHOD_TASKS_CANCEL, taskIn('name')],
  ['TaskSubscription', LEGACY_METHOD_TASKS_RESUBSCRIBE, taskIn('name')],
  ['CreateTaskPushNotificationConfig', LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_SET, newConfigIn],
  ['GetTaskPushNotificationConfig', LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_GET, configIn],
  ['ListTaskPushNotificationConfig', LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_LIST, taskIn('parent')],
  ['DeleteTaskPushNotificationConfig', LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_DELETE, configIn],
  ['GetAgentCard', LEGACY_METHOD_GET_AUTHENTICATED_EXTENDED_CARD],
];

const rpcsOf = (service: string, codec: Codec, rows: readonly RpcRow[]): GrpcMethod[] =>
  rows.map(([rpc, method, params = unchanged]) => ({ service, rpc, method, codec, params }));

/** Every RPC of the gRPC binding. */
export const GRPC_METHODS: readonly GrpcMethod[] = [
  ...rpcsOf('lf.a2a.v1.A2AService', V1_0_HTTP_CODEC, V1_0_RPCS),
  ...rpcsOf('a2a.v1.A2AService', V0_3_HTTP_CODEC, V0_3_RPCS),
];

/** Where gRPC has another name than AIP-193. */
const STATUS_OF: Partial<Record<ErrorKind, string>> = {
  'method-not-found': 'UNIMPLEMENTED',
  'too-large': 'RESOURCE_EXHAUSTED',
};

/** The gRPC status of an error, by its name in google.rpc.Code (A2A 1.0 §5.4). */
export const grpcStatusName = (kind: ErrorKind): string => STATUS_OF[kind] ?? httpErrorWire(kind).status;
