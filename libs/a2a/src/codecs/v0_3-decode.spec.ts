import { Role, type SendMessageRequest } from '../model.js';
import { refusalOf } from '../../../../test/support/a2a/profile.js';
import { V0_3_HTTP_CODEC } from './v0_3-http.js';
import { V0_3_CODEC } from './v0_3.js';

const decode = (method: string, params: unknown) => V0_3_CODEC.decode(method, params).request as never;
const message = (members: object = {}) => ({
  kind: 'message',
  messageId: 'm-1',
  role: 'user',
  parts: [{ kind: 'text', text: 'hi' }],
  ...members,
});
const send = (members: object = {}, configuration?: object): SendMessageRequest =>
  decode('message/send', { message: message(members), configuration });

describe('decoding a 0.3 send', () => {
  it('reads a message in the canonical model', () => {
    const parts = [
      { kind: 'text', text: 't', metadata: { a: 1 } },
      { kind: 'file', file: { bytes: 'AP8=', mimeType: 'x/y', name: 'f' } },
      { kind: 'data', data: { b: 2 } },
    ];
    expect(
      send({ parts, contextId: 'c', taskId: 't', referenceTaskIds: ['r'], extensions: ['e'] }).message,
    ).toEqual({
      messageId: 'm-1',
      contextId: 'c',
      taskId: 't',
      role: Role.ROLE_USER,
      parts: [
        { content: { $case: 'text', value: 't' }, metadata: { a: 1 }, filename: '', mediaType: '' },
        {
          content: { $case: 'raw', value: Buffer.from([0, 255]) },
          metadata: undefined,
          filename: 'f',
          mediaType: 'x/y',
        },
        { content: { $case: 'data', value: { b: 2 } }, metadata: undefined, filename: '', mediaType: '' },
      ],
      metadata: undefined,
      extensions: ['e'],
      referenceTaskIds: ['r'],
    });
  });

  it.each([
    [undefined, undefined],
    [{}, false],
    [{ blocking: true }, false],
    [{ blocking: false }, true],
  ])('P-4: configuration %j returns at once: %j', (configuration, expected) => {
    expect(send({}, configuration).configuration?.returnImmediately).toBe(expected);
  });

  it('unwraps a data value that an SDK had to wrap, and leaves any other alone', () => {
    const wrapped = { kind: 'data', data: { value: [1, 2] }, metadata: { data_part_compat: true } };
    const plain = { kind: 'data', data: { value: [1, 2] }, metadata: { x: 1 } };
    const wrappedNull = { kind: 'data', data: { value: null }, metadata: { data_part_compat: true } };
    const parts = send({ parts: [wrapped, plain, wrappedNull] }).message?.parts;
    expect(parts).toMatchObject([
      { content: { value: [1, 2] }, metadata: undefined },
      { content: { value: { value: [1, 2] } }, metadata: { x: 1 } },
      { content: { value: null }, metadata: undefined },
    ]);
  });

  it('takes a push config with its first scheme', () => {
    const pushNotificationConfig = {
      url: 'https://x',
      token: 't',
      authentication: { schemes: ['Bearer', 'Basic'], credentials: 'c' },
    };
    expect(send({}, { pushNotificationConfig }).configuration?.taskPushNotificationConfig).toMatchObject({
      url: 'https://x',
      token: 't',
      authentication: { scheme: 'Bearer', credentials: 'c' },
    });
  });

  it.each([
    [{ kind: 'task' }, 'message.kind'],
    [{ role: 'agent' }, 'message.role'],
    [{ role: 'ROLE_USER' }, 'message.role'],
    [{ role: 'system' }, 'message.role'],
    [{ role: undefined }, 'message.role'],
    [{ messageId: undefined }, 'message.messageId'],
    [{ parts: [] }, 'message.parts'],
    [{ parts: [{ kind: 'text' }] }, 'message.parts[0].content'],
    [{ parts: [{ kind: 'file', file: { bytes: '*' } }] }, 'message.parts[0].file.bytes'],
  ])('refuses a message with %j at %s', (members, field) => {
    expect(refusalOf(() => send(members))).toBe(field);
  });

  it.each([
    [{ blocking: 'no' }, 'configuration.blocking'],
    [{ historyLength: -5 }, 'configuration.historyLength'],
    [{ historyLength: 10 ** 12 }, 'configuration.historyLength'],
    [{ pushNotificationConfig: 'x' }, 'configuration.pushNotificationConfig'],
  ])('refuses a configuration of %j at %s', (configuration, field) => {
    expect(refusalOf(() => send({}, configuration))).toBe(field);
  });

  it.each([[[]], ['x'], [7]])('refuses params of %j', (params) => {
    expect(refusalOf(() => decode('message/send', params))).toBe('params');
    expect(refusalOf(() => decode('tasks/get', params))).toBe('params');
  });
});

describe('decoding other 0.3 methods', () => {
  it('reads ids', () => {
    expect(decode('tasks/get', { id: 'a', historyLength: 2 })).toEqual({
      tenant: '',
      id: 'a',
      historyLength: 2,
    });
    expect(decode('tasks/cancel', { id: 'a', metadata: {} })).toEqual({ tenant: '', id: 'a', metadata: {} });
    expect(decode('tasks/resubscribe', { id: 'a' })).toEqual({ tenant: '', id: 'a' });
    expect(V0_3_CODEC.decode('agent/getAuthenticatedExtendedCard', undefined).operation).toBe(
      'getExtendedAgentCard',
    );
  });

  it('reads push configs, over JSON-RPC and over HTTP+JSON', () => {
    const given = { id: 'c', url: 'https://x', authentication: { schemes: ['Basic'], credentials: 's' } };
    const config = {
      tenant: '',
      taskId: 'a',
      id: 'c',
      url: 'https://x',
      token: '',
      authentication: { scheme: 'Basic', credentials: 's' },
    };
    const set = 'tasks/pushNotificationConfig/set';
    expect(decode(set, { taskId: 'a', pushNotificationConfig: given })).toEqual(config);
    const overHttp = (params: object) => V0_3_HTTP_CODEC.decode(set, { taskId: 'a', ...params }).request;
    const name = 'tasks/a/pushNotificationConfigs/c';
    for (const params of [
      { name, pushNotificationConfig: given },
      { parent: 'tasks/a', config_id: 'c', config: { name, push_notification_config: given } },
      { parent: 'tasks/a', configId: 'c', config: { pushNotificationConfig: { ...given, id: '' } } },
    ])
      expect(overHttp(params)).toEqual(config);
    expect(refusalOf(() => decode(set, { taskId: 'a' }))).toBe('pushNotificationConfig');
    expect(refusalOf(() => overHttp({ config: {} }))).toBe('config.pushNotificationConfig');
    expect(decode('tasks/pushNotificationConfig/get', { id: 'a' })).toEqual({
      tenant: '',
      taskId: 'a',
      id: '',
    });
    expect(decode('tasks/pushNotificationConfig/list', { id: 'a' })).toMatchObject({ taskId: 'a' });
    const removed = { id: 'a', pushNotificationConfigId: 'c' };
    expect(decode('tasks/pushNotificationConfig/delete', removed)).toEqual({
      tenant: '',
      taskId: 'a',
      id: 'c',
    });
    expect(refusalOf(() => decode('tasks/pushNotificationConfig/delete', { id: 'a' }))).toBe(
      'pushNotificationConfigId',
    );
  });

  it('writes push configs, over JSON-RPC and over HTTP+JSON', () => {
    const config = {
      tenant: '',
      taskId: 'a',
      id: 'c',
      url: 'https://x',
      token: '',
      authentication: { scheme: 'Basic', credentials: '' },
    };
    const inside = { id: 'c', url: 'https://x', authentication: { schemes: ['Basic'] } };
    const shown = { taskId: 'a', pushNotificationConfig: inside };
    const proto = { name: 'tasks/a/pushNotificationConfigs/c', pushNotificationConfig: inside };
    for (const operation of ['createTaskPushNotificationConfig', 'getTaskPushNotificationConfig'] as const) {
      expect(V0_3_CODEC.encodeResult(operation, config)).toEqual(shown);
      expect(V0_3_HTTP_CODEC.encodeResult(operation, config)).toEqual(proto);
    }
    const page = { configs: [config], nextPageToken: '' };
    expect(V0_3_CODEC.encodeResult('listTaskPushNotificationConfigs', page)).toEqual([shown]);
    expect(V0_3_HTTP_CODEC.encodeResult('listTaskPushNotificationConfigs', page)).toEqual({
      configs: [proto],
    });
    expect(V0_3_CODEC.encodeResult('deleteTaskPushNotificationConfig', {})).toBeNull();
    expect(V0_3_HTTP_CODEC.encodeResult('deleteTaskPushNotificationConfig', {})).toEqual({});
  });

  it.each(['tasks/get', 'tasks/cancel', 'tasks/resubscribe', 'tasks/pushNotificationConfig/get'])(
    '%s needs an id',
    (method) => {
      for (const params of [{}, { id: 5 }, { id: '' }])
        expect(refusalOf(() => decode(method, params))).toBe('id');
    },
  );
});
