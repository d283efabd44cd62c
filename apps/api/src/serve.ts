import { Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { OpenStreams } from './a2a/open-streams.js';
import { limitConnections, openFilesLimit } from './http/connection-limit.js';
import { PublicUrl } from './http/public-url.js';
import { Traffic } from './http/traffic.js';

/** How long answers that were hurried may take to reach their callers. */
const FLUSH_MS = 500;

/** Listen as the environment says. Resolves with the URL under which callers reach the server. */
export async function listen(app: NestFastifyApplication): Promise<string> {
  const { host, port } = app.get(Environment);
  const fastify: FastifyInstance = app.getHttpAdapter().getInstance();
  await app.init();
  limitConnections(app.getHttpServer(), openFilesLimit(), app.get(Logger));
  await fastify.listen({ host, port });
  const [address] = fastify.addresses();
  const publicUrl = app.get(PublicUrl, { strict: false });
  if (typeof address === 'object') publicUrl.listening(address.port);
  return publicUrl.value;
}

/**
 * Leave without breaking anything off: take no new connections, end streams so that their callers resume
 * elsewhere, wait for the calls in hand, have those that still block answer with what they have, close.
 */
export async function shutDown(app: NestFastifyApplication): Promise<void> {
  const traffic = app.get(Traffic, { strict: false });
  const logger = app.get(Logger);
  const server = app.getHttpServer();
  traffic.draining = true;
  server.close();
  server.closeIdleConnections();
  app.get(OpenStreams, { strict: false }).closeAll();
  if (!(await traffic.idle(app.get(Environment).apiGraceMs))) {
    traffic.hurry();
    if (!(await traffic.idle(FLUSH_MS))) logger.warn('some calls were broken off by the shutdown');
  }
  server.closeAllConnections();
  await app.close();
}
