import fc from 'fast-check';
import { decodeEnvelope, encodeEnvelope } from '../json-rpc.js';
import { ProtocolError } from '../protocol-error.js';
import { type Message, type Part, Role, type Task, TaskState } from '../model.js';
import type { StreamItem } from '../operation.js';
import { SPEC_PROFILE } from '../profiles/spec.js';
import {
  artifactEvent,
  sampleArtifact,
  sampleMessage,
  sampleTask,
  statusEvent,
} from '../../../../test/support/a2a/samples.js';
import { connectSdkClient } from '../../../../test/support/a2a/sdk-client.js';

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

const taskOf = (message: Message): Task => sampleTask({ history: [message] });

const streamOf = (task: Task): StreamItem[] => {
  const { parts } = task.history[0] as Message;
  const reply = sampleMessage({ role: Role.ROLE_AGENT, parts });
  return [
    { sequence: 1, payload: { $case: 'task', value: task } },
    {
      sequence: 2,
      payload: artifactEvent(sampleArtifact({ name: 'n', parts, metadata: { b: 1 } }), true, true),
    },
    { sequence: 3, payload: statusEvent(TaskState.TASK_STATE_INPUT_REQUIRED, reply) },
  ];
};

const bare = { filename: '', mediaType: '' };
/** What JSON can carry (it has no -0), without the keys an envelope refuses. */
const dataValue = fc
  .json()
  .filter((json) => !/__proto__|constructor/.test(json))
  .map((json) => JSON.parse(JSON.stringify(JSON.parse(json))) as unknown);
const metadata = fc.option(fc.constantFrom({ a: 1 }, { b: { c: [null, 'x'] } }), { nil: undefined });
/** Every character, U+0000 included. */
const anyText = fc.string({ unit: 'binary' });
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
/** The 1.0 client of the SDK reads data that is null as a part without content (a2a-js#642). */
const readBySdk = (version: string, read: Part): Part =>
  version === '1.0' && read.content?.$case === 'data' && read.content.value === null
    ? { ...read, content: undefined }
    : read;
const messageOf = (parts: Part[]): Message => sampleMessage({ parts, taskId: '' });
const requestOf = (message: Message) => ({
  tenant: '',
  message,
  configuration: undefined,
  metadata: undefined,
});

describe.each(['1.0', '0.3'] as const)('an SDK client of version %s', (version) => {
  it('gets back exactly the parts it sent, whatever is in them', async () => {
    const client = await connectSdkClient(version, answer);
    await fc.assert(
      fc.asyncProperty(fc.array(part, { minLength: 1, maxLength: 4 }), async (parts) => {
        const task = (await client.sendMessage(requestOf(messageOf(parts)))) as Task;
        expect(task.history[0]?.parts).toEqual(parts.map((sent) => readBySdk(version, { ...bare, ...sent })));
      }),
      { numRuns: 200 },
    );
  });

  it('reads every frame of a stream', async () => {
    const client = await connectSdkClient(version, answer);
    const message = messageOf([
      { content: { $case: 'text', value: 'NUL \0, \u2028 and \u{1f600}' }, metadata: undefined, ...bare },
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
