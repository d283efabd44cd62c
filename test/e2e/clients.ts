import { Role, TaskState, type SendMessageRequest, type StreamResponse, type Task } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { InterceptingCall, type Interceptor } from '@grpc/grpc-js';
import { randomUUID } from 'node:crypto';
import { DRIVERS } from '../support/index.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';

const GENERATIONS = ['1.0', '0.3'] as const;
const BINDINGS = ['JSON-RPC', 'HTTP+JSON', 'gRPC'] as const;
const KINDS = GENERATIONS.flatMap((generation) => BINDINGS.map((binding) => ({ generation, binding })));
type Kind = (typeof KINDS)[number];

function request(text: string, more: { echo?: object; taskId?: string } = {}): SendMessageRequest {
  const content = { $case: 'text' as const, value: text };
  return {
    tenant: '',
    message: {
      messageId: randomUUID(),
      role: Role.ROLE_USER,
      parts: [{ content, metadata: undefined, filename: '', mediaType: '' }],
      contextId: '',
      taskId: more.taskId ?? '',
      metadata: more.echo && { echo: more.echo },
      extensions: [],
      referenceTaskIds: [],
    },
    configuration: undefined,
    metadata: undefined,
  };
}

/** Adds the token to each call, and the agent, which clients of 0.3 have no field for. */
const metadataOf =
  (token: string): Interceptor =>
  (options, next) =>
    new InterceptingCall(next(options), {
      start: (metadata, listener, start) => {
        metadata.set('authorization', `Bearer ${token}`);
        metadata.set('baton-agent', 'echo');
        start(metadata, listener);
      },
    });

const startStack = shareStack(
  DRIVERS[0]!,
  {
    GRPC_PORT: '0',
    GRPC_PUBLIC_ADDRESS: 'localhost:0',
    PUSH_NOTIFICATIONS: 'all',
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_MASTER_KEY: MASTER_KEY,
  },
  { apis: 2 },
);
const NO_PUSH = { tenant: '', taskId: '', token: '', authentication: undefined };
/** A port without a listener. */
const RECEIVER = 'http://127.0.0.1:9/events';

const textsOf = (task: Task): unknown[] =>
  task.artifacts.flatMap(({ parts }) => parts.map(({ content }) => content?.value as unknown));

async function collect(stream: AsyncGenerator<StreamResponse>): Promise<StreamResponse[]> {
  const events: StreamResponse[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

// Messaging has no part in what is on the wire. `streams.ts` reads streams of the other API on both drivers.
describe('unmodified SDK clients', () => {
  let stack: Stack;
  let fetchAs: typeof fetch;
  let interceptor: Interceptor;
  let tenant: string;

  beforeAll(async () => {
    stack = await startStack();
    const { token, slug } = await stack.createTenant();
    tenant = slug;
    interceptor = metadataOf(token);
    fetchAs = (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('authorization', `Bearer ${token}`);
      return fetch(input, { ...init, headers });
    };
  });

  /** A client of one generation over one binding, made from the agent's card as it finds it. */
  async function connect({ generation, binding }: Kind, api = 0): Promise<Client> {
    const legacyCompat = { enabled: generation === '0.3' };
    // The resolver asks for the 1.0 card; a client of 0.3 is one that reads the other.
    const cardFetch: typeof fetch = (input, init) => {
      const headers = new Headers(init?.headers);
      headers.set('a2a-version', generation);
      return fetchAs(input, { ...init, headers });
    };
    const transports = {
      'JSON-RPC': () => new JsonRpcTransportFactory({ fetchImpl: fetchAs, legacyCompat }),
      'HTTP+JSON': () => new RestTransportFactory({ fetchImpl: fetchAs, legacyCompat }),
      gRPC: () =>
        new GrpcTransportFactory({ legacyCompat, grpcCallOptions: { interceptors: [interceptor] } }),
    };
    const factory = new ClientFactory({
      transports: [transports[binding]()],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl: cardFetch, legacyCompat }),
    });
    return factory.createFromUrl(`${stack.url(api)}/`);
  }

  describe.each(KINDS)('of A2A $generation over $binding', (kind) => {
    let client: Client;
    beforeAll(async () => {
      client = await connect(kind);
    });

    it('send and get', async () => {
      const sent = (await client.sendMessage(request('hello'))) as Task;
      expect(sent.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(textsOf(sent)).toEqual(['hello']);
      const got = await client.getTask({ tenant: '', id: sent.id });
      expect(got.history).toHaveLength(1);
      expect(textsOf(got)).toEqual(['hello']);
    });

    it('stream', async () => {
      const events = await collect(client.sendMessageStream(request('hi', { echo: { chunks: 3 } })));
      const kinds = events.map(({ payload }) => payload?.$case);
      const updates = ['artifactUpdate', 'artifactUpdate', 'artifactUpdate'];
      expect(kinds).toEqual(['task', 'statusUpdate', ...updates, 'statusUpdate']);
    });

    it('return at once and resubscribe on the other API', async () => {
      const other = await connect(kind, 1);
      const slow = request('later', { echo: { delayMs: 600_000 } });
      slow.configuration = {
        returnImmediately: true,
        acceptedOutputModes: [],
        taskPushNotificationConfig: undefined,
      };
      const sent = (await client.sendMessage(slow)) as Task;
      expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(sent.status?.state);
      const stream = other.resubscribeTask({ tenant: '', id: sent.id });
      const first = (await stream.next()).value as StreamResponse;
      expect(first.payload).toMatchObject({ $case: 'task', value: { id: sent.id } });
      await client.cancelTask({ tenant: '', id: sent.id, metadata: undefined });
      const last = (await collect(stream)).at(-1)?.payload;
      expect(last?.$case === 'statusUpdate' && last.value.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    });

    it('cancel', async () => {
      const slow = request('never', { echo: { chunks: 100_000, delayMs: 100 } });
      const stream = client.sendMessageStream(slow);
      const first = (await stream.next()).value as StreamResponse;
      const id = first.payload?.$case === 'task' ? first.payload.value.id : '';
      const canceled = await client.cancelTask({ tenant: '', id, metadata: undefined });
      expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
      const last = (await collect(stream)).at(-1)?.payload;
      expect(last?.$case === 'statusUpdate' && last.value.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
    });

    it('set, read, list and delete push configs', async () => {
      const { id: taskId } = (await client.sendMessage(request('hello'))) as Task;
      const config = (id: string) => ({
        tenant: '',
        taskId,
        id,
        url: RECEIVER,
        token: 'my-token',
        authentication: { scheme: 'Bearer', credentials: 'my-key' },
      });
      const shown = {
        taskId,
        url: RECEIVER,
        token: '',
        authentication: { scheme: 'Bearer', credentials: '' },
      };
      for (const id of ['a', 'b'])
        expect(await client.createTaskPushNotificationConfig(config(id))).toMatchObject({ ...shown, id });
      const named = { tenant: '', taskId, id: 'a' };
      expect(await client.getTaskPushNotificationConfig(named)).toMatchObject({ ...shown, id: 'a' });
      const all = { tenant: '', taskId, pageSize: 0, pageToken: '' };
      const idsOf = async () =>
        (await client.listTaskPushNotificationConfig(all)).configs.map(({ id }) => id).sort();
      expect(await idsOf()).toEqual(['a', 'b']);
      await client.deleteTaskPushNotificationConfig(named);
      await client.deleteTaskPushNotificationConfig(named);
      expect(await idsOf()).toEqual(['b']);
      await expect(client.getTaskPushNotificationConfig(named)).rejects.toThrow(/config "a" not found/);
      const privateConfig = { ...config('c'), url: 'http://10.0.0.1/' };
      await expect(client.createTaskPushNotificationConfig(privateConfig)).rejects.toThrow(
        kind.generation === '0.3' ? /pushNotificationConfig\.url: .* public/ : /url: .* public/,
      );
    });

    it('send a push config with a message', async () => {
      const asked = request('hello');
      const taskPushNotificationConfig = { ...NO_PUSH, id: 'mine', url: RECEIVER };
      const configuration = { acceptedOutputModes: [], returnImmediately: false };
      asked.configuration = { ...configuration, historyLength: undefined, taskPushNotificationConfig };
      const { id: taskId } = (await client.sendMessage(asked)) as Task;
      const named = { tenant: '', taskId, id: 'mine' };
      expect(await client.getTaskPushNotificationConfig(named)).toMatchObject({ id: 'mine', url: RECEIVER });
      const scheme = { scheme: 'Digest', credentials: 'x' };
      asked.configuration.taskPushNotificationConfig = {
        ...taskPushNotificationConfig,
        authentication: scheme,
      };
      asked.message!.messageId = randomUUID();
      await expect(client.sendMessage(asked)).rejects.toThrow(/"Digest" needs other credentials/);
    });

    it('answer a question', async () => {
      const asked = (await client.sendMessage(request('first', { echo: { askInput: true } }))) as Task;
      expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
      const answered = (await client.sendMessage(request('second', { taskId: asked.id }))) as Task;
      expect(answered.id).toBe(asked.id);
      expect(answered.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(textsOf(answered)).toEqual(['second']);
      expect(answered.history.map(({ role }) => role)).toEqual([
        Role.ROLE_USER,
        Role.ROLE_AGENT,
        Role.ROLE_USER,
      ]);
    });

    it('learn which error it was', async () => {
      const missing = client.getTask({ tenant: '', id: randomUUID() });
      await expect(missing).rejects.toMatchObject({
        name: expect.stringContaining('TaskNotFound') as string,
      });
      const { id } = (await client.sendMessage(request('done'))) as Task;
      const late = client.cancelTask({ tenant: '', id, metadata: undefined });
      await expect(late).rejects.toMatchObject({
        name: expect.stringContaining('TaskNotCancelable') as string,
      });
    });
  });

  it.each(BINDINGS)('list tasks in pages over %s', async (binding) => {
    const client = await connect({ generation: '1.0', binding });
    const contextId = randomUUID();
    for (const text of ['a', 'b', 'c']) {
      const sent = request(text);
      sent.message!.contextId = contextId;
      await client.sendMessage(sent);
    }
    const query = {
      tenant: '',
      contextId,
      status: TaskState.TASK_STATE_UNSPECIFIED,
      pageSize: 2,
      pageToken: '',
      statusTimestampAfter: undefined,
      includeArtifacts: true,
    };
    const first = await client.listTasks(query);
    const second = await client.listTasks({ ...query, pageToken: first.nextPageToken });
    expect([...first.tasks, ...second.tasks].flatMap(textsOf)).toEqual(['c', 'b', 'a']);
    expect([first.totalSize, second.nextPageToken]).toEqual([3, '']);
  });

  it('name their tenant in the path, and no other', async () => {
    const client = await connect({ generation: '1.0', binding: 'HTTP+JSON' });
    const { id } = (await client.sendMessage({ ...request('mine'), tenant })) as Task;
    expect((await client.getTask({ tenant, id })).id).toBe(id);
    const { slug: other } = await stack.createTenant();
    const refusal = async (name: string): Promise<string> => {
      const refused = await client.getTask({ tenant: name, id }).catch((error: unknown) => error);
      expect(refused).toMatchObject({ statusCode: 404 });
      return (refused as Error).message.replace(name, '…');
    };
    expect(await refusal(other)).toBe(await refusal('no-such-tenant'));
  });

  /** The SDK's client of 0.3 over HTTP+JSON forgets `append`. */
  const comparable = (events: StreamResponse[]): unknown[] =>
    events.map(({ payload }) =>
      payload?.$case === 'artifactUpdate' ? { ...payload.value, append: undefined } : payload,
    );

  it.each(KINDS)(
    'read, resume and cancel a task of $generation over $binding over the other',
    async (kind) => {
      // The next one, so that each is once the maker and once the other.
      const binding = BINDINGS[(BINDINGS.indexOf(kind.binding) + 1) % BINDINGS.length]!;
      const [maker, other] = [await connect(kind), await connect({ ...kind, binding }, 1)];
      const stream = maker.sendMessageStream(request('long', { echo: { chunks: 100_000, delayMs: 100 } }));
      const first = (await stream.next()).value as StreamResponse;
      const id = first.payload?.$case === 'task' ? first.payload.value.id : '';
      expect((await other.getTask({ tenant: '', id })).id).toBe(id);
      const after = { serviceParameters: { 'Last-Event-ID': '1' } };
      const resumed = collect(other.resubscribeTask({ tenant: '', id }, after));
      // Only a chunk shows that the turn runs, and so that there is something to cancel.
      const seen: StreamResponse[] = [];
      do seen.push((await stream.next()).value as StreamResponse);
      while (seen.at(-1)?.payload?.$case !== 'artifactUpdate');
      const canceled = await other.cancelTask({ tenant: '', id, metadata: undefined });
      expect(canceled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
      expect(comparable(await resumed)).toEqual(comparable([...seen, ...(await collect(stream))]));
      const late = maker.cancelTask({ tenant: '', id, metadata: undefined });
      await expect(late).rejects.toMatchObject({
        name: expect.stringContaining('TaskNotCancelable') as string,
      });
    },
  );
});
