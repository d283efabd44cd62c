import {
  type CallContext,
  HTTP_ROUTES,
  httpPathOf,
  ProtocolError,
  type Requests,
  type StreamItem,
  TaskState,
} from '@baton/a2a';
import {
  type FakeApi,
  recordCalls,
  type RecordedCall,
  startFakeApi,
} from '../../../../test/support/api/fake-api.js';
import { request, statusItem, taskItem } from '../../../../test/support/api/samples.js';

let api: FakeApi;
/** What operations were called with. */
let calls: RecordedCall[];

beforeAll(async () => {
  api = await startFakeApi();
});
afterAll(() => api.close());
beforeEach(() => {
  calls = recordCalls(api);
});

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire
interface Ask {
  body?: unknown;
  headers?: Record<string, string>;
}

/** Asks below an agent, with a token that may call. */
async function ask(verb: string, path: string, { body, headers }: Ask = {}) {
  const response = await fetch(`${api.url}/agents/echo/${path}`, {
    method: verb,
    headers: {
      authorization: 'Bearer caller',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, headers: response.headers, json: (text ? JSON.parse(text) : {}) as Json };
}
const { message } = request.send.params;
const lastRequest = (): unknown => calls.at(-1)!.request;
const lastSend = () => lastRequest() as Requests['sendMessage'];

describe('A2A 1.0 over HTTP+JSON', () => {
  it('sends a message and answers as JSON-RPC does, without the envelope', async () => {
    const sent = await ask('POST', 'message:send', {
      body: { message, configuration: { historyLength: 2 } },
    });
    expect(sent.status).toBe(200);
    const overRpc = (await (await api.rpc(request.send)).json()) as Json;
    expect(sent.json).toEqual(overRpc.result);
    const [first, second] = calls;
    expect(first!.context).toEqual({
      ...second!.context,
      requestId: expect.any(String) as string,
      memory: expect.anything() as object,
      onStored: expect.any(Function) as () => void,
    });
    expect(first!.context).toMatchObject({ profile: 'spec', version: '1.0', agent: { slug: 'echo' } });
  });

  it('gets, lists and cancels a task', async () => {
    expect((await ask('GET', 'tasks/task-1?historyLength=3')).json).toMatchObject({ id: 'task-1' });
    expect(lastRequest()).toEqual({ tenant: '', id: 'task-1', historyLength: 3 });
    expect((await ask('GET', 'tasks')).json).toMatchObject({ tasks: [{ id: 'task-1' }], nextPageToken: 'n' });
    expect((await ask('POST', 'tasks/task-1:cancel')).json.status.state).toBe('TASK_STATE_CANCELED');
    expect(lastRequest()).toEqual({ tenant: '', id: 'task-1', metadata: undefined });
    await ask('POST', 'tasks/a%3Ab:cancel', { body: { id: 'other', metadata: { why: 'late' } } });
    expect(lastRequest()).toEqual({ tenant: '', id: 'a:b', metadata: { why: 'late' } });
  });

  it.each([
    'contextId=c&status=TASK_STATE_WORKING&pageSize=7&historyLength=0&includeArtifacts=true',
    'context_id=c&status=2&page_size=07&history_length=0&include_artifacts=true&pageToken=&other=1&other=2',
  ])('reads query parameters by their JSON names and their proto names: %s', async (query) => {
    expect((await ask('GET', `tasks?${query}`)).status).toBe(200);
    expect(lastRequest()).toEqual({
      tenant: '',
      contextId: 'c',
      status: TaskState.TASK_STATE_WORKING,
      pageSize: 7,
      pageToken: '',
      historyLength: 0,
      statusTimestampAfter: undefined,
      includeArtifacts: true,
    });
  });

  it.each([
    ['pageSize=many', 'pageSize'],
    ['page_size=0', 'pageSize'],
    ['historyLength=-1', 'historyLength'],
    ['historyLength=1.5', 'historyLength'],
    ['includeArtifacts=yes', 'includeArtifacts'],
    ['status=working', 'status'],
    ['status=99', 'status'],
    ['contextId=a&contextId=b', 'contextId'],
    ['pageToken=%00', 'pageToken'],
    ['statusTimestampAfter=yesterday', 'statusTimestampAfter'],
  ])('refuses the query %s and names the parameter', async (query, field) => {
    const { status, json } = await ask('GET', `tasks?${query}`);
    expect(status).toBe(400);
    expect(json.error).toMatchObject({
      code: 400,
      status: 'INVALID_ARGUMENT',
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'INVALID_PARAMS',
          domain: 'a2a-protocol.org',
        },
        {
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          fieldViolations: [{ field, description: expect.any(String) as string }],
        },
      ],
    });
    expect(calls).toEqual([]);
  });

  it('passes headers on as JSON-RPC does, and takes no task id from the body', async () => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    await ask('POST', 'message:send', {
      body: { message },
      headers: { 'idempotency-key': 'k-1', traceparent },
    });
    expect(calls[0]!.context).toMatchObject({ idempotencyKey: 'k-1', traceparent });
    const bad = await ask('POST', 'message:send', { body: { message }, headers: { 'idempotency-key': '' } });
    expect([bad.status, bad.json.error.details[0].reason]).toEqual([400, 'INVALID_PARAMS']);
  });

  it.each([
    [{}, 'application/a2a+json'],
    [{ accept: '*/*' }, 'application/a2a+json'],
    [{ accept: 'application/a2a+json, application/json' }, 'application/a2a+json'],
    [{ accept: 'application/json, text/plain, */*' }, 'application/json'],
    [{ 'content-type': 'application/json' }, 'application/json'],
    [{ 'content-type': 'application/a2a+json; charset=utf-8' }, 'application/a2a+json'],
    [{ 'content-type': 'application/json', accept: 'application/a2a+json' }, 'application/a2a+json'],
  ])('answers %j in %s, errors too', async (headers, type) => {
    const found = await ask('GET', 'tasks/task-1', { headers });
    expect([found.status, found.headers.get('content-type')]).toEqual([200, `${type}; charset=utf-8`]);
    const refused = await ask('GET', 'tasks?pageSize=x', { headers });
    expect([refused.status, refused.headers.get('content-type')]).toEqual([400, `${type}; charset=utf-8`]);
  });

  it.each([
    [ProtocolError.taskNotFound('t'), 404, 'NOT_FOUND', 'TASK_NOT_FOUND'],
    [new ProtocolError('task-not-cancelable', 'x'), 400, 'FAILED_PRECONDITION', 'TASK_NOT_CANCELABLE'],
    [
      new ProtocolError('push-not-supported', 'x'),
      400,
      'FAILED_PRECONDITION',
      'PUSH_NOTIFICATION_NOT_SUPPORTED',
    ],
    [new ProtocolError('unsupported-operation', 'x'), 400, 'FAILED_PRECONDITION', 'UNSUPPORTED_OPERATION'],
    [
      new ProtocolError('content-type-not-supported', 'x'),
      400,
      'INVALID_ARGUMENT',
      'CONTENT_TYPE_NOT_SUPPORTED',
    ],
    [new ProtocolError('agent-threw', 'x'), 500, 'INTERNAL', 'INVALID_AGENT_RESPONSE'],
    [new ProtocolError('limit-exceeded', 'x'), 429, 'RESOURCE_EXHAUSTED', 'LIMIT_EXCEEDED'],
    [new ProtocolError('unavailable', 'x', { retryAfterSeconds: 2 }), 503, 'UNAVAILABLE', 'UNAVAILABLE'],
    [new Error('secret'), 500, 'INTERNAL', 'INTERNAL_ERROR'],
  ])('answers %s with status %i', async (error, http, status, reason) => {
    api.operations.getTask = async () => {
      throw error;
    };
    const answer = await ask('GET', 'tasks/t');
    expect(answer.status).toBe(http);
    expect(answer.json.error).toMatchObject({
      code: http,
      status,
      details: expect.arrayContaining([expect.objectContaining({ reason })]) as unknown,
    });
    expect(JSON.stringify(answer.json)).not.toContain('secret');
    if (http === 503) expect(answer.headers.get('retry-after')).toBe('2');
  });

  it('writes the same fields to the log as JSON-RPC', async () => {
    await ask('GET', 'tasks?pageSize=x', { headers: { 'x-request-id': 'log-1' } });
    const line = () => api.log.find(({ requestId, msg }) => requestId === 'log-1' && msg === 'request');
    while (!line()) await new Promise((resolve) => setImmediate(resolve));
    expect(line()).toMatchObject({
      tenantId: 'tenant-1',
      agent: 'echo',
      rpcMethod: 'ListTasks',
      rpcError: -32602,
      status: 400,
    });
  });

  it('refuses an invalid request before the operation is called', async () => {
    const refusals: [number, string, Ask][] = [
      [400, 'PARSE_ERROR', { body: '', headers: { 'content-type': 'application/json' } }],
      [400, 'PARSE_ERROR', { body: '{' }],
      [400, 'INVALID_PARAMS', { body: [] }],
      [400, 'INVALID_PARAMS', { body: 'null' }],
      [400, 'INVALID_REQUEST', { body: '['.repeat(300) }],
      [415, 'UNSUPPORTED_MEDIA_TYPE', { body: '{}', headers: { 'content-type': 'text/plain' } }],
      [400, 'VERSION_NOT_SUPPORTED', { body: { message }, headers: { 'a2a-version': '2.0' } }],
      [401, 'UNAUTHENTICATED', { body: { message }, headers: { authorization: 'Bearer wrong' } }],
      [403, 'PERMISSION_DENIED', { body: { message }, headers: { authorization: 'Bearer reader' } }],
    ];
    for (const [status, reason, options] of refusals) {
      const answer = await ask('POST', 'message:send', options);
      expect([answer.status, answer.json.error.details[0].reason]).toEqual([status, reason]);
      expect(answer.json.error.code).toBe(status);
    }
    expect(calls).toEqual([]);
    const version = await ask('GET', 'tasks/t?A2A-Version=3');
    expect(version.json.error.details[0].metadata).toEqual({
      requestedVersion: '3',
      supportedVersions: '0.3, 1.0',
    });
  });

  it('answers another verb with 405, and an unknown agent or path with 404', async () => {
    const verb = await ask('PUT', 'tasks/task-1:cancel');
    expect([verb.status, verb.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    expect((await ask('POST', 'message:other')).status).toBe(404);
    expect((await ask('POST', 'tasks/task-1:other')).status).toBe(405);
    const unknown = await ask('POST', '../nobody/message:send', { body: { message } });
    expect([unknown.status, unknown.json.error.details[0].reason]).toEqual([404, 'AGENT_NOT_FOUND']);
    const path = await fetch(`${api.url}/agents/%ZZ/tasks`);
    expect([path.status, ((await path.json()) as Json).error.status]).toEqual([400, 'INVALID_ARGUMENT']);
  });

  it('names the caller’s tenant before the operation, and refuses every other name alike', async () => {
    expect((await ask('GET', 'tenant-1/tasks/task-1')).status).toBe(200);
    expect((await ask('POST', 'tenant-1/message:send', { body: { message } })).status).toBe(200);
    const refused = [];
    for (const name of ['tenant-2', 'tenant-x', 'TENANT-1', 'v1']) {
      refused.push((await ask('GET', `${name}/tasks`)).json.error);
    }
    for (const error of refused) {
      expect(error).toMatchObject({ code: 404, status: 'NOT_FOUND', details: [{ reason: 'NOT_FOUND' }] });
    }
    expect(calls).toHaveLength(2);
  });
});

const legacyMessage = {
  messageId: 'm-1',
  role: 'ROLE_USER',
  content: [
    { text: 'hi' },
    { file: { fileWithUri: 'https://x.example/a', mimeType: 'text/plain' } },
    { file: { file_with_bytes: 'aGk=' } },
    { data: { data: { a: 1 } } },
  ],
};

describe('A2A 0.3 over HTTP+JSON', () => {
  it('reads the JSON of its protocol buffers, and that of JSON-RPC', async () => {
    await ask('POST', 'v1/message:send', { body: { message: legacyMessage } });
    const parts = [
      { text: 'hi' },
      { url: 'https://x.example/a', mediaType: 'text/plain' },
      { raw: 'aGk=' },
      { data: { a: 1 } },
    ];
    await ask('POST', 'message:send', { body: { message: { ...message, parts } } });
    const [legacy, current] = calls.map((call) => call.request as Requests['sendMessage']);
    expect(legacy!.message).toEqual(current!.message);
    expect(calls[0]!.context.version).toBe('0.3');
    const kinds = {
      messageId: 'm-1',
      role: 'user',
      kind: 'message',
      parts: [{ kind: 'data', data: { data: {} } }],
    };
    expect((await ask('POST', 'v1/message:send', { body: { message: kinds } })).status).toBe(200);
    expect(lastSend().message!.parts[0]!.content).toEqual({
      $case: 'data',
      value: { data: {} },
    });
  });

  it('blocks without a configuration, and otherwise by the configuration', async () => {
    const waits = async (configuration?: object): Promise<boolean> => {
      await ask('POST', 'v1/message:send', { body: { message: legacyMessage, configuration } });
      return !lastSend().configuration?.returnImmediately;
    };
    expect(await waits()).toBe(true);
    expect(await waits({ blocking: true })).toBe(true);
    expect(await waits({})).toBe(false);
  });

  it('answers in its own form, and in application/json', async () => {
    const found = await ask('POST', 'v1/tasks/task-1:cancel');
    expect(found.json).toMatchObject({ id: 'task-1', status: { state: 'TASK_STATE_CANCELLED' } });
    expect(found.headers.get('content-type')).toBe('application/json; charset=utf-8');
  });

  it('writes an error as AIP-193, with that of JSON-RPC at the top for its clients', async () => {
    const { status, json } = await ask('POST', 'v1/message:send', { body: { message: { role: 'x' } } });
    expect(status).toBe(400);
    expect(json).toMatchObject({
      code: -32602,
      message: json.error.message as string,
      error: { code: 400, status: 'INVALID_ARGUMENT', details: [{ reason: 'INVALID_PARAMS' }, {}] },
    });
    const bad = await ask('POST', 'v1/message:send', {
      body: { message: { ...legacyMessage, content: [{ text: 1 }] } },
    });
    expect(bad.json.message).toContain('message.content[0].text');
  });
});

describe('a stream over HTTP+JSON', () => {
  const serve = (source: (context: CallContext) => AsyncGenerator<StreamItem[]>): void =>
    void Object.assign(api.operations, { sendStreamingMessage: source, subscribeToTask: source });
  const stream = (path: string, headers: Record<string, string> = {}, verb = 'POST') => {
    const type = { authorization: 'Bearer caller', 'content-type': 'application/json' };
    const body = path.endsWith('stream') ? JSON.stringify({ message }) : undefined;
    return fetch(`${api.url}/agents/echo/${path}`, { method: verb, headers: { ...type, ...headers }, body });
  };

  it('has a bare frame for each event, under its sequence', async () => {
    serve(async function* () {
      yield [taskItem()];
      yield [statusItem(2, TaskState.TASK_STATE_COMPLETED)];
    });
    const current = await stream('message:stream');
    expect(current.headers.get('content-type')).toBe('text/event-stream');
    const [first, second, rest] = (await current.text()).split('\n\n');
    expect(first).toMatch(/^id: 1\ndata: \{"task":\{"id":"task-1"/);
    expect(second).toMatch(/^id: 2\ndata: \{"statusUpdate":.*"TASK_STATE_COMPLETED"/);
    expect(rest).toBe('');
    const legacy = await (await stream('v1/message:stream')).text();
    expect(legacy).toMatch(
      /^id: 1\ndata: \{"task":\{"id":"task-1".*\n\nid: 2\ndata: \{"statusUpdate":.*"final":true/,
    );
  });

  it.each([
    ['tasks/t:subscribe', 'POST'],
    ['tasks/t:subscribe', 'GET'],
    ['v1/tasks/t:subscribe', 'GET'],
  ])('%s by %s goes on after Last-Event-ID', async (path, verb) => {
    serve(async function* ({ lastEventId = 0 }) {
      yield [statusItem(lastEventId + 1, TaskState.TASK_STATE_COMPLETED)];
    });
    expect(await (await stream(path, { 'last-event-id': '7' }, verb)).text()).toMatch(/^id: 8\ndata: /);
    const refused = await stream(path, { 'last-event-id': 'x' }, verb);
    expect(refused.status).toBe(400);
    expect(((await refused.json()) as Json).error.message).toContain('Last-Event-ID');
  });

  it('that fails before its first event is a plain error; one that fails later ends with an error event', async () => {
    serve(async function* () {
      throw ProtocolError.taskNotFound('t');
    });
    const refused = await stream('message:stream', { accept: 'text/event-stream' });
    expect([refused.status, ((await refused.json()) as Json).error.status]).toEqual([404, 'NOT_FOUND']);
    serve(async function* () {
      yield [taskItem()];
      throw new Error('secret');
    });
    const failed = await (await stream('message:stream')).text();
    expect(failed).toMatch(/\n\nevent: error\ndata: \{"error":\{"code":500,"status":"INTERNAL"/);
    expect(failed).not.toContain('secret');
    const legacy = await (await stream('v1/message:stream')).text();
    expect(legacy).toMatch(/\n\nevent: error\ndata: \{"code":-32603,/);
  });
});

describe('every route of HTTP+JSON', () => {
  it('is for callers with a token', async () => {
    for (const route of HTTP_ROUTES) {
      const url = api.url + httpPathOf(route, () => 'x');
      const response = await fetch(url, { method: route.verb });
      expect([url, response.status]).toEqual([url, 401]);
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
  });

  it('stands for an operation of its version', () => {
    for (const { codec, method } of HTTP_ROUTES)
      expect([method, codec.hasMethod(method)]).toEqual([method, true]);
    for (const version of ['1.0', '0.3']) {
      const routes = HTTP_ROUTES.filter(({ codec }) => codec.version === version);
      const [{ codec } = routes[0]!] = routes;
      expect(new Set(routes.map(({ method }) => method))).toEqual(new Set(codec.methods));
    }
  });
});
