import { ERRORS } from '../errors.js';
import { ProtocolError } from '../protocol-error.js';
import { SPEC_PROFILE } from './spec.js';

const V1_METHODS = [
  'SendMessage',
  'SendStreamingMessage',
  'GetTask',
  'ListTasks',
  'CancelTask',
  'SubscribeToTask',
  'CreateTaskPushNotificationConfig',
  'GetTaskPushNotificationConfig',
  'ListTaskPushNotificationConfigs',
  'DeleteTaskPushNotificationConfig',
  'GetExtendedAgentCard',
];
const V0_3_METHODS = [
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/cancel',
  'tasks/resubscribe',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
  'tasks/pushNotificationConfig/delete',
  'agent/getAuthenticatedExtendedCard',
];

describe('the spec profile', () => {
  it.each(V1_METHODS)('P-1: serves the 1.0 method %s', (method) => {
    expect(SPEC_PROFILE.codecFor(method)?.version).toBe('1.0');
  });

  it.each(V0_3_METHODS)('P-2: serves the 0.3 method %s', (method) => {
    expect(SPEC_PROFILE.codecFor(method)?.version).toBe('0.3');
  });

  it.each(['tasks/send', 'sendMessage', 'constructor', 'toString', '__proto__', ''])(
    'does not know the method %p',
    (method) => {
      expect(SPEC_PROFILE.codecFor(method)).toBeUndefined();
    },
  );

  it.each([
    [undefined, 'message/send', '0.3'],
    ['', 'message/send', '0.3'],
    [' ', 'nonsense', '0.3'],
    [undefined, 'SendMessage', '1.0'],
    ['0.3', 'message/send', '0.3'],
    ['0.3.0', 'message/send', '0.3'],
    ['1.0', 'SendMessage', '1.0'],
    ['1.0.3', 'SendMessage', '1.0'],
    ['1', 'SendMessage', '1.0'],
    [' 1.0 ', 'SendMessage', '1.0'],
  ])('P-3: asked for version %p, %s is served as %s', (requested, method, version) => {
    expect(SPEC_PROFILE.resolveVersion(requested, method)).toBe(version);
  });

  it.each(['0.2', '0.4', '2.0', '1.1', '0', 'latest', '1.0, 0.3', '1.x', '9'.repeat(500)])(
    'P-3: refuses version %p and names the supported ones',
    (requested) => {
      let error: unknown;
      try {
        SPEC_PROFILE.resolveVersion(requested, 'SendMessage');
      } catch (thrown) {
        error = thrown;
      }
      expect(error).toBeInstanceOf(ProtocolError);
      const { kind, message, detail } = error as ProtocolError;
      expect(ERRORS[kind].code).toBe(-32009);
      expect(message).toContain('0.3, 1.0');
      expect(detail.metadata?.supportedVersions).toBe('0.3, 1.0');
      expect(message.length).toBeLessThan(200);
    },
  );
});
