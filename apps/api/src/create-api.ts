import { Logger, Metrics, NestLogger } from '@baton/telemetry';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { RPC_PATHS } from './a2a/dispatch.controller.js';
import { CARD_PATHS } from './a2a/profile-cards.controller.js';
import { refuseOtherMethods } from './http/other-methods.js';
import { refuseWhileDraining } from './http/draining.js';
import { logRequests } from './http/request-log.js';
import { Traffic } from './http/traffic.js';
import { NATIVE_PATHS } from './native/native-paths.js';
import { SCHEMA_PATHS } from './native/schema.controller.js';

/** What every API application has around its modules; call it before `init` or `listen`. */
export function prepareApi(app: NestFastifyApplication): void {
  const instance: FastifyInstance = app.getHttpAdapter().getInstance();
  const logger = app.get(Logger);
  app.useLogger(new NestLogger(logger));
  const traffic = app.get(Traffic, { strict: false });
  logRequests(instance, logger, app.get(Metrics), traffic);
  refuseWhileDraining(instance, traffic);
  for (const { path } of RPC_PATHS) refuseOtherMethods(instance, path, ['POST']);
  for (const [path, ...methods] of NATIVE_PATHS) refuseOtherMethods(instance, path, methods);
  for (const path of [...CARD_PATHS, ...SCHEMA_PATHS, '/healthz', '/readyz', '/metrics']) {
    refuseOtherMethods(instance, path, ['GET']);
  }
}
