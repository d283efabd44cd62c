import 'reflect-metadata';
import { type Environment, loadEnvironment } from '@baton/config';
import { Database, TaskStore, awaitMigrations } from '@baton/database';
import { hideProcess } from '@baton/sandbox';
import { PlatformReadiness } from '@baton/tasks';
import {
  Logger,
  startOrExplain,
  startWatchdog,
  stopOnSignals,
  warnOfUnknownSettings,
} from '@baton/telemetry';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { ApiModule } from './api.module.js';
import { InFlightRequests } from './http/in-flight-requests.js';
import { SignInLink } from './console/sign-in-link.js';
import { createFastifyAdapter, listen, prepareApi, shutDown } from './server.js';

async function main(): Promise<void> {
  hideProcess();
  const environment = loadEnvironment();
  const app = await NestFactory.create<NestFastifyApplication>(
    ApiModule.use(environment),
    createFastifyAdapter(environment),
    // Silent until `prepareApi` gives it our log: `startOrExplain` prints earlier failures.
    { bodyParser: false, logger: false, abortOnError: false },
  );
  prepareApi(app);
  warnOfUnknownSettings(app.get(Logger));
  const readiness = app.get(PlatformReadiness, { strict: false });
  readiness.prepareWith(() => app.get(TaskStore, { strict: false }).prepare());
  app.get(SignInLink, { strict: false }).listenTo(process);
  const { url, managementUrl, grpcPort } = await listen(app).catch((error: unknown) => {
    throw explain(error, environment);
  });
  const logger = app.get(Logger);
  const inFlight = app.get(InFlightRequests, { strict: false });
  const { loopStallMs: limitMs, apiGraceMs } = environment;
  startWatchdog({ processName: 'api', limitMs, inHand: () => inFlight.count, logger });
  stopOnSignals(logger, apiGraceMs, () => shutDown(app));
  // It listens: `/readyz` lists what it waits for.
  process.send?.({ type: 'ready', url, managementUrl, grpcPort });
  const database = app.get(Database);
  await awaitMigrations(database, logger, { isAwayFine: false, isLeaving: () => inFlight.draining });
  if (inFlight.draining) return;
  await database.assertMasterKey();
  await readiness.untilReady();
  logger.info('api is ready', { url });
}

function explain(error: unknown, environment: Environment): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error;
  const { port: taken = environment.port } = error as { port?: number };
  const [name, port, host] =
    [
      ['MANAGEMENT_PORT', environment.managementPort, environment.managementHost] as const,
      ['GRPC_PORT', environment.grpcPort, environment.host] as const,
    ].find(([, each]) => each === taken) ?? (['PORT', environment.port, environment.host] as const);
  if (error.code === 'EADDRINUSE') {
    return new Error(
      `port ${String(port)} on ${host} is taken: set ${name} to a free one, or stop what uses it.`,
    );
  }
  if (error.code === 'EACCES') {
    return new Error(`port ${String(port)} is not allowed: set ${name} to 1024 or above.`);
  }
  return error;
}

startOrExplain('The API', main);
