import { randomUUID } from 'node:crypto';
import type { GrpcMethod } from '../../libs/a2a/src/grpc-methods.js';
import { httpPathOf, type HttpRoute } from '../../libs/a2a/src/http-routes.js';
import type { WireRequest } from '../support/wire.js';

/** What a call may name; what is absent is not in its params. */
export interface Named {
  taskId?: string | undefined;
  /** The id that a caller of 0.1 chooses for its task. */
  alias?: string;
  contextId?: string;
  messageId?: string;
  referenceTaskIds?: string[];
  pageToken?: string;
  tenant?: string;
  /** Where the params may name the agent. */
  agent?: string;
}

type Params = (named: Named) => object;

const metadata = ({ agent }: Named) => (agent === undefined ? undefined : { agent });

/** A message in the form of each family. */
const messageOf = (
  { taskId, contextId, messageId = randomUUID(), referenceTaskIds }: Named,
  form: { role: string; part: object },
) => ({ messageId, role: form.role, parts: [form.part], taskId, contextId, referenceTaskIds });

const send1: Params = (named) => ({
  message: messageOf(named, { role: 'ROLE_USER', part: { text: 'again' } }),
  tenant: named.tenant,
  metadata: metadata(named),
});
const send0: Params = (named) => ({
  message: messageOf(named, { role: 'user', part: { kind: 'text', text: 'again' } }),
  metadata: metadata(named),
});
const sendOld: Params = (named) => ({
  id: named.alias,
  sessionId: named.contextId,
  message: messageOf(
    { ...named, taskId: undefined },
    { role: 'user', part: { type: 'text', text: 'again' } },
  ),
  metadata: metadata(named),
});
const byId: Params = (named) => ({ id: named.taskId, tenant: named.tenant, metadata: metadata(named) });
const byTaskId: Params = (named) => ({
  taskId: named.taskId,
  id: 'config',
  tenant: named.tenant,
  metadata: metadata(named),
  pushNotificationConfig: { url: 'https://push.example' },
  url: 'https://push.example',
});
const byConfig: Params = (named) => ({ ...byId(named), pushNotificationConfigId: 'config' });
const bare: Params = (named) => ({ tenant: named.tenant, metadata: metadata(named) });
const list: Params = (named) => ({
  contextId: named.contextId,
  pageToken: named.pageToken,
  tenant: named.tenant,
  metadata: metadata(named),
});

/** The params of every JSON-RPC method that any profile has. */
export const METHODS: Readonly<Record<string, Params>> = {
  SendMessage: send1,
  SendStreamingMessage: send1,
  GetTask: byId,
  CancelTask: byId,
  SubscribeToTask: byId,
  ListTasks: list,
  CreateTaskPushNotificationConfig: byTaskId,
  GetTaskPushNotificationConfig: byTaskId,
  ListTaskPushNotificationConfigs: byTaskId,
  // The walk reads the other one.
  DeleteTaskPushNotificationConfig: (named) => ({ ...byTaskId(named), id: 'another' }),
  GetExtendedAgentCard: bare,
  'message/send': send0,
  'message/stream': send0,
  'tasks/get': byId,
  'tasks/cancel': byId,
  'tasks/resubscribe': byId,
  'tasks/pushNotificationConfig/set': byTaskId,
  'tasks/pushNotificationConfig/get': byConfig,
  'tasks/pushNotificationConfig/list': byId,
  'tasks/pushNotificationConfig/delete': (named) => ({
    ...byConfig(named),
    pushNotificationConfigId: 'another',
  }),
  'agent/getAuthenticatedExtendedCard': bare,
  'tasks/send': sendOld,
  'tasks/sendSubscribe': sendOld,
};

/** The JSON of the request of an RPC of gRPC. 0.3 names resources, and has other messages. */
export function grpcRequestOf({ service, rpc, method }: GrpcMethod, named: Named): object {
  if (service !== 'a2a.v1.A2AService') return METHODS[method]!(named);
  const name = `tasks/${named.taskId ?? ''}`;
  if (rpc.includes('Send')) {
    const { parts: _, ...message } = messageOf(named, { role: 'ROLE_USER', part: {} });
    return { message: { ...message, content: [{ text: 'again' }] } };
  }
  if (!rpc.includes('Push')) return { name };
  const url = 'https://push.example';
  const config = { config: { pushNotificationConfig: { url } }, configId: 'config' };
  return { parent: name, name: `${name}/pushNotificationConfigs/config`, ...config };
}

/**
 * A call over HTTP+JSON: what the path of a route names is in the path, the rest in the body or in the query.
 * @param others what else the path names, such as the agent
 */
export function httpRequestOf(
  route: HttpRoute,
  named: Named,
  others: Readonly<Record<string, string>>,
): Omit<WireRequest, 'headers'> {
  const { verb, names } = route;
  const params = METHODS[route.method]!(named);
  const texts = Object.entries(params).filter(
    (member): member is [string, string] => typeof member[1] === 'string',
  );
  const known: Readonly<Record<string, string>> = { ...Object.fromEntries(texts), ...others };
  const inPath = new Set<string>();
  const path = httpPathOf(route, (name) => {
    const param = names[name] ?? name;
    inPath.add(param);
    return known[param] ?? known[name] ?? 'config';
  });
  if (verb === 'POST') return { method: verb, path, body: params };
  const search = new URLSearchParams(texts.filter(([name]) => !inPath.has(name))).toString();
  return { method: verb, path: search === '' ? path : `${path}?${search}` };
}
