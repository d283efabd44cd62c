import {
  answerJson,
  encodeHttpError,
  encodeRpcError,
  type Framing,
  HTTP_ROUTES,
  httpErrorWire,
  type HttpRoute,
  isMediaType,
  paramsOfQuery,
  paramsOfRoute,
  parseJsonBody,
  PROFILES,
  ProtocolError,
} from '@baton/a2a';
import { callerOf, LimitsService } from '@baton/identity';
import {
  Controller,
  Injectable,
  Module,
  Req,
  RequestMapping,
  RequestMethod,
  Res,
  type Type,
} from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { requestedVersion } from '../core/call-headers.js';
import { type AnswerWriter, CallHandler, type FrameWriter } from '../core/call-handler.js';
import { CoreModule } from '../core/core.module.js';
import { BodyReader } from '../http/body-reader.js';
import { isKnownCard, signedCardTag } from '../http/card-tags.js';
import { type ErrorFormat, type SendError, setErrorHeaders } from '../http/errors.js';
import { HttpModule } from '../http/http.module.js';
import { type HttpExchange, logContextOf } from '../http/requests.js';
import { sseFrames } from '../streams/sse-frames.js';

const A2A_TYPE = 'application/a2a+json';
const JSON_TYPE = 'application/json';

/** Writes the answer to one request in one version of the protocol. */
class HttpAnswer implements AnswerWriter {
  /** @param isCard whether the result is a card, which callers may keep and ask for again with its tag */
  constructor(
    private readonly version: string,
    private readonly exchange: HttpExchange,
    private readonly isCard = false,
  ) {}

  /** HTTP 200 with the result, or 304 if it is a card that the caller has. */
  result(result: unknown): void {
    const { request, reply } = this.exchange;
    const etag = this.isCard ? signedCardTag(result as object) : undefined;
    if (etag !== undefined && isKnownCard(etag, 'private', request, reply)) reply.status(304).send();
    else this.send(200, answerJson(result));
  }

  /** The error with its HTTP status and headers. */
  error(failure: ProtocolError): void {
    setErrorHeaders(this.exchange.reply, failure);
    this.send(httpErrorWire(failure.kind).http, this.encodeError(failure));
  }

  stream(framing: Framing): FrameWriter {
    return sseFrames(this.exchange.reply, framing, this);
  }

  encodeError(failure: ProtocolError): string {
    logContextOf(this.exchange.request).rpcError = encodeRpcError(failure).code;
    return answerJson(encodeHttpError(failure, this.version));
  }

  private send(status: number, json: string): void {
    const { request, reply } = this.exchange;
    const type = answerTypeFor(request, this.version);
    reply.status(status).header('content-type', `${type}; charset=utf-8`).send(json);
  }
}

/** The type that `Accept` names, or else that of the request, or else the version's own (A2A 1.0 §11.1, 0.3 §3.2.3). */
function answerTypeFor({ headers }: FastifyRequest, version: string): string {
  const own = version.startsWith('0.') ? JSON_TYPE : A2A_TYPE;
  const types = [own, ...[A2A_TYPE, JSON_TYPE].filter((type) => type !== own)];
  const names = (header: string | undefined, type: string): boolean =>
    header?.split(',').some((range) => isMediaType(range, type)) === true;
  return (
    types.find((type) => names(headers.accept, type)) ??
    types.find((type) => names(headers['content-type'], type)) ??
    own
  );
}

/**
 * Maps an HTTP+JSON request to an operation and back. If several things are wrong, the first of these is answered: URL and
 * HTTP method (404, 405), token (401), requests per second (429), tenant (404), media type (415), size (413), JSON (400),
 * version, params, and then what `CallResolver` checks.
 */
@Injectable()
class HttpJsonHandler {
  private readonly profile = PROFILES.spec;

  constructor(
    private readonly bodies: BodyReader,
    private readonly calls: CallHandler,
    private readonly limits: LimitsService,
  ) {}

  /** Answers one request. Never rejects: every failure becomes an answer, unless the caller has disconnected. */
  async handle(route: HttpRoute, exchange: HttpExchange): Promise<void> {
    const { codec, method } = route;
    const { request } = exchange;
    const { agent, tenant, ...ids } = request.params as Record<string, string>;
    const answer = new HttpAnswer(codec.version, exchange);
    const { profile } = this;
    logContextOf(request).rpcMethod = method;
    try {
      if (tenant !== undefined) await this.assertOwnTenant(tenant, request);
      const params = paramsOfRoute(route, ids, await this.paramsIn(route, request));
      profile.resolveVersion(requestedVersion(request), method);
      const call = codec.decode(method, params);
      const isCard = call.operation === 'getExtendedAgentCard';
      const writer = isCard ? new HttpAnswer(codec.version, exchange, isCard) : answer;
      await this.calls.answer({ profile, codec, call, pathAgent: agent, params }, exchange, writer);
    } catch (error) {
      this.calls.fail(error, exchange, answer);
    } finally {
      this.bodies.release(request);
    }
  }

  /** Only the caller's own tenant has a name here: no answer depends on whether another tenant exists. */
  private async assertOwnTenant(name: string, request: FastifyRequest): Promise<void> {
    if (await this.limits.isNamed(callerOf(request).tenantId, name)) return;
    throw new ProtocolError(
      'not-found',
      `Tenant not found: ${name}: name your own by its slug or id, or leave it out of the path`,
    );
  }

  private async paramsIn({ params }: HttpRoute, request: FastifyRequest): Promise<unknown> {
    if (params === 'query') return paramsOfQuery(request.query as object);
    const text = await this.bodies.text(request, this.profile.bodyLimit);
    return params === 'optional-body' && text.trim() === '' ? undefined : parseJsonBody(text);
  }
}

const errorFormatOf =
  (version: string): SendError =>
  (request, reply, failure) =>
    new HttpAnswer(version, { request, reply }).error(failure);

/** A controller for one route. */
function controllerFor(route: HttpRoute): Type {
  const config: ErrorFormat = { sendError: errorFormatOf(route.codec.version) };

  @Controller()
  class HttpJsonController {
    constructor(private readonly handler: HttpJsonHandler) {}

    @RequestMapping({ method: RequestMethod[route.verb], path: route.path })
    @RouteConfig(config)
    handle(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
      return this.handler.handle(route, { request, reply });
    }
  }
  return HttpJsonController;
}

/** The form of errors for a path below an agent that has no route, because a name in it cannot be decoded. */
export function httpJsonErrorFormatAt({ url }: FastifyRequest): SendError | undefined {
  const [, below] = /^\/+agents\/+[^/?]+\/+([^/?]+)/.exec(url) ?? [];
  if (below === undefined || below === '.well-known') return undefined;
  return errorFormatOf(below === 'v1' ? '0.3' : '1.0');
}

/** A2A over HTTP+JSON, below each agent. */
@Module({
  imports: [CoreModule, HttpModule],
  controllers: HTTP_ROUTES.map(controllerFor),
  providers: [HttpJsonHandler],
})
export class HttpJsonModule {}
