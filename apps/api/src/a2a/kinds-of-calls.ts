import type { OperationCall, StreamingOperationName, UnaryOperationName } from '@baton/a2a';

export type UnaryCall = Extract<OperationCall, { operation: UnaryOperationName }>;
export type StreamingCall = Extract<OperationCall, { operation: StreamingOperationName }>;

const STREAMING: Record<StreamingOperationName, true> = {
  sendStreamingMessage: true,
  subscribeToTask: true,
};

/** Whether a call is answered with a stream. */
export const isStreaming = (call: OperationCall): call is StreamingCall =>
  Object.hasOwn(STREAMING, call.operation);
