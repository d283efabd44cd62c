import {
  type CallContext,
  GRPC_METHODS,
  ProtocolError,
  type Requests,
  RESUME_EXTENSION,
  type StreamItem,
  TaskState,
} from '@baton/a2a';
import { generateKeyPairSync } from 'node:crypto';
import {
  type FakeApi,
  recordCalls,
  type RecordedCall,
  startFakeApi,
} from '../../../../test/support/api/fake-api.js';
import { GrpcCaller, V0_3_SERVICE } from '../../../../test/support/api/grpc-caller.js';
import { request, statusItem, taskItem } from '../../../../test/support/api/samples.js';

/** The gRPC port is on the cards, at the host that the caller names. */
const GRPC = { GRPC_PORT: '0', GRPC_PUBLIC_ADDRESS: 'localhost:0' };

let api: FakeApi;
let grpc: GrpcCaller;
/** What operations were called with. */
let calls: RecordedCall[];

beforeAll(async () => {
  api = await startFakeApi({ ...GRPC, BODY_LIMIT_BYTES: '100000', REQUEST_TIMEOUT_MS: '2000' });
  grpc = new GrpcCaller(api.grpcAddress);
});
afterAll(async () => {
  grpc.close();
  await api.close();
});
beforeEach(() => {
  calls = recordCalls(api);
});

const { message } = request.send.params;
const to = (agent: string, more: Record<string, string> = {}) => ({
  metadata: { 'baton-agent': agent, ...more },
});
const ECHO = to('echo');
const lastRequest = (): unknown => calls.at(-1)!.request;

describe('A2A 1.0 over gRPC', () => {
  it('sends a message and answers as JSON-RPC does', async () => {
    const sent = await grpc.ask('SendMessage', { message, configuration: { historyLength: 2 } }, ECHO);
    const overRpc = (await (await api.rpc(request.send)).json()) as { result: object };
    expect(sent.end.status).toBe('OK');
    // The reading of the test writes no milliseconds where there are none.
    expect(JSON.stringify(sent.json)).toBe(JSON.stringify(overRpc.result).replace('.000Z', 'Z'));
    const [first, second] = calls;
    expect(first!.context).toEqual({
      ...second!.context,
      requestId: expect.any(String) as string,
      address: expect.any(String) as string,
      memory: expect.anything() as object,
      onStored: expect.any(Function) as () => void,
    });
    expect(first!.context).toMatchObject({ profile: 'spec', version: '1.0', agent: { slug: 'echo' } });
  });

  it('gets, lists and cancels a task', async () => {
    expect((await grpc.ask('GetTask', { id: 'task-1', historyLength: 3 }, ECHO)).json).toMatchObject({
      id: 'task-1',
    });
    expect(lastRequest()).toEqual({ tenant: '', id: 'task-1', historyLength: 3 });
    const listed = await grpc.ask(
      'ListTasks',
      { contextId: 'c', status: 'TASK_STATE_WORKING', pageSize: 7 },
      ECHO,
    );
    expect(listed.json).toMatchObject({ tasks: [{ id: 'task-1' }], nextPageToken: 'n', totalSize: 3 });
    expect(lastRequest()).toMatchObject({
      contextId: 'c',
      status: TaskState.TASK_STATE_WORKING,
      pageSize: 7,
    });
    const canceled = await grpc.ask('CancelTask', { id: 'task-1', metadata: { why: 'late' } }, ECHO);
    expect(canceled.json.status.state).toBe('TASK_STATE_CANCELED');
    expect(lastRequest()).toEqual({ tenant: '', id: 'task-1', metadata: { why: 'late' } });
  });

  it('finds the agent by metadata, by the tenant of the request, by the host, or takes the default agent', async () => {
    const agentOf = async (json: object, options = {}): Promise<string | undefined> => {
      const { end } = await grpc.ask('GetTask', { id: 't', ...json }, options);
      return end.status === 'OK' ? calls.at(-1)!.context.agent.slug : end.details[0]!.reason;
    };
    expect(await agentOf({}, ECHO)).toBe('echo');
    expect(await agentOf({ tenant: 'echo' })).toBe('echo');
    expect(await agentOf({ tenant: 'nobody' }, ECHO)).toBe('echo');
    expect(await agentOf({ tenant: 'nobody' })).toBe('AGENT_NOT_FOUND');
    expect(await agentOf({})).toBe('index');
    api.hosts.push({ host: 'bound.example', tenantId: 'tenant-1', agent: 'echo', public: false });
    const bound = new GrpcCaller(api.grpcAddress, { 'grpc.default_authority': 'bound.example' });
    const { end } = await bound.ask('GetTask', { id: 't' });
    bound.close();
    expect([end.status, calls.at(-1)!.context.agent.slug]).toEqual(['OK', 'echo']);
  });

  it('lets guests of a public host call its agent, and no other', async () => {
    api.hosts.push({ host: 'open.example', tenantId: 'tenant-1', agent: 'echo', public: true });
    const guest = new GrpcCaller(api.grpcAddress, { 'grpc.default_authority': 'open.example' });
    const nobody = { authorization: '' };
    const own = await guest.ask('SendMessage', { message }, { metadata: nobody });
    expect([own.end.status, calls.at(-1)!.context.principal.kind]).toEqual(['OK', 'guest']);
    const other = await guest.ask('SendMessage', { message, tenant: 'index' }, { metadata: nobody });
    expect([other.end.status, other.end.details[0]!.reason]).toEqual(['NOT_FOUND', 'AGENT_NOT_FOUND']);
    const list = await guest.ask('ListTasks', {}, { metadata: nobody });
    expect(list.end.status).toBe('UNAUTHENTICATED');
    guest.close();
  });

  it('passes metadata on as headers, and answers with the id of the request', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const options = to('echo', { 'idempotency-key': 'k-1', traceparent, 'x-request-id': 'grpc-1' });
    const { headers } = await grpc.ask('SendMessage', { message }, options);
    expect(calls[0]!.context).toMatchObject({ idempotencyKey: 'k-1', traceparent, requestId: 'grpc-1' });
    expect(headers!.get('x-request-id')).toEqual(['grpc-1']);
    const bad = await grpc.ask('SendMessage', { message }, to('echo', { 'idempotency-key': 'a b' }));
    expect([bad.end.status, bad.end.details[0]!.reason]).toEqual(['INVALID_ARGUMENT', 'INVALID_PARAMS']);
  });

  it.each([
    [ProtocolError.taskNotFound('t'), 'NOT_FOUND', 'TASK_NOT_FOUND'],
    [new ProtocolError('task-not-cancelable', 'x'), 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'],
    [new ProtocolError('push-not-supported', 'x'), 'FAILED_PRECONDITION', 'PUSH_NOTIFICATION_NOT_SUPPORTED'],
    [new ProtocolError('unsupported-operation', 'x'), 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
    [new ProtocolError('content-type-not-supported', 'x'), 'INVALID_ARGUMENT', 'CONTENT_TYPE_NOT_SUPPORTED'],
    [new ProtocolError('agent-threw', 'x'), 'INTERNAL', 'INVALID_AGENT_RESPONSE'],
    [new ProtocolError('limit-exceeded', 'x'), 'RESOURCE_EXHAUSTED', 'LIMIT_EXCEEDED'],
    [new ProtocolError('unavailable', 'x', { retryAfterSeconds: 2 }), 'UNAVAILABLE', 'UNAVAILABLE'],
    [new Error('secret'), 'INTERNAL', 'INTERNAL_ERROR'],
  ])('answers %s with the status %s and its details', async (error, status, reason) => {
    api.operations.getTask = async () => {
      throw error;
    };
    const { end } = await grpc.ask('GetTask', { id: 't' }, ECHO);
    expect(end).toMatchObject({
      status,
      details: expect.arrayContaining([
        expect.objectContaining({
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason,
          domain: 'a2a-protocol.org',
        }),
      ]) as unknown,
    });
    expect(end.message).not.toContain('secret');
    if (status === 'UNAVAILABLE') {
      expect(end.details[1]).toMatchObject({ retryDelay: '2s' });
      expect(end.metadata.get('retry-after')).toEqual(['2']);
    }
  });

  it('names the wrong fields', async () => {
    const { end } = await grpc.ask('ListTasks', { pageSize: 1000 }, ECHO);
    expect(end.status).toBe('INVALID_ARGUMENT');
    expect(end.details[1]).toEqual({
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      fieldViolations: [{ field: 'pageSize', description: expect.any(String) as string }],
    });
  });

  it('cuts details that clients would not take', async () => {
    api.operations.getTask = async () => {
      throw new ProtocolError('invalid-params', 'x'.repeat(20_000), { metadata: { id: 'y'.repeat(20_000) } });
    };
    const { end } = await grpc.ask('GetTask', { id: 't' }, ECHO);
    expect(end.details).toMatchObject([{ reason: 'INVALID_PARAMS' }]);
    expect(end.message).toHaveLength(1024);
  });

  it('refuses callers before their message is looked at', async () => {
    const refusals: [string, string, Record<string, string>][] = [
      ['UNAUTHENTICATED', 'UNAUTHENTICATED', { authorization: '' }],
      ['UNAUTHENTICATED', 'UNAUTHENTICATED', { authorization: 'Bearer wrong' }],
      ['RESOURCE_EXHAUSTED', 'REQUEST_TOO_LARGE', { 'x-large': 'x'.repeat(20_000) }],
      ['PERMISSION_DENIED', 'PERMISSION_DENIED', { authorization: 'Bearer reader' }],
      ['FAILED_PRECONDITION', 'VERSION_NOT_SUPPORTED', { 'a2a-version': '2.0' }],
    ];
    for (const [status, reason, metadata] of refusals) {
      const { end } = await grpc.ask('SendMessage', { message }, to('echo', metadata));
      expect([end.status, end.details[0]?.reason]).toEqual([status, reason]);
    }
    api.suspended.add('tenant-1');
    const suspended = await grpc.ask('GetTask', { id: 't' }, ECHO);
    api.suspended.clear();
    expect(suspended.end.details[0]).toMatchObject({ reason: 'TENANT_SUSPENDED' });
    expect(calls).toEqual([]);
  });

  it('refuses messages that are too large, or have too much in them', async () => {
    const text = (length: number) => ({ message: { ...message, parts: [{ text: 'x'.repeat(length) }] } });
    expect((await grpc.ask('SendMessage', text(200_000), ECHO)).end.status).toBe('RESOURCE_EXHAUSTED');
    api.limits['tenant-1'] = { bodyBytes: 1000 };
    const own = await grpc.ask('SendMessage', text(2000), ECHO);
    delete api.limits['tenant-1'];
    expect(own.end.details[0]).toMatchObject({
      reason: 'REQUEST_TOO_LARGE',
      metadata: { limit: 'bodyBytes' },
    });
    let deep: object = {};
    for (let depth = 0; depth < 250; depth += 1) deep = { a: deep };
    const nested = await grpc.ask('SendMessage', { message, metadata: deep }, ECHO);
    expect([nested.end.status, nested.end.message]).toEqual([
      'INVALID_ARGUMENT',
      expect.stringContaining('deeper') as string,
    ]);
    expect(calls).toEqual([]);
  });

  it('writes the same fields to the log as JSON-RPC', async () => {
    await grpc.ask('ListTasks', { pageSize: 1000 }, to('echo', { 'x-request-id': 'log-1' }));
    const line = () => api.log.find(({ requestId, msg }) => requestId === 'log-1' && msg === 'request');
    while (!line()) await new Promise((resolve) => setImmediate(resolve));
    expect(line()).toMatchObject({
      tenantId: 'tenant-1',
      path: '/lf.a2a.v1.A2AService/ListTasks',
      rpcMethod: 'ListTasks',
      rpcError: -32602,
      grpcStatus: 'INVALID_ARGUMENT',
      status: 400,
    });
  });
});

describe('a stream over gRPC', () => {
  const serve = (
    source: (context: CallContext, asked: unknown, signal: AbortSignal) => AsyncGenerator<StreamItem[]>,
  ) => void Object.assign(api.operations, { sendStreamingMessage: source, subscribeToTask: source });

  it('has a message for each event, and the sequence of the last one in its trailers', async () => {
    serve(async function* () {
      yield [taskItem()];
      yield [statusItem(2, TaskState.TASK_STATE_COMPLETED)];
    });
    const { messages, end } = grpc.stream('SendStreamingMessage', { message }, ECHO);
    expect((await end).status).toBe('OK');
    expect((await end).metadata.get('last-event-id')).toEqual(['2']);
    expect(messages).toMatchObject([
      { task: { id: 'task-1' } },
      { statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } },
    ]);
    expect(JSON.stringify(messages)).not.toContain('sequence');
  });

  it('has the sequence in each event for callers of the extension, and goes on after it', async () => {
    serve(async function* ({ lastEventId = 0 }) {
      yield [statusItem(lastEventId + 1, TaskState.TASK_STATE_COMPLETED)];
    });
    const resumed = grpc.stream(
      'SubscribeToTask',
      { id: 't' },
      to('echo', { 'last-event-id': '7', 'a2a-extensions': RESUME_EXTENSION.uri }),
    );
    await resumed.end;
    expect(resumed.headers!.get('a2a-extensions')).toEqual([RESUME_EXTENSION.uri]);
    expect(resumed.messages).toMatchObject([
      { statusUpdate: { metadata: { [`${RESUME_EXTENSION.uri}/sequence`]: 8 } } },
    ]);
    const refused = grpc.stream('SubscribeToTask', { id: 't' }, to('echo', { 'last-event-id': 'x' }));
    expect(await refused.end).toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  it('that fails ends with the error', async () => {
    serve(async function* () {
      throw ProtocolError.taskNotFound('t');
    });
    expect((await grpc.stream('SendStreamingMessage', { message }, ECHO).end).status).toBe('NOT_FOUND');
    serve(async function* () {
      yield [taskItem()];
      throw new Error('secret');
    });
    const late = grpc.stream('SendStreamingMessage', { message }, ECHO);
    expect(await late.end).toMatchObject({ status: 'INTERNAL', message: 'Internal error' });
    expect(late.messages).toHaveLength(1);
  });

  /** A stream of one event, and then silence. Resolves when its caller is gone. */
  function serveSilence(): Promise<void> {
    return new Promise((resolve) => {
      serve(async function* (_context, _asked, signal) {
        yield [taskItem()];
        await new Promise<void>((over) => signal.addEventListener('abort', () => over()));
        resolve();
      });
    });
  }

  it('ends when its caller cancels, or the deadline is over', async () => {
    const canceled = serveSilence();
    const { call } = grpc.stream('SendStreamingMessage', { message }, ECHO);
    call.once('data', () => call.cancel());
    await canceled;
    const late = serveSilence();
    const { end } = grpc.stream('SendStreamingMessage', { message }, { ...ECHO, deadline: Date.now() + 300 });
    expect((await end).status).toBe('DEADLINE_EXCEEDED');
    await late;
  });

  it('ends when the token of its caller is revoked', async () => {
    void serveSilence();
    const { call, end } = grpc.stream('SendStreamingMessage', { message }, ECHO);
    call.once('data', () => {
      api.refused.set('caller', 'revoked');
      api.control({ type: 'token-revoked' } as never);
    });
    expect(await end).toMatchObject({ status: 'UNAUTHENTICATED', message: 'the token was revoked' });
    api.refused.clear();
  });

  it('does not read ahead of a reader that stops', async () => {
    let yielded = 0;
    let over = false;
    const large = 'x'.repeat(100_000);
    serve(async function* (_context, _asked, signal) {
      for (let sequence = 1; sequence <= 1000 && !signal.aborted; sequence += 1) {
        yielded = sequence;
        const item = statusItem(sequence, TaskState.TASK_STATE_WORKING);
        const { value } = item.payload as unknown as { value: { metadata: object } };
        value.metadata = { large };
        yield [item];
      }
      over = true;
    });
    const slow = new GrpcCaller(api.grpcAddress);
    const { call } = slow.stream('SendStreamingMessage', { message }, ECHO);
    call.pause();
    let before = -1;
    while (before !== yielded || yielded === 0) {
      before = yielded;
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    // The windows of HTTP/2 and SSE_BUFFER_BYTES take a few of the thousand.
    expect(over).toBe(false);
    expect(yielded).toBeLessThan(100);
    call.cancel();
    slow.close();
  });
});

describe('A2A 0.3 over gRPC', () => {
  const options = { service: V0_3_SERVICE, ...ECHO };

  it('reads its own messages, and names of resources', async () => {
    const legacy = { messageId: 'm-1', role: 'ROLE_USER', content: [{ text: 'hi' }] };
    const sent = await grpc.ask('SendMessage', { message: legacy }, options);
    expect(sent.json).toMatchObject({ task: { id: 'task-1' } });
    expect(calls.at(-1)!.context.version).toBe('0.3');
    expect((lastRequest() as Requests['sendMessage']).message!.parts[0]!.content).toEqual({
      $case: 'text',
      value: 'hi',
    });
    await grpc.ask('GetTask', { name: 'tasks/task-1' }, options);
    expect(lastRequest()).toEqual({ tenant: '', id: 'task-1', historyLength: undefined });
    const canceled = await grpc.ask('CancelTask', { name: 'tasks/task-1' }, options);
    expect(canceled.json.status.state).toBe('TASK_STATE_CANCELLED');
    const bad = await grpc.ask('GetTask', { name: 'task-1' }, options);
    expect(bad.end).toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining('tasks/{id}'),
    });
  });

  it('keeps the names of files and the metadata of parts', async () => {
    const file = { fileWithUri: 'https://example.com/a.pdf', mimeType: 'application/pdf', name: 'a.pdf' };
    const content = [{ file, metadata: { page: 3 } }];
    await grpc.ask('SendMessage', { message: { messageId: 'm-2', role: 'ROLE_USER', content } }, options);
    expect((lastRequest() as Requests['sendMessage']).message!.parts).toEqual([
      {
        content: { $case: 'url', value: file.fileWithUri },
        filename: 'a.pdf',
        mediaType: 'application/pdf',
        metadata: { page: 3 },
      },
    ]);
  });
});

describe('every RPC', () => {
  it('is for callers with a token', async () => {
    for (const { service, rpc, codec, method } of GRPC_METHODS) {
      const nobody = { service, metadata: { authorization: '' } };
      const { end } = codec.isStreaming(method)
        ? { end: await grpc.stream(rpc, {}, nobody).end }
        : await grpc.ask(rpc, {}, nobody);
      expect([service, rpc, end.status]).toEqual([service, rpc, 'UNAUTHENTICATED']);
    }
  });

  it('stands for a method of its version, and all methods have one', () => {
    for (const service of new Set(GRPC_METHODS.map((each) => each.service))) {
      const rpcs = GRPC_METHODS.filter((each) => each.service === service);
      const [{ codec } = rpcs[0]!] = rpcs;
      expect(new Set(rpcs.map(({ method }) => method))).toEqual(new Set(codec.methods));
    }
  });
});

describe('an extended card', () => {
  /** The addresses in the card that a caller gets who has named this host. */
  const addresses = async (at: FakeApi, host: string, service?: string): Promise<string[]> => {
    const caller = new GrpcCaller(at.grpcAddress, { 'grpc.default_authority': host });
    const rpc = service === V0_3_SERVICE ? 'GetAgentCard' : 'GetExtendedAgentCard';
    const { json, end } = await caller.ask(rpc, {}, { ...ECHO, ...(service !== undefined && { service }) });
    caller.close();
    expect(end.status).toBe('OK');
    const found = service === V0_3_SERVICE ? [json] : (json.supportedInterfaces as object[]);
    return [...new Set(found.map((each) => (each as { url: string }).url))].map((each) =>
      each.replace(/\/agents\/echo.*/, ''),
    );
  };
  const useCards = (at: FakeApi): void => {
    at.operations.getExtendedAgentCard = async ({ buildCard, agent }) => buildCard!(agent);
  };
  const portsOf = (at: FakeApi) => [new URL(at.url).port, at.grpcAddress.split(':').at(-1)!] as const;

  it.each(['agents.internal', '127.0.0.1', '[::1]', 'localhost'])(
    'names the host that the caller has called: %s',
    async (name) => {
      useCards(api);
      const [http, port] = portsOf(api);
      expect(await addresses(api, `${name}:${port}`)).toEqual([`http://${name}:${http}`, `${name}:${port}`]);
      expect(await addresses(api, `${name}:${port}`, V0_3_SERVICE)).toEqual([`http://${name}:${http}`]);
    },
  );

  it('names no host with a user before it: the default, or from Node 22 on there is no answer', async () => {
    useCards(api);
    const caller = new GrpcCaller(api.grpcAddress, { 'grpc.default_authority': 'user@evil.example' });
    const { json, end } = await caller.ask('GetExtendedAgentCard', {}, ECHO);
    caller.close();
    if (end.status === 'OK') expect(JSON.stringify(json)).toContain(api.url);
    else expect(end.status).toBe('INTERNAL');
    expect(JSON.stringify(json)).not.toContain('evil');
  });

  it.each(['evil.example:80:80', '999.999.999.999', 'x'.repeat(64)])(
    'names the default for %j, which is none',
    async (host) => {
      useCards(api);
      expect((await addresses(api, host))[0]).toBe(api.url);
    },
  );

  it('names PUBLIC_URL wherever there is one, and with a signing key no host that a caller makes up', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const CARD_SIGNING_KEY = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
    const signing = await startFakeApi({ ...GRPC, CARD_SIGNING_KEY });
    const named = await startFakeApi({ ...GRPC, PUBLIC_URL: 'https://agents.example' });
    try {
      useCards(signing);
      useCards(named);
      const [http, port] = portsOf(signing);
      expect((await addresses(signing, `127.0.0.1:${port}`))[0]).toBe(`http://127.0.0.1:${http}`);
      for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1:1', `127.0.0.1:${http}`])
        expect((await addresses(signing, host))[0]).toBe(signing.url);
      expect((await addresses(named, `evil.example:${portsOf(named)[1]}`))[0]).toBe('https://agents.example');
    } finally {
      await Promise.all([signing.close(), named.close()]);
    }
  });
});
