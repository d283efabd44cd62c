import type { Environment } from '@baton/config';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance, FastifyReply } from 'fastify';

const HSTS_SECONDS = 365 * 24 * 60 * 60;
/** How long a browser may keep the answer to a preflight, in seconds. Chrome keeps none for longer. */
const PREFLIGHT_SECONDS = 7_200;

/**
 * Headers that tell browsers to make nothing of an answer but data. They are not from @fastify/helmet: no hook sees a path
 * that the router can't read, or bytes that are no request, and those answers have them as well.
 */
export function securityHeaders({
  publicUrl,
}: Pick<Environment, 'publicUrl'>): Readonly<Record<string, string>> {
  return {
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    // Only where a proxy speaks TLS, and for this host alone: its subdomains are not ours.
    ...(publicUrl.startsWith('https:') && { 'strict-transport-security': `max-age=${String(HSTS_SECONDS)}` }),
  };
}

/**
 * Sets the headers of every answer, streams and errors included.
 *
 * Answers may hold a tenant's data, so nobody stores them; what may be stored says so itself, such as a card. Answers to
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

/** Adds to `Vary` what an answer depends on besides what it depends on already. */
export function vary(reply: FastifyReply, ...names: readonly string[]): void {
  const before = reply.getHeader('vary');
  reply.header('vary', [...(before === undefined ? [] : [String(before)]), ...names].join(', '));
}
