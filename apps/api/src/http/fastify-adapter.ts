import type { Environment } from '@baton/config';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { Connections } from './connections.js';
import { refusePath } from './error.filter.js';
import { requestIdOf } from './request-id.js';

/** Longer than proxies keep their side open, so that a kept connection is never closed under a request. */
const KEEP_ALIVE_MS = 75_000;
/** From when on a silent connection is asked whether its peer is still there; ten seconds later it is closed. */
const PROBE_MS = 30_000;
/** A body that comes too slowly is refused by its reader, in the caller's protocol; Node's own limit comes after. */
const BODY_READER_MS = 5_000;

/** Fastify as this server needs it. Timeouts are about requests: an open stream has none. */
export function createFastifyAdapter(environment: Environment): FastifyAdapter {
  const requestTimeout = environment.requestTimeoutMs + BODY_READER_MS;
  const headersTimeout = Math.min(environment.headersTimeoutMs, requestTimeout);
  const connections = new Connections();
  const adapter = new FastifyAdapter({
    logger: false,
    genReqId: requestIdOf,
    requestIdHeader: false,
    bodyLimit: environment.bodyLimitBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout,
    connectionTimeout: 0,
    clientErrorHandler: connections.refuse,
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) =>
      refusePath(request, reply, error.statusCode ?? 400),
    http: {
      headersTimeout,
      requestTimeout,
      connectionsCheckingInterval: Math.min(headersTimeout / 4, 5_000),
      keepAlive: true,
      keepAliveInitialDelay: PROBE_MS,
    },
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 256 },
  });
  const instance = adapter.getInstance<FastifyInstance>();
  connections.install(instance);
  passBodiesThrough(instance);
  return adapter;
}

/** Nobody parses a body before the token is checked: controllers read the raw request themselves. */
function passBodiesThrough(instance: FastifyInstance): void {
  instance.removeAllContentTypeParsers();
  instance.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined));
}
