import type { CancelTaskRequest, SendMessageRequest } from '../../model.js';
import type { DecodedCall } from '../../operation.js';
import type { ReadParams } from '../define-codec.js';
import type { Fields } from '../fields.js';
import { readMessage } from '../read-message.js';
import { ROLES } from '../v0_3/decode.js';

/** Longest reason of a cancel, in bytes of UTF-8. */
const MAX_REASON_BYTES = 1024;

export const SEND = 'tasks/send';
const SEND_SUBSCRIBE = 'tasks/sendSubscribe';

const sendCall =
  (operation: 'sendMessage' | 'sendStreamingMessage') =>
  (params: Fields): DecodedCall => ({
    operation,
    clientTaskId: params.requiredId('id'),
    request: readSend(params),
  });

/** The JSON-RPC methods of A2A 0.1 that there are clients of. */
export const METHODS: ReadonlyMap<string, ReadParams> = new Map<string, ReadParams>([
  [SEND, sendCall('sendMessage')],
  [SEND_SUBSCRIBE, sendCall('sendStreamingMessage')],
  ['tasks/get', (params) => ({ operation: 'getTask', request: readGetTask(params) })],
  ['tasks/cancel', (params) => ({ operation: 'cancelTask', request: readCancelTask(params) })],
]);

function readSend(params: Fields): SendMessageRequest {
  const message = readMessage(params, ROLES, 'optional');
  const historyLength = params.historyLength();
  return {
    tenant: '',
    // The id of the task is the caller's own and stands beside the request.
    message: { ...message, taskId: '', contextId: message.contextId || params.id('sessionId') },
    configuration: {
      acceptedOutputModes: params.strings('acceptedOutputModes'),
      taskPushNotificationConfig: undefined,
      historyLength,
      returnImmediately: false,
    },
    metadata: params.object('metadata'),
  };
}

const readGetTask = (params: Fields) => ({
  tenant: '',
  id: params.requiredId('id'),
  historyLength: params.historyLength(),
});

function readCancelTask(params: Fields): CancelTaskRequest {
  const reason = params.string('reason');
  if (reason !== undefined && Buffer.byteLength(reason) > MAX_REASON_BYTES) {
    throw params.refuse('reason', `must not be longer than ${MAX_REASON_BYTES} bytes`);
  }
  return { tenant: '', id: params.requiredId('id'), metadata: reason === undefined ? undefined : { reason } };
}
