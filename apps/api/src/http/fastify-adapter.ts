import type { Environment } from '@baton/config';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { requestIdOf } from './request-id.js';

/** Longer than proxies keep their side open, so that a kept connection is never closed under a request. */
const KEEP_ALIVE_MS = 75_000;
/** A caller that dribbles its headers or its body holds a connection no longer than this. */
const HEADERS_TIMEOUT_MS = 20_000;
const REQUEST_TIMEOUT_MS = 120_000;

/** Fastify as this server needs it. Timeouts are about requests: an open stream has none. */
export function createFastifyAdapter(environment: Environment): FastifyAdapter {
  const adapter = new FastifyAdapter({
    logger: false,
    genReqId: requestIdOf,
    requestIdHeader: false,
    bodyLimit: environment.bodyLimitBytes,
    keepAliveTimeout: KEEP_ALIVE_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: 0,
    http: { headersTimeout: HEADERS_TIMEOUT_MS },
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 256 },
  });
  passBodiesThrough(adapter.getInstance<FastifyInstance>());
  return adapter;
}

/** Nobody parses a body before the token is checked: controllers read the raw request themselves. */
function passBodiesThrough(instance: FastifyInstance): void {
  instance.removeAllContentTypeParsers();
  instance.addContentTypeParser('*', (_request, _payload, done) => done(null, undefined));
}
