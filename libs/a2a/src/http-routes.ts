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
import { ProtocolError } from './protocol-error.js';

/** One route of the HTTP+JSON binding. It does the same as a JSON-RPC method, and writes the params differently. */
export interface HttpRoute {
  readonly verb: 'GET' | 'POST' | 'DELETE';
  /** The path as the router reads it: `:name` is a param, `::` a colon. */
  readonly path: string;
  /** The JSON-RPC method that does the same. */
  readonly method: string;
  /** Where the params are that are not in the path. An `optional-body` may be missing. */
  readonly params: 'query' | 'body' | 'optional-body';
  /** Params with another name in the method than in the path: the name in the method by the name in the path. */
  readonly names: Readonly<Record<string, string>>;
  readonly codec: Codec;
}

type RouteRow = readonly [
  verb: HttpRoute['verb'],
  path: string,
  method: string,
  params: HttpRoute['params'],
  names?: HttpRoute['names'],
];

const CONFIGS = 'tasks/:id/pushNotificationConfigs';
const CONFIG = `${CONFIGS}/:configId`;
const V1_0_NAMES = { id: 'taskId', configId: 'id' };
const V0_3_NAMES = { configId: 'pushNotificationConfigId' };

/** A2A 1.0 §11.3; its text has subscribe as POST, its proto as GET. */
const V1_0_ROUTES: readonly RouteRow[] = [
  ['POST', 'message::send', 'SendMessage', 'body'],
  ['POST', 'message::stream', 'SendStreamingMessage', 'body'],
  ['GET', 'tasks', 'ListTasks', 'query'],
  ['GET', 'tasks/:id', 'GetTask', 'query'],
  ['POST', 'tasks/:id(^.+)::cancel', 'CancelTask', 'optional-body'],
  ['POST', 'tasks/:id(^.+)::subscribe', 'SubscribeToTask', 'optional-body'],
  ['GET', 'tasks/:id(^.+)::subscribe', 'SubscribeToTask', 'query'],
  ['POST', CONFIGS, 'CreateTaskPushNotificationConfig', 'body', V1_0_NAMES],
  ['GET', CONFIGS, 'ListTaskPushNotificationConfigs', 'query', V1_0_NAMES],
  ['GET', CONFIG, 'GetTaskPushNotificationConfig', 'query', V1_0_NAMES],
  ['DELETE', CONFIG, 'DeleteTaskPushNotificationConfig', 'query', V1_0_NAMES],
  ['GET', 'extendedAgentCard', 'GetExtendedAgentCard', 'query'],
];

/** A2A 0.3 §3.5.6. It has no list of tasks, as in JSON-RPC: no client of 0.3 asks for one. */
const V0_3_ROUTES: readonly RouteRow[] = [
  ['POST', 'message::send', LEGACY_METHOD_MESSAGE_SEND, 'body'],
  ['POST', 'message::stream', LEGACY_METHOD_MESSAGE_STREAM, 'body'],
  ['GET', 'tasks/:id', LEGACY_METHOD_TASKS_GET, 'query'],
  ['POST', 'tasks/:id(^.+)::cancel', LEGACY_METHOD_TASKS_CANCEL, 'optional-body'],
  ['POST', 'tasks/:id(^.+)::subscribe', LEGACY_METHOD_TASKS_RESUBSCRIBE, 'optional-body'],
  ['GET', 'tasks/:id(^.+)::subscribe', LEGACY_METHOD_TASKS_RESUBSCRIBE, 'query'],
  ['POST', CONFIGS, LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_SET, 'body', { id: 'taskId' }],
  ['GET', CONFIGS, LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_LIST, 'query'],
  ['GET', CONFIG, LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_GET, 'query', V0_3_NAMES],
  ['DELETE', CONFIG, LEGACY_METHOD_PUSH_NOTIFICATION_CONFIG_DELETE, 'query', V0_3_NAMES],
  ['GET', 'card', LEGACY_METHOD_GET_AUTHENTICATED_EXTENDED_CARD, 'query'],
];

const routesBelow = (base: string, codec: Codec, rows: readonly RouteRow[]): HttpRoute[] =>
  rows.map(([verb, path, method, params, names = {}]) => ({
    verb,
    path: `${base}/${path}`,
    method,
    params,
    names,
    codec,
  }));

/** Every route of the HTTP+JSON binding. */
export const HTTP_ROUTES: readonly HttpRoute[] = [
  ...routesBelow('/agents/:agent', V1_0_HTTP_CODEC, V1_0_ROUTES),
  ...routesBelow('/agents/:agent/:tenant', V1_0_HTTP_CODEC, V1_0_ROUTES),
  ...routesBelow('/agents/:agent/v1', V0_3_HTTP_CODEC, V0_3_ROUTES),
];

/** The path of a route as a caller writes it. @param valueOf the value for a param */
export const httpPathOf = ({ path }: Pick<HttpRoute, 'path'>, valueOf: (name: string) => string): string =>
  path
    .split('/')
    .map((segment) => {
      const [, name, action = ''] = /^:(\w+)(?:\(.*\)::(\w+))?$/.exec(segment) ?? [];
      if (name === undefined) return segment.replace('::', ':');
      return encodeURIComponent(valueOf(name)) + (action && `:${action}`);
    })
    .join('/');

/** How the query writes values that are no strings. */
const QUERY_VALUES: Readonly<Record<string, RegExp>> = {
  historyLength: /^-?\d{1,15}$/,
  pageSize: /^-?\d{1,15}$/,
  // An enum may be written as its number.
  status: /^\d{1,3}$/,
  includeArtifacts: /^(true|false)$/,
};

/**
 * The params of a request without a body. A parameter may have its JSON name or its proto name (`historyLength`, `history_length`).
 * An empty value counts as missing. A value of a wrong form stays a string, and the codec refuses it.
 */
export function paramsOfQuery(query: object): Record<string, unknown> {
  const members = Object.entries(query).flatMap(([name, value]: [string, unknown]) => {
    if (value === '') return [];
    const jsonName = name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const isJson = typeof value === 'string' && QUERY_VALUES[jsonName]?.test(value) === true;
    return [[jsonName, isJson ? (JSON.parse(value.replace(/^(-?)0+(?=\d)/, '$1')) as unknown) : value]];
  });
  return Object.fromEntries(members) as Record<string, unknown>;
}

/** The params of a call: those in the path, and those in the body or the query. The path wins. */
export function paramsOfRoute(
  { names }: HttpRoute,
  inPath: Readonly<Record<string, string>>,
  others: unknown,
): Record<string, unknown> {
  const rest: unknown = others ?? {};
  if (typeof rest !== 'object' || rest === null || Array.isArray(rest)) {
    throw ProtocolError.invalidParams('body', 'must be a JSON object');
  }
  const named = Object.entries(inPath).map(([name, value]) => [names[name] ?? name, value] as const);
  return { ...rest, ...Object.fromEntries(named) };
}
