import type { ErrorKind, OperationName } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { histogram, type Logger, type Metrics } from '@baton/telemetry';
import { InFlightRequests } from './in-flight-requests.js';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { LingeringResponse } from './lingering-response.js';

/** For a stream: the time to its first frame. */
const REQUEST_DURATION = histogram(
  'baton_request_duration_seconds',
  'Duration of HTTP requests; of a stream, the time to its first frame',
  ['route', 'method', 'status'],
);

/** For a stream: the time to its first frame. Operations and kinds of errors are few, whatever a caller writes. */
const CALL_DURATION = histogram(
  'baton_call_duration_seconds',
  'Duration of calls of A2A operations in any binding; of a stream, the time to its first frame',
  ['operation', 'error'],
);

/** A request as the guard and the core read it: one of Fastify, or a gRPC call, whose metadata are its headers. */
export interface CallRequest {
  readonly id: string;
  readonly ip: string;
  readonly method: string;
  readonly headers: IncomingHttpHeaders;
  readonly params: unknown;
  readonly query: unknown;
  readonly host: string;
  readonly protocol: string;
  readonly socket: { readonly localPort?: number };
  /** It has come to the gRPC port: the port in `host` is not one of HTTP. */
  readonly isGrpc?: boolean;
  readonly routeOptions: { readonly url?: string };
}

/** Whether the caller has sent a token, whatever it is. */
export const hasToken = ({ headers }: Pick<CallRequest, 'headers'>): boolean =>
  headers.authorization !== undefined;

/** The way back to the caller, as far as the core needs it. */
export interface CallReply {
  /** Adds headers to the answer. */
  headers(headers: Record<string, string>): unknown;
  /** The core will not answer: the caller has disconnected. */
  hijack(): unknown;
  readonly raw: AnswerChannel;
}

/** A request and the reply to it, in any protocol. */
export interface Exchange {
  readonly request: CallRequest;
  readonly reply: CallReply;
}

/** An HTTP request and the reply to it. */
export interface HttpExchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** What carries an answer. It is closed when the answer is sent, or the caller has disconnected. */
export interface AnswerChannel {
  readonly destroyed: boolean;
  /** Whether the whole answer was sent. */
  readonly writableFinished: boolean;
  once(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

/** Fields of a request's log line besides method, route, status and duration. Filled in as they become known. */
export interface RequestLogContext {
  tenantId?: string;
  /** Slug. */
  tenant?: string;
  /** Slug. */
  agent?: string;
  taskId?: string;
  /** Trace that the request belongs to, if its caller has sent one or Baton sends traces. */
  traceId?: string;
  /** Span of the request, or of the caller if Baton sends no traces. */
  spanId?: string;
  runId?: string;
  /** The JSON-RPC method, or the one that does the same as a route of HTTP+JSON or an RPC of gRPC. */
  rpcMethod?: string;
  /** The operation that the method stands for. Only in the metrics. */
  operation?: OperationName;
  /** Kind of the error of the answer. Only in the metrics. */
  errorKind?: ErrorKind;
  /** What the two ids are from. Only in the metrics. */
  traceparent?: string;
  /** JSON-RPC error code of the answer, in every binding. */
  rpcError?: number;
  /** The status of a gRPC call that failed. */
  grpcStatus?: string;
  /** The limit of the tenant that the request was refused for. */
  limit?: string;
  /** How a stream ended. */
  stream?: string;
  /** Sequence of the last frame of a stream. */
  lastSequence?: number;
  /** When a stream's headers went out; its duration in the metrics ends here. */
  streamedAt?: number;
}

const contexts = new WeakMap<CallRequest, RequestLogContext>();

/** The context of a request: always the same object. */
export function logContextOf(request: CallRequest): RequestLogContext {
  let context = contexts.get(request);
  if (!context) {
    context = {};
    contexts.set(request, context);
  }
  return context;
}

/** A valid request id of a caller or a proxy: short, and harmless in a log line or a header. */
const SANE_ID = /^[\w.:/+=-]{1,128}$/;

/** The id of a request: the caller's `x-request-id` if it is sane, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && SANE_ID.test(given) ? given : randomUUID();
}

/** Probes call these every few seconds. Their log lines are `debug`, so that they do not hide the others. */
const QUIET_ROUTES: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/**
 * For every request: `x-request-id` on the answer, one log line, its duration in the metrics, and a place in
 * `inFlight`. The response's `close` is what ends a request, because it also comes when the caller has left.
 */
export function logRequests(
  instance: FastifyInstance,
  logger: Logger,
  metrics: Metrics,
  inFlight: InFlightRequests,
): void {
  const record = requestRecorder(logger, metrics);
  instance.addHook('onRequest', (request, reply, done) => {
    const startedAt = performance.now();
    reply.header('x-request-id', request.id);
    inFlight.began();
    reply.raw.once('close', () => {
      inFlight.ended();
      const { statusCode: status, writableFinished } = reply.raw;
      const answeredAt = reply.raw instanceof LingeringResponse ? reply.raw.answeredAt : undefined;
      const isAnswered = writableFinished || answeredAt !== undefined;
      record(request, { startedAt, answeredAt, url: request.url, status, isAnswered });
    });
    done();
  });
}

/** How a request ended. */
export interface RequestEnd {
  /** Time by `performance.now()`. */
  startedAt: number;
  /** When the answer was sent, if the caller continued to send after that. */
  answeredAt?: number | undefined;
  url: string;
  /** HTTP status. For a gRPC call: the HTTP status that its status maps to. */
  status: number;
  /** False: the caller has disconnected before the answer was sent. */
  isAnswered: boolean;
}

/** Observes the durations of requests that have ended, and writes their log lines. */
export function requestRecorder(
  logger: Logger,
  metrics: Metrics,
): (request: CallRequest, end: RequestEnd) => void {
  const durations = metrics.get(REQUEST_DURATION);
  const calls = metrics.get(CALL_DURATION);
  return (request, end) => {
    const endedAt = end.answeredAt ?? performance.now();
    const { streamedAt = endedAt, limit, operation, errorKind, traceparent } = logContextOf(request);
    const { startedAt, status } = end;
    const labels = {
      route: request.routeOptions.url ?? 'none',
      method: request.method,
      status: String(status),
    };
    const seconds = (streamedAt - startedAt) / 1000;
    durations.observe(labels, seconds, traceparent);
    if (operation) calls.observe({ operation, error: errorKind ?? 'none' }, seconds, traceparent);
    if (limit !== undefined) metrics.limitExceeded.inc({ limit });
    // Other listeners for the end of this request may still add fields.
    if (logger.isEnabled('info')) setImmediate(writeLine, logger, request, end, endedAt - startedAt);
  };
}

function writeLine(logger: Logger, request: CallRequest, end: RequestEnd, ms: number): void {
  const { streamedAt: _, operation: __, errorKind: ___, traceparent: ____, ...notes } = logContextOf(request);
  const line = {
    requestId: request.id,
    method: request.method,
    // Without the query: it may contain a token by mistake.
    path: end.url.split('?', 1)[0],
    status: end.status,
    ms: Math.round(ms * 10) / 10,
    ...(end.isAnswered ? {} : { callerLeft: true }),
    ...notes,
  };
  if (QUIET_ROUTES.has(request.routeOptions.url ?? '')) logger.debug('request', line);
  else logger.info('request', line);
}

/** A year, as the lists of HTTPS-only hosts in browsers require. */
const HSTS_SECONDS = 365 * 24 * 60 * 60;
/** How long a browser may keep the answer to a preflight, in seconds. Chrome keeps none for longer. */
const PREFLIGHT_SECONDS = 7_200;

/**
 * Headers with which browsers treat an answer as data only. They do not come from @fastify/helmet: no hook sees a path that the
 * router cannot read, or bytes that are no request. Those answers have them, too.
 */
export function securityHeaders({
  publicUrl,
}: Pick<Environment, 'publicUrl'>): Readonly<Record<string, string>> {
  return {
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    // Only behind a proxy with TLS, and for this host alone: its subdomains are not ours.
    ...(publicUrl.startsWith('https:') && { 'strict-transport-security': `max-age=${String(HSTS_SECONDS)}` }),
  };
}

/**
 * Sets the headers of every answer, streams and errors included.
 *
 * Answers may hold a tenant's data, so caches do not store them. A route whose answer may be stored, such as a card, sets its own header. Answers to
 * POST need no such header: without a lifetime of their own they are never stored (RFC 9110 §9.3.3).
 */
export function setAnswerHeaders(instance: FastifyInstance, headers: Readonly<Record<string, string>>): void {
  const unstored = { ...headers, 'cache-control': 'no-store' };
  instance.addHook('onRequest', (request, reply, done) => {
    reply.headers(request.method === 'POST' ? headers : unstored);
    done();
  });
}

/** Lets the scripts of these origins call the API and read its answers (CORS). `*` is every origin. */
export function allowOrigins(app: NestFastifyApplication, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const isAny = origins.includes('*');
  app.enableCors({
    origin: isAny ? '*' : [...origins],
    // For the cookie of a guest. Browsers send it to no wildcard.
    credentials: !isAny,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowedHeaders: [
      'Accept',
      'Authorization',
      'Content-Type',
      'A2A-Version',
      'A2A-Extensions',
      'X-A2A-Extensions',
      'Last-Event-ID',
      'Idempotency-Key',
      'If-Match',
      'If-None-Match',
      'traceparent',
      'tracestate',
      // Tracers of web pages send it beside `traceparent`.
      'baggage',
      'X-Request-Id',
      'Baton-Guest',
      'Baton-Agent-Label',
      'MCP-Protocol-Version',
      'Mcp-Method',
      'Mcp-Name',
    ],
    exposedHeaders: [
      'A2A-Extensions',
      'X-A2A-Extensions',
      'ETag',
      'Location',
      'Retry-After',
      'WWW-Authenticate',
      'X-Request-Id',
    ],
    maxAge: PREFLIGHT_SECONDS,
    // Our own OPTIONS routes answer, with the methods that the path has.
    preflightContinue: true,
    strictPreflight: false,
  });
}

/** Adds headers of the request to `Vary`, which lists those that the answer depends on. */
export function vary(reply: FastifyReply, ...names: readonly string[]): void {
  const before = reply.getHeader('vary');
  reply.header('vary', [...(before === undefined ? [] : [String(before)]), ...names].join(', '));
}
