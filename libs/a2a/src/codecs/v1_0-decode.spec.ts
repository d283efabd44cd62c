import { SendMessageRequest } from '@a2a-js/sdk';
import { type Part, Role } from '../model.js';
import { errorOf, refusalOf } from '../../../../test/support/a2a/profile.js';
import { V1_0_CODEC } from './v1_0.js';

const decode = (method: string, params: unknown) => V1_0_CODEC.decode(method, params).request as never;
const message = (members: object = {}) => ({
  messageId: 'm-1',
  role: 'ROLE_USER',
  parts: [{ text: 'hi' }],
  ...members,
});
const send = (members: object = {}, rest: object = {}): SendMessageRequest =>
  decode('SendMessage', { message: message(members), ...rest });
const refused = (members: object, rest: object = {}) => refusalOf(() => send(members, rest));
const partOf = (part: object): Part | undefined => send({ parts: [part] }).message?.parts[0];

describe('decoding a 1.0 send', () => {
  it('reads what the SDK client writes', () => {
    const request: SendMessageRequest = {
      tenant: 't',
      message: {
        messageId: 'm',
        contextId: 'c',
        taskId: 't-1',
        role: Role.ROLE_USER,
        parts: [
          {
            content: { $case: 'text', value: 'hé \u0000 \u{1f600}' },
            metadata: { a: 1 },
            filename: '',
            mediaType: '',
          },
          {
            content: { $case: 'raw', value: Buffer.from([0, 255, 7]) },
            metadata: undefined,
            filename: 'f.bin',
            mediaType: 'x/y',
          },
          {
            content: { $case: 'url', value: 'https://x/y' },
            metadata: undefined,
            filename: '',
            mediaType: '',
          },
          {
            content: { $case: 'data', value: [1, { b: null }] },
            metadata: undefined,
            filename: '',
            mediaType: '',
          },
        ],
        metadata: { k: [1] },
        extensions: ['urn:e'],
        referenceTaskIds: ['r-1'],
      },
      configuration: {
        acceptedOutputModes: ['text/plain'],
        taskPushNotificationConfig: undefined,
        historyLength: 3,
        returnImmediately: true,
      },
      metadata: { m: true },
    };
    expect(decode('SendMessage', JSON.parse(JSON.stringify(SendMessageRequest.toJSON(request))))).toEqual(
      request,
    );
    expect(V1_0_CODEC.decode('SendStreamingMessage', SendMessageRequest.toJSON(request))).toEqual({
      operation: 'sendStreamingMessage',
      request,
    });
  });

  it('reads snake_case and nulls', () => {
    const request: SendMessageRequest = decode('SendMessage', {
      message: {
        message_id: 'm',
        role: 1,
        parts: [{ text: 'x', media_type: 'text/plain', metadata: null }],
        context_id: 'c',
        task_id: null,
        reference_task_ids: ['r'],
      },
      configuration: { return_immediately: true, history_length: 0, accepted_output_modes: null },
    });
    expect(request.message).toMatchObject({
      messageId: 'm',
      contextId: 'c',
      taskId: '',
      referenceTaskIds: ['r'],
    });
    expect(request.message?.parts[0]).toMatchObject({ mediaType: 'text/plain', metadata: undefined });
    expect(request.configuration).toMatchObject({
      returnImmediately: true,
      historyLength: 0,
      acceptedOutputModes: [],
    });
  });

  it('blocks by default', () => {
    expect(send({}, { configuration: {} }).configuration?.returnImmediately).toBe(false);
    expect(send().configuration).toBeUndefined();
  });

  it.each([
    [
      { kind: 'text', text: 't' },
      { $case: 'text', value: 't' },
    ],
    [
      { type: 'text', text: '' },
      { $case: 'text', value: '' },
    ],
    [
      { kind: 'file', file: { bytes: 'AP8=', mimeType: 'a/b', name: 'n' } },
      { $case: 'raw', value: Buffer.from([0, 255]) },
    ],
    [
      { type: 'file', file: { uri: 'https://x', mime_type: 'a/b', name: 'n' } },
      { $case: 'url', value: 'https://x' },
    ],
    [
      { kind: 'data', data: { a: 1 } },
      { $case: 'data', value: { a: 1 } },
    ],
    [{ raw: 'AP8' }, { $case: 'raw', value: Buffer.from([0, 255]) }],
    [{ raw: '_-8=' }, { $case: 'raw', value: Buffer.from([255, 239]) }],
    [{ raw: '' }, { $case: 'raw', value: Buffer.from([]) }],
    [{ data: 0 }, { $case: 'data', value: 0 }],
    [{ data: null }, { $case: 'data', value: null }],
    [
      { kind: 'data', data: null },
      { $case: 'data', value: null },
    ],
    [
      { text: 't', data: null },
      { $case: 'text', value: 't' },
    ],
  ])('takes the part %j', (part, content) => {
    expect(partOf(part)?.content).toEqual(content);
    if ('file' in part) expect(partOf(part)).toMatchObject({ filename: 'n', mediaType: 'a/b' });
  });

  it.each([
    [{}, 'content'],
    [{ kind: 'text' }, 'content'],
    [{ kind: 'file', file: {} }, 'content'],
    [{ text: 'a', url: 'https://x' }, 'content'],
    [{ text: 'a', data: 1 }, 'content'],
    [{ file: { bytes: '', uri: 'https://x' } }, 'content'],
    [{ kind: 'video', text: 'a' }, 'kind'],
    [{ kind: 'data', text: 'a' }, 'kind'],
    [{ kind: 7, text: 'a' }, 'kind'],
    [{ text: 7 }, 'text'],
    [{ text: { toString: 1 } }, 'text'],
    [{ raw: 'not base64!' }, 'raw'],
    [{ raw: 'AAAAA' }, 'raw'],
    [{ raw: 'A=AA' }, 'raw'],
    [{ raw: 'AP8==' }, 'raw'],
    [{ raw: 'AAAA=' }, 'raw'],
    [{ raw: 9 }, 'raw'],
    [{ url: 9 }, 'url'],
    [{ url: '' }, 'url'],
    [{ file: { bytes: '%' } }, 'file.bytes'],
    [{ file: { uri: [] } }, 'file.uri'],
    [{ file: 'f' }, 'file'],
    [{ text: 'a', metadata: [] }, 'metadata'],
    [{ text: 'a', filename: 1 }, 'filename'],
    [{ text: 'a', mediaType: 1 }, 'mediaType'],
  ])('refuses the part %j at its %s', (part, field) => {
    expect(refused({ parts: [{ text: 'ok' }, part] })).toEqual(`message.parts[1].${field}`);
  });

  it.each([
    [{ parts: undefined }, 'message.parts'],
    [{ parts: [] }, 'message.parts'],
    [{ parts: {} }, 'message.parts'],
    [{ parts: 'hi' }, 'message.parts'],
    [{ parts: ['hi'] }, 'message.parts[0]'],
    [{ parts: [null] }, 'message.parts[0]'],
    [{ role: undefined }, 'message.role'],
    [{ role: 'user' }, 'message.role'],
    [{ role: 'ROLE_AGENT' }, 'message.role'],
    [{ role: 'ROLE_UNSPECIFIED' }, 'message.role'],
    [{ role: 9 }, 'message.role'],
    [{ role: {} }, 'message.role'],
    [{ messageId: undefined }, 'message.messageId'],
    [{ messageId: '' }, 'message.messageId'],
    [{ messageId: 5 }, 'message.messageId'],
    [{ messageId: 'x'.repeat(257) }, 'message.messageId'],
    [{ messageId: 'a\0b' }, 'message.messageId'],
    [{ messageId: 'a\ud800' }, 'message.messageId'],
    [{ taskId: 5 }, 'message.taskId'],
    [{ taskId: 'x'.repeat(257) }, 'message.taskId'],
    [{ contextId: 'x'.repeat(1025) }, 'message.contextId'],
    [{ contextId: '\0' }, 'message.contextId'],
    [{ contextId: {} }, 'message.contextId'],
    [{ metadata: 'm' }, 'message.metadata'],
    [{ metadata: [] }, 'message.metadata'],
    [{ extensions: 'e' }, 'message.extensions'],
    [{ extensions: [1] }, 'message.extensions'],
    [{ referenceTaskIds: [1] }, 'message.referenceTaskIds'],
    [{ referenceTaskIds: ['a', 'b\0'] }, 'message.referenceTaskIds[1]'],
  ])('refuses a message with %j at %s', (members, field) => {
    expect(refused(members)).toBe(field);
  });

  it.each([
    ['ROLE_ROBOT', 'must be "ROLE_USER", not "ROLE_ROBOT"'],
    [9, 'must be "ROLE_USER", not 9'],
    [{}, 'must be "ROLE_USER", not an object'],
    ['ROLE_UNSPECIFIED', 'must be "ROLE_USER", not "ROLE_UNSPECIFIED"'],
    [
      'UNRECOGNIZED',
      'arrived as "UNRECOGNIZED": your client library did not know the value that it was given',
    ],
  ])('names the role %j that arrived', (role, message) => {
    const sent = { message: { messageId: 'm', role, parts: [{ text: 'x' }] } };
    expect(errorOf(() => decode('SendMessage', sent)).message).toContain(message);
  });

  it.each([
    ['hi', 'message.parts: must be a list of parts, not "hi"'],
    [{ text: 'x' }, 'message.parts: must be a list of parts, not an object'],
    [
      [{}],
      'message.parts[0].content: is missing: only an empty object arrived; a part must have one of text',
    ],
    // An SDK that was given `{ text }` in place of `{ content: { $case: 'text', value } }` writes this.
    [[{ filename: '', mediaType: '' }], 'is missing: only "filename", "mediaType" arrived; a part must have'],
    [
      [{ a: 1, b: 1, c: 1, d: 1, ['x'.repeat(99)]: 1 }],
      'is missing: only "a", "b", "c", "d" … arrived; a part',
    ],
    [[{ ['x'.repeat(99)]: 1 }], `is missing: only "${'x'.repeat(40)}…" arrived; a part must have`],
  ])('names what arrived in place of parts: %j', (parts, message) => {
    const sent = { message: { messageId: 'm', role: 'ROLE_USER', parts } };
    expect(errorOf(() => decode('SendMessage', sent)).message).toContain(message);
  });

  it.each([
    [{ metadata: 1 }, 'metadata'],
    [{ tenant: 1 }, 'tenant'],
    [{ configuration: [] }, 'configuration'],
    [{ configuration: 'x' }, 'configuration'],
    [{ configuration: { historyLength: -1 } }, 'configuration.historyLength'],
    [{ configuration: { historyLength: 1.5 } }, 'configuration.historyLength'],
    [{ configuration: { historyLength: 2 ** 31 } }, 'configuration.historyLength'],
    [{ configuration: { historyLength: ' 1' } }, 'configuration.historyLength'],
    [{ configuration: { returnImmediately: 'yes' } }, 'configuration.returnImmediately'],
    [{ configuration: { acceptedOutputModes: [1] } }, 'configuration.acceptedOutputModes'],
    [{ configuration: { acceptedOutputModes: {} } }, 'configuration.acceptedOutputModes'],
    [{ configuration: { taskPushNotificationConfig: 1 } }, 'configuration.taskPushNotificationConfig'],
    [
      { configuration: { taskPushNotificationConfig: { url: {} } } },
      'configuration.taskPushNotificationConfig.url',
    ],
  ])('refuses a send with %j at %s', (rest, field) => {
    expect(refused({}, rest)).toBe(field);
  });

  it.each([undefined, null, {}])('refuses params of %j: there is no message', (params) => {
    expect(refusalOf(() => decode('SendMessage', params))).toBe('message');
  });

  it.each([[[]], ['x'], [1], [true]])('refuses params of %j', (params) => {
    expect(refusalOf(() => decode('SendMessage', params))).toBe('params');
  });

  it.each([[[]], ['x'], [1]])('refuses a message of %j', (value) => {
    expect(refusalOf(() => decode('SendMessage', { message: value }))).toBe('message');
  });
});
