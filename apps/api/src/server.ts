import { Environment } from '@baton/config';
import { Logger, Metrics, NestLogger } from '@baton/telemetry';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HTTPMethods,
  RouteOptions,
} from 'fastify';
import { allowOrigins, securityHeaders, setAnswerHeaders } from './http/answer-headers.js';
import { limitConnections, openFilesLimit } from './http/connection-limit.js';
import { Connections } from './http/connections.js';
import { refusePath, sendPlainError } from './http/errors.js';
import { GrpcPort } from './grpc/grpc.module.js';
import { PublicUrl } from './http/public-url.js';
import { Traffic, logRequests, requestIdOf } from './http/requests.js';
import { ConsoleSite } from './console/console-site.js';
import { isBrowser, sendToConsole, sendWelcome } from './http/welcome.js';
import { httpJsonErrorFormatAt } from './http-json/http-json.controller.js';
import { rpcErrorFormatAt } from './json-rpc/json-rpc.controller.js';
import { isManagement, LISTENER_CONSTRAINT, ManagementPort } from './management/management-port.js';
import { EventStreams } from './streams/event-stream.js';

/** Longer than proxies keep their side open, so that a kept connection is never closed under a request. */
const KEEP_ALIVE_MS = 75_000;
/** After this time the server asks whether the peer of a silent connection is there; ten seconds later it closes it. */
const PROBE_MS = 30_000;
/** `BodyReader` refuses a slow body in the caller's protocol. Node's own limit comes this much later. */
const BODY_READER_MS = 5_000;
/** How long the last answers of a shutdown may take to reach their callers. */
const FLUSH_MS = 500;

const METHODS: readonly HTTPMethods[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Fastify as this server needs it. Timeouts are about requests: an open stream has none. */
export function createFastifyAdapter(environment: Environment): FastifyAdapter {
  const requestTimeout = environment.requestTimeoutMs + BODY_READER_MS;
  const headersTimeout = Math.min(environment.headersTimeoutMs, requestTimeout);
  const headers = securityHeaders(environment);
  const connections = new Connections(headers);
  const adapter = new FastifyAdapter({
    logger: false,
    // There is no middleware of Nest.
    skipMiddie: true,
    genReqId: requestIdOf,
    requestIdHeader: false,
    // Without proxies, what a caller sends as `X-Forwarded-For` says nothing.
    trustProxy: environment.trustedProxies.length > 0 && [...environment.trustedProxies],
    bodyLimit: environment.bodyLimitBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout,
    connectionTimeout: 0,
    clientErrorHandler: connections.refuse,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      reply.headers(headers);
      refusePath(request, reply, error, httpJsonErrorFormatAt(request) ?? rpcErrorFormatAt(request));
    },
    http: {
      headersTimeout,
      requestTimeout,
      // We refuse it ourselves: Node would answer without a body.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(headersTimeout / 4, 5_000),
      keepAlive: true,
      keepAliveInitialDelay: PROBE_MS,
    },
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 256 },
  });
  const instance = adapter.getInstance<FastifyInstance>();
  instance.addConstraintStrategy(LISTENER_CONSTRAINT);
  setAnswerHeaders(instance, headers);
  connections.install(instance);
  // Controllers read bodies themselves, after the guard: see BodyReader.
  instance.removeAllContentTypeParsers();
  instance.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined));
  // To look for that parser takes as long as all hooks.
  for (const method of METHODS) instance.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  return adapter;
}

/** Installs what stands around the modules of an API application. Call it before `listen`. */
export function prepareApi(app: NestFastifyApplication): void {
  const instance: FastifyInstance = app.getHttpAdapter().getInstance();
  const logger = app.get(Logger);
  app.useLogger(new NestLogger(logger));
  allowOrigins(app, app.get(Environment).corsOrigins);
  const traffic = app.get(Traffic, { strict: false });
  logRequests(instance, logger, app.get(Metrics), traffic);
  refuseWhileDraining(instance, traffic);
  refuseWithoutHost(instance);
}

/** Where a server listens. */
export interface Listening {
  /** The URL under which callers reach it. */
  url: string;
  /** The URL of its management port, if it has one. */
  managementUrl: string | undefined;
  /** Its gRPC port, if it has one. */
  grpcPort: number | undefined;
}

/** Listens as the environment says, on the public, the gRPC and the management port. */
export async function listen(app: NestFastifyApplication): Promise<Listening> {
  const { host, port } = app.get(Environment);
  const fastify: FastifyInstance = app.getHttpAdapter().getInstance();
  const routes = collectRoutes(fastify);
  await app.init();
  const site = app.get(ConsoleSite, { strict: false });
  for (const route of [...routes.values()]) refuseOtherMethods(fastify, route, site);
  limitConnections(app.getHttpServer(), openFilesLimit(), app.get(Logger));
  await fastify.listen({ host, port });
  const [address] = fastify.addresses();
  const publicUrl = app.get(PublicUrl, { strict: false });
  const grpcPort = await app.get(GrpcPort, { strict: false }).open();
  if (typeof address === 'object') publicUrl.listening(address.port, grpcPort);
  const managementUrl = await app.get(ManagementPort, { strict: false }).open(fastify);
  return { url: publicUrl.value, managementUrl, grpcPort };
}

/**
 * Leave without breaking anything off: take no new connections, end streams so that their callers resume
 * elsewhere, wait for the calls in flight, have those that still block answer with what they have, close.
 */
export async function shutDown(app: NestFastifyApplication): Promise<void> {
  const traffic = app.get(Traffic, { strict: false });
  const logger = app.get(Logger);
  const server = app.getHttpServer();
  traffic.draining = true;
  server.close();
  server.closeIdleConnections();
  app.get(GrpcPort, { strict: false }).drain();
  app.get(EventStreams, { strict: false }).closeAll();
  if (!(await traffic.idle(app.get(Environment).apiGraceMs))) {
    traffic.hurry();
    if (!(await traffic.idle(FLUSH_MS))) logger.warn('the shutdown ended some calls early');
  }
  server.closeAllConnections();
  await app.close();
}

/** During a shutdown requests of callers still come in over open connections. They are sent elsewhere. */
function refuseWhileDraining(instance: FastifyInstance, traffic: Traffic): void {
  instance.addHook('onRequest', (request, reply, done) => {
    if (!traffic.draining || isManagement(request.raw)) {
      done();
      return;
    }
    reply.headers({ connection: 'close', 'retry-after': '1' });
    sendPlainError(reply, 503, 'this server is shutting down: send the request again');
  });
}

/** HTTP/1.1 requires a host (RFC 9112 §3.2). */
function refuseWithoutHost(instance: FastifyInstance): void {
  instance.addHook('onRequest', ({ raw }, reply, done) => {
    if (raw.headers.host !== undefined || raw.httpVersion !== '1.1') {
      done();
      return;
    }
    reply.header('connection', 'close');
    sendPlainError(reply, 400, 'the request has no Host header, which HTTP/1.1 requires');
  });
}

/** A path at one of the listeners, and the methods that it has there. */
interface RoutedPath {
  url: string;
  constraints: RouteOptions['constraints'];
  methods: Set<string>;
}

/** Every path that is registered from now on. */
function collectRoutes(instance: FastifyInstance): ReadonlyMap<string, RoutedPath> {
  const routes = new Map<string, RoutedPath>();
  instance.addHook('onRoute', ({ url, method, constraints }) => {
    // The OPTIONS route of CORS, for paths that there are not.
    if (url === '*') return;
    const key = JSON.stringify([url, constraints ?? {}]);
    const route = routes.get(key) ?? { url, constraints, methods: new Set() };
    routes.set(key, route);
    for (const each of [method].flat()) route.methods.add(each);
  });
  return routes;
}

/**
 * Answers the methods that a path does not have: OPTIONS with those it has, any other with 405. Without this they
 * would be 404, which sends people looking for a typing error in the URL.
 */
function refuseOtherMethods(
  instance: FastifyInstance,
  { url, constraints, methods }: RoutedPath,
  site: ConsoleSite,
): void {
  const allowed = METHODS.filter((method) => methods.has(method));
  const allow = [...allowed, ...(allowed.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  const at = { url, ...(constraints && { constraints }) };
  instance.route({
    ...at,
    method: 'OPTIONS',
    handler: (_request, reply) => reply.status(204).header('allow', allow).send(),
  });
  instance.route({
    ...at,
    method: METHODS.filter((method) => !allowed.includes(method)),
    handler: async (request, reply) => {
      if (url === '/' && isBrowser(request)) {
        if (await site.isAt(request)) sendToConsole(reply);
        else sendWelcome(reply);
        return reply;
      }
      reply.header('allow', allow);
      sendPlainError(reply, 405, `${request.method} is not allowed here: use ${allowed.join(' or ')}`);
      return reply;
    },
  });
}
