import { SendMessageRequest } from '@a2a-js/sdk';
import { type Part, Role, TaskState } from '../../model.js';
import { encodePageToken } from '../../page-token.js';
import { refusalOf } from '../../testing/refusal.js';
import { V1_0_CODEC } from './index.js';

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
            content: { $case: 'text', value: 'hé \u0000 \ud800' },
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

  it('blocks unless told otherwise', () => {
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
  ])('takes the part %j', (part, content) => {
    expect(partOf(part)?.content).toEqual(content);
    if ('file' in part) expect(partOf(part)).toMatchObject({ filename: 'n', mediaType: 'a/b' });
  });

  it.each([
    [{}, 'content'],
    [{ data: null }, 'content'],
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
    [{ metadata: 1 }, 'metadata'],
    [{ tenant: 1 }, 'tenant'],
    [{ configuration: [] }, 'configuration'],
    [{ configuration: 'x' }, 'configuration'],
    [{ configuration: { historyLength: -1 } }, 'configuration.historyLength'],
    [{ configuration: { historyLength: 1.5 } }, 'configuration.historyLength'],
    [{ configuration: { historyLength: 2 ** 31 } }, 'configuration.historyLength'],
    [{ configuration: { historyLength: '1' } }, 'configuration.historyLength'],
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

describe('decoding other 1.0 methods', () => {
  it('reads a task id and a history length', () => {
    expect(decode('GetTask', { id: 'a', historyLength: 0 })).toEqual({
      tenant: '',
      id: 'a',
      historyLength: 0,
    });
    expect(decode('CancelTask', { id: 'a', metadata: { b: 1 } })).toEqual({
      tenant: '',
      id: 'a',
      metadata: { b: 1 },
    });
    expect(decode('SubscribeToTask', { id: 'a', tenant: 't' })).toEqual({ tenant: 't', id: 'a' });
  });

  it.each(['GetTask', 'CancelTask', 'SubscribeToTask'])('%s needs an id', (method) => {
    for (const params of [undefined, {}, { id: '' }, { id: 1 }, { id: 'x'.repeat(300) }, { id: '\0' }]) {
      expect(refusalOf(() => decode(method, params))).toBe('id');
    }
  });

  it.each(['Create', 'Get', 'Delete'])('%sTaskPushNotificationConfig names its task', (verb) => {
    const method = `${verb}TaskPushNotificationConfig`;
    expect(V1_0_CODEC.decode(method, { task_id: 't', id: 'c' })).toEqual({
      operation: 'pushNotificationConfig',
      request: { taskId: 't' },
    });
    expect(refusalOf(() => decode(method, {}))).toBe('taskId');
  });

  it('GetExtendedAgentCard needs no params', () => {
    expect(V1_0_CODEC.decode('GetExtendedAgentCard', undefined).operation).toBe('getExtendedAgentCard');
  });

  it('P-8: ListTasks reads its filters', () => {
    const pageToken = encodePageToken({
      statusAt: new Date(),
      taskId: '0b0f6d0e-7b0f-4b4e-8a52-3a6c0d6f1b11',
    });
    const params = {
      contextId: 'c',
      status: 'TASK_STATE_WORKING',
      pageSize: 100,
      pageToken,
      historyLength: 2,
      statusTimestampAfter: '2026-01-31T13:00:00.123456+01:00',
      includeArtifacts: true,
    };
    expect(decode('ListTasks', params)).toEqual({
      ...params,
      tenant: '',
      status: TaskState.TASK_STATE_WORKING,
      statusTimestampAfter: '2026-01-31T12:00:00.123Z',
    });
    expect(decode('ListTasks', undefined)).toMatchObject({ status: 0, pageToken: '', pageSize: undefined });
  });

  it.each([
    [{ pageSize: 0 }, 'pageSize'],
    [{ pageSize: -1 }, 'pageSize'],
    [{ pageSize: 101 }, 'pageSize'],
    [{ pageSize: 1.5 }, 'pageSize'],
    [{ pageSize: '10' }, 'pageSize'],
    [{ pageToken: 'forged' }, 'pageToken'],
    [{ pageToken: 7 }, 'pageToken'],
    [{ status: 'working' }, 'status'],
    [{ status: 99 }, 'status'],
    [{ status: {} }, 'status'],
    [{ statusTimestampAfter: 'yesterday' }, 'statusTimestampAfter'],
    [{ statusTimestampAfter: '2026-13-01T00:00:00Z' }, 'statusTimestampAfter'],
    [{ statusTimestampAfter: '2026-01-01' }, 'statusTimestampAfter'],
    [{ statusTimestampAfter: 5 }, 'statusTimestampAfter'],
    [{ includeArtifacts: 'true' }, 'includeArtifacts'],
    [{ historyLength: -1 }, 'historyLength'],
    [{ contextId: '\0' }, 'contextId'],
  ])('P-8: ListTasks refuses %j', (params, field) => {
    expect(refusalOf(() => decode('ListTasks', params))).toBe(field);
  });
});
