import { Environment } from '@baton/config';
import { Logger, Metrics } from '@baton/telemetry';
import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { BodyReader } from './body-reader.js';
import { BodyMemoryPool } from './body-memory-pool.js';
import { LoopTurns } from './loop-turns.js';
import { ConnectionLimit, publicConnections } from './connection-limit.js';
import { ErrorFilter } from './error-filter.js';
import { Failures } from './failures.js';
import { PublicUrl } from './public-url.js';
import { ReadMemoryPool } from './read-memory-pool.js';
import { UnreadAnswers } from './unread-answers.js';
import { UnstoredBodies } from './unstored-bodies.js';
import { ManagementPort } from '../management/management-port.js';
import { InFlightRequests } from './in-flight-requests.js';

const CONNECTIONS = {
  provide: ConnectionLimit,
  useFactory: (environment: Environment, logger: Logger, metrics: Metrics) =>
    publicConnections(environment, logger, metrics),
  inject: [Environment, Logger, Metrics],
};
const UNREAD = {
  provide: UnreadAnswers,
  useFactory: (environment: Environment, logger: Logger, metrics: Metrics) =>
    new UnreadAnswers(logger, metrics, environment),
  inject: [Environment, Logger, Metrics],
};
const SHARED = [
  Failures,
  BodyMemoryPool,
  BodyReader,
  LoopTurns,
  ManagementPort,
  PublicUrl,
  ReadMemoryPool,
  InFlightRequests,
  UnstoredBodies,
];

/** Shared by all endpoints: errors, bodies, requests in flight, memory for large tasks, the server's own URL. */
@Module({
  providers: [{ provide: APP_FILTER, useClass: ErrorFilter }, CONNECTIONS, UNREAD, ...SHARED],
  exports: [ConnectionLimit, UnreadAnswers, ...SHARED],
})
export class HttpModule {}
