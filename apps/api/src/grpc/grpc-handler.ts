import { type GrpcMethod, PROFILES, ProtocolError, RESUME_EXTENSION, shortened } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { callerOf, type LimitsService } from '@baton/identity';
import type { Logger, Metrics } from '@baton/telemetry';
import type { DescMethod } from '@bufbuild/protobuf';
import type { Metadata, ServerInterceptingCall } from '@grpc/grpc-js';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import type { AccessGuard, HostCaller } from '../access/access.guard.js';
import { AllowGuests } from '../access/route-access.js';
import type { UnauthenticatedLimit } from '../access/unauthenticated-limit.js';
import { requestedVersion } from '../core/call-headers.js';
import type { CallHandler } from '../core/call-handler.js';
import { tooLarge } from '../http/body-reader.js';
import { holderOf } from '../http/holder-of.js';
import type { UnreadAnswers } from '../http/unread-answers.js';
import type { ConnectionLimit } from '../http/connection-limit.js';
import type { BodyLease } from '../http/body-lease.js';
import type { BodyMemoryPool } from '../http/body-memory-pool.js';
import type { LoopTurns } from '../http/loop-turns.js';
import type { UnstoredBodies } from '../http/unstored-bodies.js';
import type { Failures } from '../http/failures.js';
import { logContextOf, requestRecorder } from '../http/requests.js';
import { InFlightRequests } from '../http/in-flight-requests.js';
import { type Encode, GrpcAnswer } from './grpc-answer.js';
import { GrpcReply } from './grpc-reply.js';
import { type CallOrigin, GrpcRequest } from './grpc-request.js';
import { decodeMessage, encodeMessage } from './protobuf.js';

/** The limit of Node's HTTP server. */
const MAX_METADATA_BYTES = 16 * 1024;

/** Names the agent of a call, by slug or id. */
const AGENT_KEY = 'baton-agent';

/** Key of an event's sequence in its metadata. Only callers that ask for the extension get it. */
const SEQUENCE_KEY = `${RESUME_EXTENSION.uri}/sequence`;

/** A gRPC call and the reply to it. */
export interface GrpcExchange {
  readonly request: GrpcRequest;
  readonly reply: GrpcReply;
  /** The memory that is reserved for its message while it arrives. */
  memory?: BodyLease;
  /** Must be called when the whole message has arrived. */
  received(): void;
  /** Its message is being handled. Before, the message is discarded if the caller disconnects. */
  isHandled?: boolean;
}

/** Services for both the gRPC port and the HTTP port. */
export interface SharedServices {
  environment: Environment;
  logger: Logger;
  metrics: Metrics;
  inFlight: InFlightRequests;
  failures: Failures;
  limits: LimitsService;
  bodyMemory: BodyMemoryPool;
  unstored: UnstoredBodies;
  turns: LoopTurns;
  connections: ConnectionLimit;
  unread: UnreadAnswers;
  guard: AccessGuard;
  unauthenticated: UnauthenticatedLimit;
  calls: CallHandler;
}

/** Declares who may make an RPC: callers with a token, and guests at a public host, as over HTTP at the root of a host. */
@AllowGuests()
class GrpcEndpoint {}

/** A handler without declarations of its own. */
const anyRpc = (): void => undefined;

/**
 * Maps gRPC calls to operations and back. If several things are wrong, the first of these is answered: metadata too
 * large, token, requests per second, size, protocol buffers, version, params, and then what `CallResolver` checks. The token
 * is checked before the message is read.
 */
export class GrpcHandler {
  private readonly record: ReturnType<typeof requestRecorder>;

  constructor(private readonly shared: SharedServices) {
    this.record = requestRecorder(shared.logger, shared.metrics);
  }

  /** Begins a call: it is counted while it is open, and logged at its end. */
  begin(origin: CallOrigin, metadata: Metadata, call: ServerInterceptingCall): GrpcExchange {
    const { inFlight, environment } = this.shared;
    const request = new GrpcRequest(origin, metadata);
    const reply = new GrpcReply(call, request);
    const startedAt = performance.now();
    const { requestTimeoutMs: ms } = environment;
    const late = setTimeout(() => {
      reply.failUnread(
        new ProtocolError(
          'request-timeout',
          `the message did not arrive within ${String(ms)} ms: send it again`,
        ),
      );
    }, ms);
    inFlight.began();
    reply.raw.once('close', () => {
      clearTimeout(late);
      inFlight.ended();
      const { httpStatus: status } = reply;
      const isAnswered = reply.raw.writableFinished;
      this.record(request, { startedAt, url: origin.path, status, isAnswered });
    });
    const exchange: GrpcExchange = {
      request,
      reply,
      received: () => {
        clearTimeout(late);
        // The call may last for hours, as a stream.
        exchange.memory?.end();
      },
    };
    return exchange;
  }

  /** Resolves with whether the caller may call. If not, the call is answered. Never rejects. */
  async admit(exchange: GrpcExchange): Promise<boolean> {
    const { request, reply } = exchange;
    const { inFlight, guard, failures } = this.shared;
    try {
      if (inFlight.draining) {
        throw new ProtocolError('unavailable', 'this server is shutting down: send the request again');
      }
      assertMetadata(request);
      await guard.canActivate(new ExecutionContextHost([request, reply], GrpcEndpoint, anyRpc));
      return !reply.raw.destroyed;
    } catch (error) {
      reply.fail(failures.toProtocolError(error, request));
      return false;
    }
  }

  /** Resolves when the complete message may be decoded. */
  async waitForTurn(exchange: GrpcExchange | undefined): Promise<void> {
    if (!exchange?.memory) return;
    const { request, reply, memory } = exchange;
    const { turns, unstored } = this.shared;
    await unstored.hold(request, memory.holder, memory.bytes);
    const giveUp = (): void => {
      if (!exchange.isHandled) unstored.release(request);
    };
    if (reply.raw.destroyed) giveUp();
    else reply.raw.once('close', giveUp);
    await turns.take(memory.holder, memory.bytes);
  }

  /**
   * Counts the bytes of a message as they arrive. If there is no memory for more, the call ends.
   * @param reserved bytes that the message may have beside those that arrive, because it is compressed
   */
  countBytes(exchange: GrpcExchange, reserved: number): (bytes: number) => void {
    const { request, reply } = exchange;
    const onRefused = (refusal: ProtocolError): void => reply.failUnread(refusal);
    const lease = this.shared.bodyMemory.lease(holderOf(request), onRefused);
    exchange.memory = lease;
    reply.raw.once('close', () => lease.end());
    lease.take(reserved);
    return (bytes) => lease.take(bytes);
  }

  /** Answers a call that was admitted. Never rejects. */
  async handle(
    rpc: GrpcMethod,
    { input, output }: DescMethod,
    exchange: GrpcExchange,
    bytes: Buffer,
  ): Promise<void> {
    const { codec, method } = rpc;
    const { request, reply } = exchange;
    const { calls, unstored } = this.shared;
    exchange.isHandled = true;
    const profile = PROFILES.spec;
    const hasSequences = String(request.headers['a2a-extensions']).includes(RESUME_EXTENSION.uri);
    const encode: Encode = (json, sequence) =>
      encodeMessage(output, hasSequences && sequence !== undefined ? withSequence(json, sequence) : json);
    const answer = new GrpcAnswer(reply, encode);
    logContextOf(request).rpcMethod = method;
    try {
      await this.assertSize(bytes, request);
      const { tenant, ...json } = decodeMessage(input, bytes);
      const params = rpc.params(json);
      profile.resolveVersion(requestedVersion(request), method);
      const call = codec.decode(method, params);
      const pathAgent = agentOf(request, tenant);
      await calls.answer({ profile, codec, call, pathAgent, params }, exchange, answer);
    } catch (error) {
      calls.fail(error, exchange, answer);
    } finally {
      unstored.release(request);
    }
  }

  /** grpc-js has already refused messages that are too large for every tenant. */
  private async assertSize(bytes: Buffer, request: GrpcRequest): Promise<void> {
    const { bodyBytes } = await this.shared.limits.get(callerOf(request).tenantId);
    if (bodyBytes !== null && bytes.length > bodyBytes)
      throw tooLarge({ bytes: bodyBytes, name: 'bodyBytes' });
  }
}

/** @throws ProtocolError `too-large`: a call has more metadata than Node would take as headers */
function assertMetadata({ headers }: GrpcRequest): void {
  const bytes = Object.entries(headers).reduce(
    (sum, [key, value]) => sum + key.length + String(value).length,
    0,
  );
  if (bytes <= MAX_METADATA_BYTES) return;
  throw new ProtocolError(
    'too-large',
    `the metadata is larger than ${String(MAX_METADATA_BYTES)} bytes: send less, or large values in the message`,
    { metadata: { limitBytes: String(MAX_METADATA_BYTES) } },
  );
}

/**
 * The agent that a call names: by the metadata `baton-agent`, by `tenant` of a request of 1.0, as cards say, or by its host
 * name. Undefined: the default agent of the tenant. Guests reach only the agent of their host.
 */
function agentOf(request: GrpcRequest, tenant: unknown): string | undefined {
  const { hostAgent, principal }: HostCaller = callerOf(request);
  const inMetadata = request.headers[AGENT_KEY];
  const named = typeof inMetadata === 'string' && inMetadata !== '' ? inMetadata : tenant;
  if (typeof named !== 'string' || named === '') return hostAgent;
  if (principal.kind === 'guest' && named !== hostAgent) {
    const shown = shortened(named, 64);
    throw new ProtocolError('agent-not-found', `Agent not found: ${shown}`, { metadata: { agent: shown } });
  }
  return named;
}

/** A frame whose event has its sequence in its metadata. */
function withSequence(frame: unknown, sequence: number): unknown {
  const members = Object.entries(frame as Record<string, { metadata?: object }>);
  return Object.fromEntries(
    members.map(([member, event]) => [
      member,
      { ...event, metadata: { ...event.metadata, [SEQUENCE_KEY]: sequence } },
    ]),
  );
}
