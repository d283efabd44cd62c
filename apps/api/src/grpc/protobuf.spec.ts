import { GRPC_METHODS, Part, ProtocolError, Task, V1_0_CODEC } from '@baton/a2a';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import fc from 'fast-check';
import { sampleTask } from '../../../../test/support/api/samples.js';
import { decodeMessage, encodeMessage, messageTypeOf } from './protobuf.js';

const SEND = messageTypeOf('lf.a2a.v1.SendMessageRequest');
const TASK = messageTypeOf('lf.a2a.v1.Task');

const SEND_0_3 = messageTypeOf('a2a.v1.SendMessageRequest');
const TASK_0_3 = messageTypeOf('a2a.v1.Task');
const SEND_RPC_0_3 = GRPC_METHODS.find(
  ({ service, rpc }) => service === 'a2a.v1.A2AService' && rpc === 'SendMessage',
)!;

const text = fc.string({ unit: 'binary' });
/** Any google.protobuf.Value. JSON has no -0, and what reaches a prototype is refused. */
const value = fc
  .jsonValue({ stringUnit: 'binary', maxDepth: 3 })
  .map((any) => JSON.parse(JSON.stringify(any)) as unknown)
  .filter((any) => !/__proto__|constructor/.test(JSON.stringify(any)));
const part = fc.oneof(
  fc.record({ text }),
  fc.record({ data: value }),
  fc.record({ raw: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64')) }),
  fc.record({
    url: fc.webUrl(),
    metadata: fc.dictionary(fc.constantFrom('a', 'b\u0000', '\u{1f600}'), value),
  }),
);
/** Data of 0.3 are an object. */
const partOf03 = fc.oneof(
  fc.record({ text }),
  fc.record({
    data: fc.record({ data: fc.dictionary(fc.constantFrom('a', 'b\u0000', '\u{1f600}'), value) }),
  }),
  fc.record({
    file: fc.record({
      fileWithBytes: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64')),
      mimeType: fc.constantFrom('text/plain', 'image/png'),
      name: fc.constantFrom('a.txt', '\u{1f600}'),
    }),
  }),
  fc.record({ file: fc.record({ fileWithUri: fc.webUrl() }) }),
);

describe('messages in protocol buffers', () => {
  it('carry every value that the specification allows, both ways', () => {
    fc.assert(
      fc.property(fc.array(part, { minLength: 1 }), (parts) => {
        const message = { messageId: 'm', role: 'ROLE_USER', parts };
        const read = decodeMessage(SEND, encodeMessage(SEND, { message }));
        expect(read).toEqual({ message });
        const { request } = V1_0_CODEC.decode('SendMessage', read);
        const sent = (request as { message: { parts: Part[] } }).message.parts;
        expect(sent).toEqual(parts.map((each) => Part.fromJSON(each)));
        const task = Task.toJSON(sampleTask({ artifacts: [{ ...ARTIFACT, parts: sent }] }));
        expect(decodeMessage(TASK, encodeMessage(TASK, task))).toMatchObject({ artifacts: [{ parts }] });
      }),
      { numRuns: 200 },
    );
  });

  it('of 0.3 carry every value that its specification allows, both ways', () => {
    fc.assert(
      fc.property(fc.array(partOf03, { minLength: 1 }), (content) => {
        const message = { messageId: 'm', role: 'ROLE_USER', content };
        const read = decodeMessage(SEND_0_3, encodeMessage(SEND_0_3, { message }));
        expect(read).toEqual({ message });
        const { codec, method, params } = SEND_RPC_0_3;
        const { request } = codec.decode(method, params(read));
        const sent = (request as { message: { parts: Part[] } }).message.parts;
        expect(sent).toHaveLength(content.length);
        const result = {
          $case: 'task' as const,
          value: sampleTask({ artifacts: [{ ...ARTIFACT, parts: sent }] }),
        };
        const { task } = codec.encodeResult('sendMessage', result) as { task: unknown };
        expect(decodeMessage(TASK_0_3, encodeMessage(TASK_0_3, task))).toMatchObject({
          artifacts: [{ parts: content }],
        });
      }),
      { numRuns: 200 },
    );
  });

  it('have U+FFFD in place of half a character, whatever was stored', () => {
    const part = { text: 'half \ud83d', metadata: { '\ude00': ['\ud83d'] } };
    const task = { id: 't', history: [{ messageId: 'm\ud83d', parts: [part] }], metadata: { deep: [part] } };
    const mended = { text: 'half \ufffd', metadata: { '\ufffd': ['\ufffd'] } };
    expect(decodeMessage(TASK, encodeMessage(TASK, task))).toEqual({
      id: 't',
      history: [{ messageId: 'm\ufffd', parts: [mended] }],
      metadata: { deep: [mended] },
    });
  });

  it.each<[string, Uint8Array, string]>([
    ['a text', field(2, messageBytes([0xed, 0xa0, 0xbd])), 'message.parts[1].text'],
    ['an id', field(2, field(1, [0xff])), 'message.messageId'],
    ['a key of metadata', field(4, field(1, field(1, [0xc0, 0x80]))), 'metadata'],
    [
      'a text in metadata',
      field(4, field(1, [...field(1, [0x61]), ...field(2, field(3, [0xff]))])),
      'metadata.a',
    ],
    [
      'a number in metadata',
      field(4, field(1, [...field(1, [0x61]), ...field(2, double(NaN))])),
      'metadata.a',
    ],
    [
      'a number in a list in metadata',
      field(
        4,
        field(1, [
          ...field(1, [0x61]),
          ...field(2, field(6, [...field(1, double(1)), ...field(1, double(Infinity))])),
        ]),
      ),
      'metadata.a[1]',
    ],
  ])('with %s that JSON cannot carry are refused by its field', (_what, bytes, name) => {
    const refused = (): unknown => decodeMessage(SEND, bytes);
    expect(refused).toThrow(ProtocolError);
    expect(refused).toThrow(new RegExp(`^${name.replace(/[[\].]/g, '\\$&')}: (must be|has)`));
  });
});

const ARTIFACT = { artifactId: 'a', name: '', description: '', metadata: undefined, extensions: [] };

/** A field of bytes: a text, or a message. */
function field(number: number, bytes: Iterable<number>): Uint8Array {
  return new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(Uint8Array.from(bytes)).finish();
}

/** A Value that is a number. */
function double(number: number): Uint8Array {
  return new BinaryWriter().tag(2, WireType.Bit64).double(number).finish();
}

/** A message with a part "ok", and one more. */
function messageBytes(text: number[]): Uint8Array {
  return Uint8Array.from([...field(5, field(1, [0x6f, 0x6b])), ...field(5, field(1, text))]);
}
