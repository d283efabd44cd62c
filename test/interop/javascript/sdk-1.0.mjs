// @a2a-js/sdk 1.x: a client of A2A 1.0 over one binding.
import { Role, StreamResponse, TaskState, verifyAgentCardSignature } from '@a2a-js/sdk';
import {
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { randomUUID } from 'node:crypto';

const TRANSPORTS = {
  'JSON-RPC': JsonRpcTransportFactory,
  'HTTP+JSON': RestTransportFactory,
  gRPC: GrpcTransportFactory,
};
export const BINDINGS = Object.keys(TRANSPORTS);
/** An SDK of 1.0 has an error class for each reason; that of bad params is `RequestMalformedError`. */
const REASONS = {
  TaskNotFoundError: 'TASK_NOT_FOUND',
  TaskNotCancelableError: 'TASK_NOT_CANCELABLE',
  RequestMalformedError: 'INVALID_PARAMS',
};

const state = (value) => TaskState[value].replace('TASK_STATE_', '').toLowerCase().replace('_', '-');

const toPart = ({ text, bytes, url, data, mediaType = '', filename = '' }) => {
  const content =
    text !== undefined
      ? { $case: 'text', value: text }
      : bytes !== undefined
        ? { $case: 'raw', value: Buffer.from(bytes, 'base64') }
        : url !== undefined
          ? { $case: 'url', value: url }
          : { $case: 'data', value: data };
  return { content, mediaType, filename, metadata: undefined };
};

// The SDK reads data that is null as no content.
const fromPart = ({ content = { $case: 'data', value: null }, mediaType, filename }) => {
  const key = content.$case === 'raw' ? 'bytes' : content.$case;
  const value = content.$case === 'raw' ? Buffer.from(content.value).toString('base64') : content.value;
  return { [key]: value, ...(mediaType && { mediaType }), ...(filename && { filename }) };
};

const fromTask = (task) => ({
  id: task.id,
  contextId: task.contextId,
  state: state(task.status.state),
  parts: task.artifacts.flatMap(({ parts }) => parts.map(fromPart)),
  history: task.history.map(({ role }) => Role[role].replace('ROLE_', '').toLowerCase()),
});

const fromConfig = ({ id, url }) => ({ id, url });

function fromEvent({ payload: { $case, value } }) {
  if ($case === 'task') return { kind: 'task', ...fromTask(value) };
  if ($case === 'statusUpdate') return { kind: 'status', state: state(value.status.state) };
  return { kind: $case === 'artifactUpdate' ? 'artifact' : $case };
}

async function* fromStream(stream) {
  for await (const event of stream) yield fromEvent(event);
}

function toRequest(parts, { echo, taskId = '', contextId = '' } = {}) {
  const message = {
    messageId: randomUUID(),
    role: Role.ROLE_USER,
    parts: parts.map(toPart),
    contextId,
    taskId,
    metadata: echo && { echo },
    extensions: [],
    referenceTaskIds: [],
  };
  return { tenant: '', message, configuration: undefined, metadata: undefined };
}

/** Connects as users do: from the card of the agent. */
export async function connect(binding, { baseUrl, token, fetchAs }) {
  const resolver = new DefaultAgentCardResolver({ fetchImpl: fetchAs });
  const factory = new ClientFactory({
    transports: [new TRANSPORTS[binding]({ fetchImpl: fetchAs })],
    cardResolver: resolver,
  });
  const client = await factory.createFromUrl(baseUrl);
  // Over gRPC it becomes metadata.
  const as = { serviceParameters: { authorization: `Bearer ${token}` } };
  return {
    version: '1.0',
    card: () => resolver.resolve(baseUrl),
    extendedCard: () => client.transport.getExtendedAgentCard({ tenant: '' }, as),
    urls: (card) => card.supportedInterfaces.map(({ url }) => url),
    // The card as it was fetched: see docs/calling/cards.md.
    verifyCard: async (keyOf) => {
      const answer = await fetchAs(new URL('.well-known/agent-card.json', baseUrl), {
        headers: { 'a2a-version': '1.0' },
      });
      await verifyAgentCardSignature(keyOf)(await answer.json());
    },
    send: async (parts, options) => fromTask(await client.sendMessage(toRequest(parts, options), as)),
    stream: (parts, options) => fromStream(client.sendMessageStream(toRequest(parts, options), as)),
    get: async (id) => fromTask(await client.getTask({ tenant: '', id }, as)),
    list: async ({ contextId, pageSize, pageToken = '' }) => {
      const query = { tenant: '', contextId, pageSize, pageToken, includeArtifacts: true };
      const filter = { status: TaskState.TASK_STATE_UNSPECIFIED, statusTimestampAfter: undefined };
      const { tasks, nextPageToken } = await client.listTasks({ ...query, ...filter }, as);
      return { tasks: tasks.map(fromTask), nextPageToken };
    },
    cancel: async (id) => fromTask(await client.cancelTask({ tenant: '', id, metadata: undefined }, as)),
    subscribe: (id) => fromStream(client.resubscribeTask({ tenant: '', id }, as)),
    setConfig: async (taskId, config) => {
      const params = { tenant: '', taskId, ...config, authentication: undefined };
      return fromConfig(await client.createTaskPushNotificationConfig(params, as));
    },
    getConfig: async (taskId, id) =>
      fromConfig(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id }, as)),
    listConfigs: async (taskId) => {
      const query = { tenant: '', taskId, pageSize: 0, pageToken: '' };
      return (await client.listTaskPushNotificationConfig(query, as)).configs.map(fromConfig);
    },
    deleteConfig: (taskId, id) => client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id }, as),
    pushed: (body) => fromEvent(StreamResponse.fromJSON(JSON.parse(body))),
    reason: (error) => REASONS[error.name] ?? `${error.name}: ${error.message}`,
  };
}
