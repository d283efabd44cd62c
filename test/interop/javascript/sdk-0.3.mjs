// The last 0.3 of @a2a-js/sdk: a client of A2A 0.3 over one binding.
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from 'a2a-js-sdk-0.3/client';
import { randomUUID } from 'node:crypto';

const TRANSPORTS = { 'JSON-RPC': JsonRpcTransportFactory, 'HTTP+JSON': RestTransportFactory };
export const BINDINGS = Object.keys(TRANSPORTS);

const toPart = ({ text, bytes, url, data, mediaType, filename }) => {
  if (text !== undefined) return { kind: 'text', text };
  if (data !== undefined) return { kind: 'data', data };
  const place = bytes === undefined ? { uri: url } : { bytes };
  return { kind: 'file', file: { ...place, mimeType: mediaType, name: filename } };
};

const fromPart = ({ text, data, file }) => {
  if (text !== undefined) return { text };
  if (data !== undefined) return { data };
  const place = file.bytes === undefined ? { url: file.uri } : { bytes: file.bytes };
  return { ...place, mediaType: file.mimeType, ...(file.name && { filename: file.name }) };
};

const fromTask = (task) => ({
  id: task.id,
  contextId: task.contextId,
  state: task.status.state,
  parts: (task.artifacts ?? []).flatMap(({ parts }) => parts.map(fromPart)),
  history: (task.history ?? []).map(({ role }) => role),
});

const fromConfig = ({ pushNotificationConfig: { id, url } }) => ({ id, url });

async function* fromStream(stream) {
  for await (const event of stream) {
    if (event.kind === 'task') yield { kind: 'task', ...fromTask(event) };
    else if (event.kind === 'status-update') yield { kind: 'status', state: event.status.state };
    else yield { kind: event.kind === 'artifact-update' ? 'artifact' : event.kind };
  }
}

function toParams(parts, { echo, taskId, contextId } = {}) {
  const message = {
    kind: 'message',
    messageId: randomUUID(),
    role: 'user',
    parts: parts.map(toPart),
    ...(contextId && { contextId }),
    ...(taskId && { taskId }),
    ...(echo && { metadata: { echo } }),
  };
  return { message };
}

const REASONS = {
  TaskNotFoundError: 'TASK_NOT_FOUND',
  TaskNotCancelableError: 'TASK_NOT_CANCELABLE',
  '-32001': 'TASK_NOT_FOUND',
  '-32602': 'INVALID_PARAMS',
};

/** This SDK has classes for some errors. It names others, and all errors of streams, by the code in their message. */
const reasonOf = ({ name, message }) =>
  REASONS[name] ?? REASONS[/-32\d{3}/.exec(message)?.[0]] ?? `${name}: ${message}`;

/** Connects as users do: from the card of the agent. */
export async function connect(binding, { baseUrl, fetchAs }) {
  const resolver = new DefaultAgentCardResolver({ fetchImpl: fetchAs });
  const factory = new ClientFactory({
    transports: [new TRANSPORTS[binding]({ fetchImpl: fetchAs })],
    cardResolver: resolver,
  });
  const client = await factory.createFromUrl(baseUrl);
  return {
    version: '0.3',
    // Its protocol buffers have no name of a file.
    forgetsFileNames: binding === 'HTTP+JSON',
    card: () => resolver.resolve(baseUrl),
    extendedCard: () => client.transport.getExtendedAgentCard(),
    urls: (card) => [card.url, ...(card.additionalInterfaces ?? []).map(({ url }) => url)],
    send: async (parts, options) => fromTask(await client.sendMessage(toParams(parts, options))),
    stream: (parts, options) => fromStream(client.sendMessageStream(toParams(parts, options))),
    get: async (id) => fromTask(await client.getTask({ id })),
    cancel: async (id) => fromTask(await client.cancelTask({ id })),
    subscribe: (id) => fromStream(client.resubscribeTask({ id })),
    setConfig: async (taskId, pushNotificationConfig) =>
      fromConfig(await client.setTaskPushNotificationConfig({ taskId, pushNotificationConfig })),
    getConfig: async (id, pushNotificationConfigId) =>
      fromConfig(await client.getTaskPushNotificationConfig({ id, pushNotificationConfigId })),
    listConfigs: async (id) => (await client.listTaskPushNotificationConfig({ id })).map(fromConfig),
    deleteConfig: (id, pushNotificationConfigId) =>
      client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId }),
    pushed: (body) => fromTask(JSON.parse(body)),
    reason: reasonOf,
  };
}
