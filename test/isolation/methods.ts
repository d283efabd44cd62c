import { randomUUID } from 'node:crypto';

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
  DeleteTaskPushNotificationConfig: byTaskId,
  GetExtendedAgentCard: bare,
  'message/send': send0,
  'message/stream': send0,
  'tasks/get': byId,
  'tasks/cancel': byId,
  'tasks/resubscribe': byId,
  'tasks/pushNotificationConfig/set': byTaskId,
  'tasks/pushNotificationConfig/get': byId,
  'tasks/pushNotificationConfig/list': byId,
  'tasks/pushNotificationConfig/delete': byId,
  'agent/getAuthenticatedExtendedCard': bare,
  'tasks/send': sendOld,
  'tasks/sendSubscribe': sendOld,
};
