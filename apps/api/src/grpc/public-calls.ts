import { ProtocolError } from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { Logger } from '@baton/telemetry';
import { ServerInterceptingCall, type ServerInterceptingCallInterface } from '@grpc/grpc-js';
import type { UnauthenticatedLimit } from '../access/unauthenticated-limit.js';
import { networkOf } from '../http/network-of.js';
import { CallSlots } from '../http/call-slots.js';
import { GrpcReply } from './grpc-reply.js';
import { type CallOrigin, GrpcRequest } from './grpc-request.js';
import { encodingOf, limitMessages } from './message-limit.js';

/** Requests of health and reflection are small. */
const MAX_MESSAGE_BYTES = 4_096;
/** Maximum time until the first message has arrived. */
const MESSAGE_MS = 10_000;
/** Maximum duration of a call. Tools such as grpcurl need less. */
const CALL_MS = 30_000;
/** `Watch` has no maximum: it ends with its connection, which has a maximum age. */
const WATCH = '/grpc.health.v1.Health/Watch';
/** Maximum open calls of one address (IPv6: one /64 network). A client watches the health of a few services. */
const MAX_OF_ADDRESS = 32;
/** Maximum open calls of all addresses. Each holds some kilobytes until its caller ends it. */
const MAX_OPEN = 512;

const TOO_MANY = 'too many open calls of health and reflection: end some of them, or try again later';

/**
 * Bounds calls of the services that need no token: health and reflection. They count as unauthenticated requests. Their messages must be
 * small and not compressed. An address, and all together, may have a limited number of them open, each for a limited time.
 */
export class PublicCalls {
  private readonly slots = new CallSlots(MAX_OF_ADDRESS, MAX_OPEN);

  constructor(
    private readonly unauthenticated: UnauthenticatedLimit,
    private readonly environment: Pick<Environment, 'requestTimeoutMs'>,
    private readonly logger: Logger,
  ) {}

  /** The call for the service. A refused call is answered here and does not reach the service. */
  intercept(origin: CallOrigin, call: ServerInterceptingCallInterface): ServerInterceptingCall {
    limitMessages(call, MAX_MESSAGE_BYTES);
    let ended = (): void => undefined;
    let arrived = (): void => undefined;
    const intercepted: ServerInterceptingCall = new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, admit) => {
            const request = new GrpcRequest(origin, metadata);
            const reply = new GrpcReply(intercepted, request);
            const timers = this.timers(origin.path, reply);
            arrived = () => clearTimeout(timers.message);
            const leave = this.slots.take(networkOf(request.ip));
            ended = () => {
              for (const timer of Object.values(timers)) clearTimeout(timer);
              leave?.();
              ended = () => undefined;
            };
            void this.admit(request, encodingOf(call), leave !== undefined).then(
              () => admit(metadata),
              (error: unknown) => this.refuse(reply, error),
            );
          },
          onReceiveMessage: (message, next) => {
            arrived();
            next(message);
          },
          onCancel: () => ended(),
        }),
    });
    return intercepted;
  }

  private timers(path: string, reply: GrpcReply): Record<'message' | 'call', NodeJS.Timeout | undefined> {
    const end = (what: string, ms: number) => {
      const seconds = String(ms / 1000);
      return setTimeout(() => {
        reply.failUnread(new ProtocolError('request-timeout', `${what} within ${seconds} s: call again`));
      }, ms);
    };
    const messageMs = Math.min(this.environment.requestTimeoutMs, MESSAGE_MS);
    return {
      message: end('no message arrived', messageMs),
      call: path === WATCH ? undefined : end('the call did not end', CALL_MS),
    };
  }

  private async admit(request: GrpcRequest, encoding: string, hasRoom: boolean): Promise<void> {
    if (encoding !== 'identity') {
      throw new ProtocolError('media-type', `messages of this service must not be compressed (${encoding})`);
    }
    if (!hasRoom) throw new ProtocolError('limit-exceeded', TOO_MANY, { retryAfterSeconds: 1 });
    await this.unauthenticated.admit(request);
  }

  private refuse(reply: GrpcReply, error: unknown): void {
    if (error instanceof ProtocolError) return reply.failUnread(error);
    this.logger.error('a call of a public gRPC service failed', { err: error });
    reply.failUnread(new ProtocolError('internal', 'the server could not take the call'));
  }
}
