import { LegacyJsonRpcTransport } from '@a2a-js/sdk/compat/v0_3/client';
import { JsonRpcTransportFactory, type Transport } from '@a2a-js/sdk/client';
import fc from 'fast-check';
import { decodeEnvelope, encodeEnvelope } from '../envelope.js';
import { ProtocolError } from '../errors.js';
import { type Message, type Part, Role, type Task, TaskState } from '../model.js';
import type { StreamItem } from '../operation.js';
import { SPEC_PROFILE } from '../profiles/spec/index.js';

const URL = 'http://localhost/agents/echo';

/** What a server with our codecs answers to one request: a task whose history is the message it was sent. */
function answer(body: string): Response {
  const { id, method, params } = decodeEnvelope(body);
  const codec = SPEC_PROFILE.codecFor(method);
  if (!codec) throw new Error(method);
  const call = codec.decode(method, params);
  if (call.operation === 'sendMessage') {
    const value = taskOf(call.request.message as Message);
    return Response.json(encodeEnvelope(id, codec.encodeResult('sendMessage', { $case: 'task', value })));
  }
  if (call.operation !== 'sendStreamingMessage') throw new Error(call.operation);
  const frames = streamOf(taskOf(call.request.message as Message)).map(
    (item) => `id: ${item.sequence}\ndata: ${JSON.stringify(encodeEnvelope(id, codec.encodeItem(item)))}\n\n`,
  );
  return new Response(frames.join(''), { headers: { 'content-type': 'text/event-stream' } });
}

const fetchImpl = (_url: unknown, init?: RequestInit): Promise<Response> =>
  Promise.resolve(answer(String(init?.body)));

const clients: [string, () => Promise<Transport>][] = [
  ['1.0', () => new JsonRpcTransportFactory({ fetchImpl }).create(URL, {} as never)],
  ['0.3', () => Promise.resolve(new LegacyJsonRpcTransport({ endpoint: URL, fetchImpl }) as Transport)],
];

const taskOf = (message: Message): Task => ({
  id: 'task-1',
  contextId: 'context-1',
  status: {
    state: TaskState.TASK_STATE_SUBMITTED,
    message: undefined,
    timestamp: '2026-01-31T12:00:00.000Z',
  },
  artifacts: [],
  history: [message],
  metadata: undefined,
});

const streamOf = (task: Task): StreamItem[] => [
  { sequence: 1, payload: { $case: 'task', value: task } },
  {
    sequence: 2,
    payload: {
      $case: 'artifactUpdate',
      value: {
        taskId: task.id,
        contextId: task.contextId,
        artifact: {
          artifactId: 'a',
          name: 'n',
          description: '',
          parts: task.history[0]?.parts ?? [],
          metadata: undefined,
          extensions: [],
        },
        append: true,
        lastChunk: true,
        metadata: { chunk: 1 },
      },
    },
  },
  {
    sequence: 3,
    payload: {
      $case: 'statusUpdate',
      value: {
        taskId: task.id,
        contextId: task.contextId,
        status: {
          state: TaskState.TASK_STATE_INPUT_REQUIRED,
          message: { ...(task.history[0] as Message), role: Role.ROLE_AGENT },
          timestamp: '2026-01-31T12:00:01.000Z',
        },
        metadata: undefined,
      },
    },
  },
];

const bare = { filename: '', mediaType: '' };
/** What JSON can carry (it has no -0), without the keys an envelope refuses. */
const dataValue = fc
  .json()
  .filter((json) => json !== 'null' && !/__proto__|constructor/.test(json))
  .map((json) => JSON.parse(JSON.stringify(JSON.parse(json))) as unknown);
const metadata = fc.option(fc.constantFrom({ a: 1 }, { b: { c: [null, 'x'] } }), { nil: undefined });
const anyText = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
});
const part: fc.Arbitrary<Part> = fc.oneof(
  fc.record({
    content: fc.record({ $case: fc.constant('text' as const), value: anyText }),
    metadata,
    filename: fc.constant(''),
    mediaType: fc.constant(''),
  }),
  fc.record({
    content: fc.record({ $case: fc.constant('data' as const), value: dataValue }),
    metadata,
    filename: fc.constant(''),
    mediaType: fc.constant(''),
  }),
  fc.record({
    content: fc.record({
      $case: fc.constant('raw' as const),
      value: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    }),
    metadata,
    filename: fc.string(),
    mediaType: fc.string(),
  }),
  fc.record({
    content: fc.record({ $case: fc.constant('url' as const), value: fc.webUrl() }),
    metadata,
    filename: fc.string(),
    mediaType: fc.string(),
  }),
);
const messageOf = (parts: Part[]): Message => ({
  messageId: 'm-1',
  contextId: 'c-1',
  taskId: '',
  role: Role.ROLE_USER,
  parts,
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});
const requestOf = (message: Message) => ({
  tenant: '',
  message,
  configuration: undefined,
  metadata: undefined,
});

describe.each(clients)('an SDK client of version %s', (_version, connect) => {
  it('gets back exactly the parts it sent, whatever is in them', async () => {
    const client = await connect();
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 4 }), async (parts) => {
        const task = (await client.sendMessage(requestOf(messageOf(parts)))) as Task;
        expect(task.history[0]?.parts).toEqual(parts.map((sent) => ({ ...bare, ...sent })));
      }),
      { numRuns: 200 },
    );
  });

  it('reads every frame of a stream', async () => {
    const client = await connect();
    const message = messageOf([
      { content: { $case: 'text', value: 'NUL \0 and half a pair \ud83d' }, metadata: undefined, ...bare },
    ]);
    const received: unknown[] = [];
    for await (const { payload } of client.sendMessageStream(requestOf(message))) received.push(payload);
    expect(received).toEqual(streamOf(taskOf(message)).map(({ payload }) => payload));
  });
});

describe('any request at all', () => {
  const method = fc.constantFrom(
    'SendMessage',
    'ListTasks',
    'GetTask',
    'message/send',
    'tasks/get',
    'tasks/pushNotificationConfig/set',
  );
  const hostile = fc.oneof(
    fc.jsonValue(),
    fc.constant({ toString: 1, valueOf: 1 }),
    fc.constant({ length: 3 }),
  );
  const almost = fc.record(
    {
      message: fc.oneof(
        hostile,
        fc.record({
          messageId: fc.oneof(fc.string(), hostile),
          role: fc.oneof(fc.constant('user'), fc.constant('ROLE_USER'), hostile),
          parts: fc.oneof(
            fc.array(
              fc.oneof(
                hostile,
                fc.dictionary(
                  fc.constantFrom('text', 'raw', 'url', 'data', 'file', 'kind', 'type', 'metadata'),
                  hostile,
                ),
              ),
            ),
            hostile,
          ),
        }),
      ),
      configuration: hostile,
      id: hostile,
      status: hostile,
      pageToken: hostile,
      taskId: hostile,
    },
    { requiredKeys: [] },
  );

  it('is decoded or refused as invalid params, never anything else', () => {
    fc.assert(
      fc.property(method, fc.oneof(hostile, almost), (name, params) => {
        try {
          SPEC_PROFILE.codecFor(name)?.decode(name, params);
        } catch (error) {
          expect(error).toBeInstanceOf(ProtocolError);
          expect((error as ProtocolError).kind).toBe('invalid-params');
        }
      }),
      { numRuns: 2000 },
    );
  });
});
