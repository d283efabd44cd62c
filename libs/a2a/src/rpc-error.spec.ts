import * as sdk from '@a2a-js/sdk/errors';
import { encodeErrorEnvelope, encodeRpcError, errorWire } from './json-rpc.js';
import { ERRORS, type ErrorKind } from './errors.js';
import { ProtocolError } from './protocol-error.js';
import { PROFILES } from './profiles/index.js';
import type { Profile } from './profiles/profile.js';
import { connectSdkClient } from '../../../test/support/a2a/sdk-client.js';

const CLASSES: Partial<Record<ErrorKind, new () => Error>> = {
  'task-not-found': sdk.TaskNotFoundError,
  'agent-not-found': sdk.TaskNotFoundError,
  'task-not-cancelable': sdk.TaskNotCancelableError,
  'push-not-supported': sdk.PushNotificationNotSupportedError,
  'unsupported-operation': sdk.UnsupportedOperationError,
  'content-type-not-supported': sdk.ContentTypeNotSupportedError,
  'agent-threw': sdk.InvalidAgentResponseError,
  'extended-card-not-configured': sdk.ExtendedAgentCardNotConfiguredError,
  'extension-required': sdk.ExtensionSupportRequiredError,
  'version-not-supported': sdk.VersionNotSupportedError,
  'invalid-params': sdk.RequestMalformedError,
  'invalid-request': sdk.RequestMalformedError,
  parse: sdk.RequestMalformedError,
  'method-not-found': sdk.RequestMalformedError,
};

/** What a server says that fails with an error of this kind. */
const failWith = (version: string, kind: ErrorKind) => (): Response => {
  const error = encodeRpcError(new ProtocolError(kind, 'what to do', { metadata: { a: 'b' } }), {}, version);
  return Response.json(encodeErrorEnvelope(1, error));
};

describe.each(['1.0', '0.3'] as const)('an SDK client of version %s', (version) => {
  it.each(Object.entries(CLASSES))('reads %s as the error it is', async (kind, expected) => {
    const client = await connectSdkClient(version, failWith(version, kind as ErrorKind));
    const error: unknown = await client.getTask({ tenant: '', id: 'x' }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(expected);
    expect(error).toMatchObject({ message: 'what to do', envelopeCode: ERRORS[kind as ErrorKind].code });
  });
});

describe('an error on the wire', () => {
  it('P-10: has an ErrorInfo', () => {
    expect(encodeRpcError(ProtocolError.taskNotFound('t-1'))).toEqual({
      code: -32001,
      message: 'Task not found: t-1',
      data: [
        {
          '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
          reason: 'TASK_NOT_FOUND',
          domain: 'a2a-protocol.org',
          metadata: { taskId: 't-1' },
        },
      ],
    });
  });

  it('P-10: names wrong fields in a BadRequest', () => {
    const { code, data } = encodeRpcError(ProtocolError.invalidParams('message.parts', 'is required'));
    expect(code).toBe(-32602);
    expect(data).toEqual([
      expect.objectContaining({ reason: 'INVALID_PARAMS' }),
      {
        '@type': 'type.googleapis.com/google.rpc.BadRequest',
        fieldViolations: [{ field: 'message.parts', description: 'is required' }],
      },
    ]);
  });

  it('has its data in one object for a 0.3 client', () => {
    expect(
      encodeRpcError(ProtocolError.invalidParams('message.parts', 'is required'), {}, '0.3').data,
    ).toEqual({
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'INVALID_PARAMS',
      domain: 'a2a-protocol.org',
      fieldViolations: [{ field: 'message.parts', description: 'is required' }],
    });
  });

  describe('over a limit of the tenant', () => {
    const over = ProtocolError.limitExceeded('openStreams', 5, 2, 'close one');
    const info = {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'LIMIT_EXCEEDED',
      domain: 'a2a-protocol.org',
      metadata: { limit: 'openStreams', max: '5', retryAfterSeconds: '2' },
    };
    const message = 'the limit openStreams of this tenant is reached, which is 5: close one';

    it('is -32029 with HTTP 429, and has the time to retry', () => {
      expect(encodeRpcError(over)).toEqual({
        code: -32029,
        message,
        data: [info, { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' }],
      });
      expect(errorWire('limit-exceeded').http).toBe(429);
    });

    it.each(['0.3', '0.1'])('is one object for a client of %s', (version) => {
      expect(encodeRpcError(over, {}, version)).toEqual({
        code: -32029,
        message,
        data: { ...info, retryDelay: '2s' },
      });
    });

    it.each(Object.values<Profile>(PROFILES))('is the same to clients of $name', ({ errors }) => {
      expect(encodeRpcError(over, errors, '0.3')).toEqual(encodeRpcError(over, {}, '0.3'));
      expect(errorWire('limit-exceeded', errors)).toEqual({
        code: -32029,
        http: 429,
        reason: 'LIMIT_EXCEEDED',
      });
      const taken = Object.values(errors).map((override) => override.code);
      expect(taken).not.toContain(-32029);
    });
  });

  it('takes the code and status a profile writes instead', () => {
    const overrides = { 'version-not-supported': { code: -32007 } };
    expect(encodeRpcError(new ProtocolError('version-not-supported', 'm'), overrides).code).toBe(-32007);
    expect(errorWire('version-not-supported', overrides)).toEqual({
      ...ERRORS['version-not-supported'],
      code: -32007,
    });
    expect(errorWire('parse', overrides)).toEqual(ERRORS.parse);
  });

  it('does not repeat an endless method name', () => {
    expect(ProtocolError.methodNotFound('x'.repeat(1e6)).message.length).toBeLessThan(200);
  });
});
