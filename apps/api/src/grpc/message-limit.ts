import type { ServerInterceptingCallInterface } from '@grpc/grpc-js';
import type { ServerHttp2Stream } from 'node:http2';

/**
 * Private members of a call in grpc-js. It has one limit of messages for a whole server, and gives interceptors neither the
 * encoding nor the size before it has the whole message. `public-calls.spec.ts` fails if a new version has other members.
 */
interface ReceivingCall {
  maxReceiveMessageSize: number;
  incomingEncoding: string;
  decoder: { maxReadMessageLength: number };
  stream: ServerHttp2Stream;
}

const receiving = (call: ServerInterceptingCallInterface): ReceivingCall => call as unknown as ReceivingCall;

/** Has grpc-js refuse larger messages of this call with RESOURCE_EXHAUSTED, as soon as their size has arrived. */
export function limitMessages(call: ServerInterceptingCallInterface, bytes: number): void {
  const received = receiving(call);
  received.maxReceiveMessageSize = bytes;
  received.decoder.maxReadMessageLength = bytes;
}

/** Calls back with the size of each part of the call's messages, as it arrives. */
export function onReceivedBytes(
  call: ServerInterceptingCallInterface,
  onBytes: (bytes: number) => void,
): void {
  receiving(call).stream.on('data', (chunk: Buffer) => onBytes(chunk.length));
}

/** The compression of the call's messages: `identity` without one. */
export const encodingOf = (call: ServerInterceptingCallInterface): string =>
  receiving(call).incomingEncoding.slice(0, 100);
