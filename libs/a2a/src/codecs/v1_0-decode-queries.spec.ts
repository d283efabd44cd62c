import { ListTasksRequest, TaskState } from '../model.js';
import { encodePageToken } from '../page-token.js';
import { errorOf, refusalOf } from '../../../../test/support/a2a/profile.js';
import { V1_0_CODEC } from './v1_0.js';

const decode = (method: string, params: unknown) => V1_0_CODEC.decode(method, params).request;

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

  it('CreateTaskPushNotificationConfig has the config and its task', () => {
    const config = {
      id: 'c',
      url: 'https://x',
      token: 't',
      authentication: { scheme: 'Bearer', credentials: 's' },
    };
    expect(V1_0_CODEC.decode('CreateTaskPushNotificationConfig', { task_id: 't', ...config })).toEqual({
      operation: 'createTaskPushNotificationConfig',
      request: { tenant: '', taskId: 't', ...config },
    });
    expect(decode('CreateTaskPushNotificationConfig', { taskId: 't', url: 'https://x' })).toEqual({
      tenant: '',
      taskId: 't',
      id: '',
      url: 'https://x',
      token: '',
      authentication: undefined,
    });
    expect(refusalOf(() => decode('CreateTaskPushNotificationConfig', config))).toBe('taskId');
  });

  it.each(['Get', 'Delete'])('%sTaskPushNotificationConfig names the task and the config', (verb) => {
    const method = `${verb}TaskPushNotificationConfig`;
    expect(V1_0_CODEC.decode(method, { task_id: 't', id: 'c' })).toEqual({
      operation: `${verb.toLowerCase()}TaskPushNotificationConfig`,
      request: { tenant: '', taskId: 't', id: 'c' },
    });
    expect(refusalOf(() => decode(method, { id: 'c' }))).toBe('taskId');
    expect(refusalOf(() => decode(method, { taskId: 't' }))).toBe('id');
  });

  it('ListTaskPushNotificationConfigs has pages', () => {
    const method = 'ListTaskPushNotificationConfigs';
    expect(decode(method, { taskId: 't', pageSize: 3, pageToken: 'p' })).toEqual({
      tenant: '',
      taskId: 't',
      pageSize: 3,
      pageToken: 'p',
    });
    expect(decode(method, { taskId: 't' })).toMatchObject({ pageSize: 0, pageToken: '' });
    expect(refusalOf(() => decode(method, { taskId: 't', pageSize: 101 }))).toBe('pageSize');
  });

  it('shows configs as ProtoJSON, a page without configs as well', () => {
    const config = {
      tenant: '',
      taskId: 't',
      id: 'c',
      url: 'https://x',
      token: '',
      authentication: { scheme: 'Bearer', credentials: '' },
    };
    const shown = { taskId: 't', id: 'c', url: 'https://x', authentication: { scheme: 'Bearer' } };
    expect(V1_0_CODEC.encodeResult('createTaskPushNotificationConfig', config)).toEqual(shown);
    expect(V1_0_CODEC.encodeResult('getTaskPushNotificationConfig', config)).toEqual(shown);
    const list = (configs: (typeof config)[], nextPageToken: string) =>
      V1_0_CODEC.encodeResult('listTaskPushNotificationConfigs', { configs, nextPageToken });
    expect(list([config], 'p')).toEqual({ configs: [shown], nextPageToken: 'p' });
    expect(list([], '')).toEqual({ configs: [] });
    expect(V1_0_CODEC.encodeResult('deleteTaskPushNotificationConfig', {})).toEqual({});
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

  it.each([7, '7', '7.0', '7e0', '70E-1', '0.7e+1'])('reads the page size %j', (pageSize) => {
    expect(decode('ListTasks', { pageSize })).toMatchObject({ pageSize: 7 });
    expect(decode('GetTask', { id: 'a', history_length: pageSize })).toMatchObject({ historyLength: 7 });
  });

  it.each([2, 'TASK_STATE_WORKING'])('reads the state %j', (status) => {
    expect(decode('ListTasks', { status })).toMatchObject({ status: TaskState.TASK_STATE_WORKING });
  });

  it.each([
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['2026-01-31T12:00:00.1Z', '2026-01-31T12:00:00.100Z'],
    ['2026-01-31T12:00:00.123456789-03:30', '2026-01-31T15:30:00.123Z'],
    ['2026-12-31T23:59:59-23:59', '2027-01-01T23:58:59.000Z'],
    ['2026-01-31t12:00:00z', '2026-01-31T12:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999999999Z', '9999-12-31T23:59:59.999Z'],
  ])('reads the timestamp %s', (statusTimestampAfter, at) => {
    expect(decode('ListTasks', { statusTimestampAfter })).toMatchObject({ statusTimestampAfter: at });
  });

  it.each([
    ...[undefined, null, '', 0, 'TASK_STATE_UNSPECIFIED', 'UNRECOGNIZED'].map((status) => ({ status })),
    { statusTimestampAfter: '', contextId: '', pageToken: '', tenant: '' },
  ])('P-18: ListTasks with %j has no such filter', (params) => {
    expect(decode('ListTasks', { ...params, pageSize: 3 })).toEqual({
      tenant: '',
      contextId: '',
      status: 0,
      pageSize: 3,
      pageToken: '',
      historyLength: undefined,
      statusTimestampAfter: undefined,
      includeArtifacts: undefined,
    });
  });

  it('P-18: ListTasks takes what the SDK makes of a request with a page size alone', () => {
    const params: unknown = JSON.parse(
      JSON.stringify(ListTasksRequest.toJSON({ pageSize: 3 } as ListTasksRequest)),
    );
    expect(decode('ListTasks', params)).toMatchObject({ pageSize: 3, status: 0 });
  });

  it.each([
    [{ status: 'working' }, /^status: must be a task state such as "TASK_STATE_COMPLETED", not "working"$/],
    [{ pageSize: 'ten' }, /^pageSize: must be an integer between 1 and 100, not "ten"$/],
    [{ includeArtifacts: [] }, /^includeArtifacts: must be true or false, not a list$/],
    [{ contextId: { a: 'secret' } }, /^contextId: must be a string, not an object$/],
    [{ status: 'x'.repeat(10_000) }, /^.{0,150}$/],
  ])('the refusal of %j names what arrived', (params, message) => {
    expect(errorOf(() => decode('ListTasks', params)).message).toMatch(message);
  });

  it.each([
    [{ pageSize: 0 }, 'pageSize'],
    [{ pageSize: -1 }, 'pageSize'],
    [{ pageSize: 101 }, 'pageSize'],
    [{ pageSize: 1.5 }, 'pageSize'],
    ...['', ' 10', '+10', '0x10', '010', '1.5', '101', '1e3', 'ten'].map((pageSize): [object, string] => [
      { pageSize },
      'pageSize',
    ]),
    [{ pageToken: 'forged' }, 'pageToken'],
    [{ pageToken: 7 }, 'pageToken'],
    [{ status: 'working' }, 'status'],
    [{ status: 99 }, 'status'],
    [{ status: {} }, 'status'],
    [{ statusTimestampAfter: 'yesterday' }, 'statusTimestampAfter'],
    [{ statusTimestampAfter: '2026-13-01T00:00:00Z' }, 'statusTimestampAfter'],
    ...[
      '2026-01-01',
      '2026-02-30T00:00:00Z',
      '2026-02-29T00:00:00Z',
      '2026-04-31T00:00:00+02:00',
      '2026-00-10T00:00:00Z',
      '2026-01-01T24:00:00Z',
      '2026-01-01T23:60:00Z',
      '2026-01-01T23:59:60Z',
      '2026-01-01T00:00:00',
      '2026-01-01 00:00:00Z',
      '2026-01-01T00:00Z',
      '2026-01-01T00:00:00.Z',
      '2026-01-01T00:00:00.1234567890Z',
      '2026-01-01T00:00:00+24:00',
      '2026-01-01T00:00:00+01:60',
      '2026-01-01T00:00:00+0100',
      '0000-12-31T23:59:59Z',
      '0001-01-01T00:00:00+00:01',
      '9999-12-31T23:59:59-00:01',
      '12026-01-01T00:00:00Z',
    ].map((statusTimestampAfter): [object, string] => [{ statusTimestampAfter }, 'statusTimestampAfter']),
    [{ statusTimestampAfter: 5 }, 'statusTimestampAfter'],
    [{ includeArtifacts: 'true' }, 'includeArtifacts'],
    [{ historyLength: -1 }, 'historyLength'],
    [{ contextId: '\0' }, 'contextId'],
  ])('P-8: ListTasks refuses %j', (params, field) => {
    expect(refusalOf(() => decode('ListTasks', params))).toBe(field);
  });
});
