import { answerJson } from '@baton/a2a';
import { Environment, isManagementHost } from '@baton/config';
import { Logger, Metrics, NestLogger } from '@baton/telemetry';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import FindMyWay from 'find-my-way';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { UnauthenticatedLimit } from './access/unauthenticated-limit.js';
import { ConnectionLimit, managementConnections } from './http/connection-limit.js';
import { Connections } from './http/connections.js';
import { refusePath, sendPlainError } from './http/errors.js';
import { GrpcPort } from './grpc/grpc-port.js';
import { LingeringResponse } from './http/lingering-response.js';
import { PacedRequest } from './http/paced-request.js';
import { PublicUrl } from './http/public-url.js';
import { UnreadAnswers } from './http/unread-answers.js';
import {
  allowOrigins,
  logRequests,
  requestIdOf,
  securityHeaders,
  setAnswerHeaders,
} from './http/requests.js';
import { InFlightRequests } from './http/in-flight-requests.js';
import { ConsoleSite } from './console/console-site.js';
import { isBrowser, sendToConsole, sendWelcome } from './http/welcome.js';
import { httpJsonErrorFormatAt } from './http-json/http-json.module.js';
import { rpcErrorFormatAt } from './json-rpc/json-rpc.module.js';
import { MANAGEMENT, ManagementPort } from './management/management-port.js';
import { EventStreams } from './streams/event-streams.js';

/** After this time the server asks whether the peer of a silent connection is there; ten seconds later it closes it. */
const PROBE_MS = 30_000;
/** `BodyReader` refuses a slow body in the caller's protocol. Node's own limit comes this much later. */
const BODY_READER_MS = 5_000;
/** How long the last answers of a shutdown may take to reach their callers. */
const FLUSH_MS = 500;

const ROUTER_OPTIONS = { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 256 };
const METHODS: readonly string[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

/** Requests that came in on the management port. */
const managementRequests = new WeakSet<IncomingMessage>();

/** Whether a request came in on the management port. */
const isManagement = (request: IncomingMessage): boolean => managementRequests.has(request);

/** Answers the requests of the management port. */
const answerManagement =
  (fastify: FastifyInstance): RequestListener =>
  (request, response) => {
    managementRequests.add(request);
    fastify.routing(request, response);
  };

type Strategy = Parameters<FastifyInstance['addConstraintStrategy']>[0];
type RouteHandler = Parameters<ReturnType<Strategy['storage']>['set']>[1];

/**
 * The listener as a constraint of Fastify's router. A request on the management port matches only routes that are declared
 * for it, and a request on the public port never matches one of these, however its path is spelled.
 */
const LISTENER_CONSTRAINT: Strategy = {
  name: 'listener',
  storage: () => {
    const handlers = new Map<unknown, RouteHandler>();
    return {
      get: (listener) => handlers.get(listener) ?? null,
      set: (listener, handler) => void handlers.set(listener, handler),
    };
  },
  deriveConstraint: (request) => (isManagement(request) ? MANAGEMENT : undefined),
  mustMatchWhenDerived: true,
};

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
    // Without proxies, the header `X-Forwarded-For` of a caller is ignored.
    trustProxy: environment.trustedProxies.length > 0 && [...environment.trustedProxies],
    bodyLimit: environment.bodyLimitBytes,
    // Longer than the proxy in front keeps its side open, so that a kept connection is never closed under a request.
    keepAliveTimeout: environment.keepAliveSeconds * 1000,
    requestTimeout,
    connectionTimeout: 0,
    clientErrorHandler: connections.refuse,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      reply.headers(headers);
      refusePath(request, reply, error, httpJsonErrorFormatAt(request) ?? rpcErrorFormatAt(request));
    },
    http: {
      IncomingMessage: PacedRequest,
      ServerResponse: LingeringResponse,
      headersTimeout,
      requestTimeout,
      // We refuse it ourselves: Node would answer without a body.
      requireHostHeader: false,
      connectionsCheckingInterval: Math.min(headersTimeout / 4, 5_000),
      keepAlive: true,
      keepAliveInitialDelay: PROBE_MS,
    },
    routerOptions: ROUTER_OPTIONS,
  });
  const instance = adapter.getInstance<FastifyInstance>();
  instance.addConstraintStrategy(LISTENER_CONSTRAINT);
  setAnswerHeaders(instance, headers);
  connections.install(instance);
  instance.setReplySerializer((answer) => answerJson(answer));
  // Controllers read bodies themselves, after the guard: see BodyReader.
  instance.removeAllContentTypeParsers();
  instance.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined));
  // The lookup of that parser takes as long as all hooks.
  for (const method of METHODS) instance.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  return adapter;
}

/** Installs the hooks and the error handlers around the modules of an API application. Call it before `listen`. */
export function prepareApi(app: NestFastifyApplication): void {
  const instance: FastifyInstance = app.getHttpAdapter().getInstance();
  const logger = app.get(Logger);
  app.useLogger(new NestLogger(logger));
  allowOrigins(app, app.get(Environment).corsOrigins);
  const inFlight = app.get(InFlightRequests, { strict: false });
  logRequests(instance, logger, app.get(Metrics), inFlight);
  refuseWhileDraining(instance, inFlight);
  refuseWithoutHost(instance);
  refuseOtherHosts(instance, app.get(Environment).managementHosts);
  refuseBeyondLimit(instance, app.get(ConnectionLimit, { strict: false }));
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

/** Listens on the public, the gRPC and the management port of the environment. */
export async function listen(app: NestFastifyApplication): Promise<Listening> {
  const { host, port } = app.get(Environment);
  const fastify: FastifyInstance = app.getHttpAdapter().getInstance();
  const paths = collectPaths(fastify);
  await app.init();
  refuseOtherMethods(fastify, paths, app);
  app.get(ConnectionLimit, { strict: false }).limit(app.getHttpServer());
  app.get(UnreadAnswers, { strict: false }).limit(app.getHttpServer());
  await fastify.listen({ host, port });
  const [address] = fastify.addresses();
  const publicUrl = app.get(PublicUrl, { strict: false });
  const grpcPort = await app.get(GrpcPort, { strict: false }).open();
  if (typeof address === 'object') publicUrl.listening(address.port, grpcPort);
  const management = app.get(ManagementPort, { strict: false });
  const managementServer = createServer(
    { IncomingMessage: PacedRequest, ServerResponse: LingeringResponse },
    answerManagement(fastify),
  );
  managementConnections(app.get(Logger), app.get(Metrics)).limit(managementServer);
  const managementUrl = await management.open(managementServer);
  return { url: publicUrl.value, managementUrl, grpcPort };
}

/**
 * Stops without breaking calls off. Takes no new connections, ends streams so that their callers resume elsewhere, and waits for the calls
 * in flight. Those that still block after the grace period answer with what they have.
 */
export async function shutDown(app: NestFastifyApplication): Promise<void> {
  const inFlight = app.get(InFlightRequests, { strict: false });
  const logger = app.get(Logger);
  const server = app.getHttpServer();
  inFlight.draining = true;
  server.close();
  server.closeIdleConnections();
  app.get(GrpcPort, { strict: false }).drain();
  app.get(EventStreams, { strict: false }).closeAll();
  if (!(await inFlight.idle(app.get(Environment).apiGraceMs))) {
    inFlight.hurry();
    if (!(await inFlight.idle(FLUSH_MS))) logger.warn('the shutdown ended some calls early');
  }
  server.closeAllConnections();
  await app.close();
}

/** During a shutdown requests of callers still come in over open connections. They are sent elsewhere. */
function refuseWhileDraining(instance: FastifyInstance, inFlight: InFlightRequests): void {
  instance.addHook('onRequest', (request, reply, done) => {
    if (!inFlight.draining || isManagement(request.raw)) {
      done();
      return;
    }
    reply.headers({ connection: 'close', 'retry-after': '1' });
    sendPlainError(reply, 503, 'this server is shutting down: send the request again');
  });
}

/** A web page must not read the management port through the browser of an operator. */
function refuseOtherHosts(instance: FastifyInstance, names: readonly string[]): void {
  instance.addHook('onRequest', ({ raw }, reply, done) => {
    if (!isManagement(raw) || isManagementHost(raw.headers.host, names)) {
      done();
      return;
    }
    sendPlainError(
      reply,
      421,
      'this port does not answer for the name in Host: use its address, or add the name to MANAGEMENT_HOSTS',
    );
  });
}

/** Probes of health are answered even when all connections are open, or every API process would be restarted. */
const HEALTH_ROUTES: ReadonlySet<string | undefined> = new Set(['/healthz', '/readyz']);

function refuseBeyondLimit(instance: FastifyInstance, limit: ConnectionLimit): void {
  instance.addHook('onRequest', ({ raw, routeOptions }, reply, done) => {
    if (!limit.isSpare(raw.socket)) {
      done();
      return;
    }
    reply.header('connection', 'close');
    if (HEALTH_ROUTES.has(routeOptions.url)) {
      done();
      return;
    }
    reply.header('retry-after', '10');
    sendPlainError(
      reply,
      503,
      'this server has too many open connections: close some of yours, or try again later',
    );
  });
}

/** HTTP/1.1 requires one host (RFC 9112 §3.2). */
function refuseWithoutHost(instance: FastifyInstance): void {
  instance.addHook('onRequest', ({ raw }, reply, done) => {
    const hosts = hostsOf(raw.rawHeaders);
    if (hosts === 1 || (hosts === 0 && raw.httpVersion !== '1.1')) {
      done();
      return;
    }
    reply.header('connection', 'close');
    const what =
      hosts === 0 ? 'no Host header' : `${String(hosts)} Host headers, and a proxy may follow another one`;
    sendPlainError(reply, 400, `the request has ${what}: HTTP/1.1 requires one`);
  });
}

/** How many Host headers there are. Node.js shows the first one only. @param raw names and values in turns */
function hostsOf(raw: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < raw.length; i += 2) {
    const name = raw[i] ?? '';
    if (name.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** A path, and the methods that it has. */
interface RoutedPath {
  url: string;
  methods: Set<string>;
}

/** The paths of each listener. */
type RoutedPaths = ReadonlyMap<unknown, ReadonlyMap<string, RoutedPath>>;

const callNotFound = (_request: FastifyRequest, reply: FastifyReply): void => reply.callNotFound();

/** Every path that is registered from now on. */
function collectPaths(instance: FastifyInstance): RoutedPaths {
  const listeners = new Map<unknown, Map<string, RoutedPath>>();
  instance.addHook('onRoute', ({ url, method, constraints, handler }) => {
    // The OPTIONS route of CORS, for paths that there are not.
    if (url === '*' || handler === callNotFound) return;
    const listener = (constraints as { listener?: string } | undefined)?.listener;
    const paths = listeners.get(listener) ?? new Map<string, RoutedPath>();
    listeners.set(listener, paths);
    const path = paths.get(url) ?? { url, methods: new Set() };
    paths.set(url, path);
    for (const each of [method].flat()) path.methods.add(each);
  });
  return listeners;
}

/**
 * Answers the methods that a path does not have: OPTIONS with those it has, any other with 405. Without this they
 * would be 404, which sends people looking for a typing error in the URL. Looks for the path once there is such a request:
 * routes for all of these methods would take a fifth of the time of a start.
 */
function refuseOtherMethods(
  instance: FastifyInstance,
  paths: RoutedPaths,
  app: NestFastifyApplication,
): void {
  const site = app.get(ConsoleSite, { strict: false });
  const unauthenticated = app.get(UnauthenticatedLimit, { strict: false });
  const { path: base } = app.get(PublicUrl, { strict: false });
  const find = findPath(paths);
  instance.addHook('preHandler', (request, reply, done) => {
    const isRouted = !request.is404 && request.routeOptions.url !== '*';
    const path = isRouted || ![...METHODS, 'OPTIONS'].includes(request.method) ? undefined : find(request);
    if (path) refuseMethod(request, reply, path, { site, unauthenticated, base }).catch(done);
    else done();
  });
  // `tasks/:id` would take the other methods of `tasks/:id:cancel`.
  for (const { url, methods } of paths.get(undefined)?.values() ?? []) {
    if (!url.includes('::')) continue;
    const method = [...METHODS, 'OPTIONS'].filter((each) => !methods.has(each));
    instance.route({ url, method, handler: callNotFound });
  }
}

/** Finds the path of a request. */
function findPath(listeners: RoutedPaths): (request: FastifyRequest) => RoutedPath | undefined {
  const routers = new Map<unknown, ReturnType<typeof FindMyWay>>();
  return ({ raw, url }) => {
    const listener = LISTENER_CONSTRAINT.deriveConstraint(raw, undefined);
    const router = routers.get(listener) ?? FindMyWay(ROUTER_OPTIONS);
    if (!routers.has(listener)) {
      routers.set(listener, router);
      for (const path of listeners.get(listener)?.values() ?? [])
        router.on('GET', path.url, () => undefined, path);
    }
    return router.find('GET', url)?.store as RoutedPath | undefined;
  };
}

async function refuseMethod(
  request: FastifyRequest,
  reply: FastifyReply,
  { url, methods }: RoutedPath,
  { site, unauthenticated, base }: { site: ConsoleSite; unauthenticated: UnauthenticatedLimit; base: string },
): Promise<void> {
  const allowed = METHODS.filter((method) => methods.has(method));
  const allow = [...allowed, ...(allowed.includes('GET') ? ['HEAD'] : []), 'OPTIONS'].join(', ');
  if (request.method === 'OPTIONS') {
    reply.status(204).header('allow', allow).send();
  } else if (url === '/' && isBrowser(request)) {
    // The console asks Postgres whether the host is that of an agent.
    await unauthenticated.admit(request);
    if (await site.isAt(request)) sendToConsole(reply, base);
    else sendWelcome(reply);
  } else {
    reply.header('allow', allow);
    sendPlainError(reply, 405, `${request.method} is not allowed here: use ${allowed.join(' or ')}`);
  }
}
