import {
  answerJson,
  type Codec,
  type Envelope,
  type Framing,
  errorWire,
  encodeRpcError,
  encodeErrorEnvelope,
  encodeEnvelope,
  envelopeAround,
  type RpcId,
  EnvelopeError,
  type Profile,
  ProtocolError,
  type RpcPath,
  assertEnvelopeId,
  decodeEnvelope,
  profileFor,
  readsOnlyStreams,
  rpcPaths,
  sseRecord,
} from '@baton/a2a';
import { Controller, Injectable, Module, Param, Post, Req, Res, type Type } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AllowGuests } from '../access/route-access.js';
import { requestedVersion } from '../core/call-headers.js';
import { type AnswerWriter, CallHandler, type FrameWriter } from '../core/call-handler.js';
import { CoreModule } from '../core/core.module.js';
import { BodyReader, RPC_TYPES } from '../http/body-reader.js';
import { type ErrorFormat, type SendError, setErrorHeaders } from '../http/errors.js';
import { HttpModule } from '../http/http.module.js';
import { type HttpExchange, logContextOf } from '../http/requests.js';
import { sseFrames } from '../streams/sse-frames.js';
import { Describe } from '../openapi/route.js';
import { rpcAnswerSchema, rpcRequestSchema } from '../openapi/schemas.js';

const JSON_TYPE = 'application/json; charset=utf-8';

/** The known parts of a request. They decide the form of an error. */
interface KnownRequest {
  readonly id: RpcId;
  /** The profile of the path, and then of the method, where several share the path. */
  readonly profile: Profile;
  /** Set when the method is known. Its version wins over the `A2A-Version` header. */
  readonly codec?: Codec | undefined;
  /** Whether an error before the first frame of a stream is a frame (`Framing.earlyError`). */
  readonly inFrame?: boolean;
}

/** Writes the answer to one JSON-RPC request. Immutable: `with` returns a copy with more members. */
class RpcAnswer implements AnswerWriter {
  private constructor(
    readonly exchange: HttpExchange,
    private readonly known: KnownRequest,
  ) {}

  /** The answer when only the path is known. */
  static at(path: RpcPath, exchange: HttpExchange): RpcAnswer {
    return new RpcAnswer(exchange, { id: null, profile: profileFor(path) });
  }

  with(known: Partial<KnownRequest>): RpcAnswer {
    return new RpcAnswer(this.exchange, { ...this.known, ...known });
  }

  /** HTTP 200 with `result`. */
  result(result: unknown): void {
    const { reply } = this.exchange;
    const json = answerJson(encodeEnvelope(this.known.id, result));
    reply.status(200).header('content-type', JSON_TYPE).send(json);
  }

  /** HTTP 204: the answer to a notification. */
  none(): void {
    this.exchange.reply.status(204).send();
  }

  /**
   * The error with its HTTP status and headers: as plain JSON, or as the only frame of a stream. With the status of
   * an error, no client reads frames.
   */
  error(failure: ProtocolError): void {
    const { reply } = this.exchange;
    const { codec, inFrame, profile } = this.known;
    const { http } = errorWire(failure.kind, profile.errors);
    const text = this.encodeError(failure);
    setErrorHeaders(reply, failure);
    reply.status(http);
    if (inFrame && http === 200) {
      const record = sseRecord(text, { event: codec?.framing.errorEvent });
      reply.headers({ 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }).send(record);
    } else reply.header('content-type', JSON_TYPE).send(text);
  }

  stream(framing: Framing): FrameWriter {
    return sseFrames(this.exchange.reply, framing, this);
  }

  /** The JSON of a frame of a stream. */
  envelope(resultJson: string): string {
    return envelopeAround(this.known.id, resultJson);
  }

  /** The JSON of an error, also of the frame that ends a stream that failed. */
  encodeError(failure: ProtocolError): string {
    const error = encodeRpcError(failure, this.known.profile.errors, this.version());
    logContextOf(this.exchange.request).rpcError = error.code;
    const id = failure instanceof EnvelopeError ? failure.id : this.known.id;
    return answerJson(encodeErrorEnvelope(id, error));
  }

  private version(): string {
    const { codec, profile } = this.known;
    if (codec) return codec.version;
    try {
      return profile.resolveVersion(requestedVersion(this.exchange.request));
    } catch {
      return '1.0';
    }
  }
}

/** A call whose envelope has been read. */
interface RpcCall {
  readonly envelope: Envelope;
  readonly profile: Profile;
  readonly codec: Codec | undefined;
  /** The agent as the path names it. */
  readonly pathAgent: string | undefined;
}

/**
 * Maps a JSON-RPC request to an operation and back, for every profile. If several things are wrong, the first of these
 * is answered: URL and HTTP method (404, 405), token (401), requests per second (429), media type (415), size (413),
 * JSON and envelope (-32700, -32600), version (-32009), method (-32601), params (-32602), and then what `CallResolver`
 * checks. The envelope comes before the version, so that every error from there on carries the caller's id; a profile
 * may check the version right after the token.
 */
@Injectable()
class RpcHandler {
  constructor(
    private readonly bodies: BodyReader,
    private readonly calls: CallHandler,
  ) {}

  /** Answers one request. Never rejects: every failure becomes an answer, unless the caller has disconnected. */
  async handle(path: RpcPath, pathAgent: string | undefined, exchange: HttpExchange): Promise<void> {
    const { request } = exchange;
    // It has more members after each step. The form of an error depends on the part of the request that was read.
    let answer = RpcAnswer.at(path, exchange);
    try {
      const envelope = await this.readEnvelope(profileFor(path), request);
      const profile = profileFor(path, envelope.method);
      answer = answer.with({ id: envelope.id, profile });
      assertEnvelopeId(profile, envelope);
      const codec = profile.codecFor(envelope.method);
      const isFramed = codec?.framing.earlyError === 'frame' && codec.isStreaming(envelope.method);
      answer = answer.with({ codec, inFrame: isFramed && readsOnlyStreams(request.headers.accept) });
      await this.answer({ envelope, profile, codec, pathAgent }, answer);
    } catch (error) {
      this.calls.fail(error, exchange, answer);
    } finally {
      this.bodies.release(request);
    }
  }

  private async readEnvelope(profile: Profile, request: FastifyRequest): Promise<Envelope> {
    if (profile.versionCheck === 'before-body') profile.resolveVersion(requestedVersion(request));
    const envelope = decodeEnvelope(await this.bodies.text(request, profile.bodyLimit));
    logContextOf(request).rpcMethod = envelope.method.slice(0, 64);
    return envelope;
  }

  private async answer({ envelope, profile, codec, pathAgent }: RpcCall, answer: RpcAnswer): Promise<void> {
    const { exchange } = answer;
    const { method, params } = envelope;
    profile.resolveVersion(requestedVersion(exchange.request), method);
    if (!codec) throw ProtocolError.methodNotFound(method);
    const decoded = { profile, codec, call: codec.decode(method, params), pathAgent, params };
    // A request without an id is a notification. It gets no result, but errors (JSON-RPC 2.0 §4.1).
    await this.calls.answer(decoded, exchange, envelope.hasId ? answer : undefined);
    if (!envelope.hasId) answer.none();
  }
}

/** Every path that takes JSON-RPC; the profiles declare them. */
const RPC_PATHS: readonly RpcPath[] = rpcPaths();

/** A controller for one path. */
function controllerAt(path: RpcPath): Type {
  const config: ErrorFormat = { sendError: errorFormatOf(path) };

  @Controller(path.path)
  class JsonRpcController {
    constructor(private readonly handler: RpcHandler) {}

    @Describe({
      id: `callAgentAt${path.path.replaceAll(/:\w+|^\/v1/g, '').replaceAll(/\W+(\w?)/g, (_, first: string) => first.toUpperCase())}`,
      summary:
        "Calls an agent by JSON-RPC 2.0 (A2A). The method's operation says which scopes it needs. Methods that stream answer " +
        'with server-sent events',
      body: rpcRequestSchema(path.profiles.flatMap(({ methods }) => methods)),
      bodyTypes: RPC_TYPES,
      answer: rpcAnswerSchema,
      answerTypes: ['application/json', 'text/event-stream'],
      // A notification has no answer.
      statuses: path.profiles.some(({ absentId }) => absentId === 'notification') ? [200, 204] : [200],
      errors: rpcAnswerSchema,
    })
    @Post()
    @RouteConfig(config)
    handle(
      @Param('agent') agent: string | undefined,
      @Req() request: FastifyRequest,
      @Res() reply: FastifyReply,
    ): Promise<void> {
      return this.handler.handle(path, agent, { request, reply });
    }
  }
  // Guests may call only the root of a host.
  if (path.path === '/') AllowGuests()(JsonRpcController);
  return JsonRpcController;
}

const errorFormatOf =
  (path: RpcPath): SendError =>
  (request, reply, failure) =>
    RpcAnswer.at(path, { request, reply }).error(failure);

/**
 * The form of errors for a path without a route, because a name in it cannot be decoded. The beginning of the path
 * decides.
 */
export function rpcErrorFormatAt({ method, url }: FastifyRequest): SendError | undefined {
  if (method !== 'POST') return undefined;
  const path = RPC_PATHS.find(
    ({ path }) => path.includes(':') && url.startsWith(path.slice(0, path.indexOf(':'))),
  );
  return path && errorFormatOf(path);
}

/** A2A in JSON-RPC, at the paths of every profile. */
@Module({
  imports: [CoreModule, HttpModule],
  controllers: RPC_PATHS.map(controllerAt),
  providers: [RpcHandler],
})
export class JsonRpcModule {}
