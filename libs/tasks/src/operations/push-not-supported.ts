import { ProtocolError } from '@baton/a2a';

/** No agent declares `pushNotifications` yet (A2A 1.0 §3.1.7). */
export const pushNotSupported = (): ProtocolError =>
  new ProtocolError(
    'push-not-supported',
    'This agent does not support push notifications: follow the task with a stream or read it with GetTask',
  );
