import 'reflect-metadata';
import { Environment, loadEnvironment } from '@baton/config';
import { Database, RunStore, awaitMigrations } from '@baton/database';
import { hideProcess } from '@baton/sandbox';
import { ActiveRuns, PlatformReadiness } from '@baton/tasks';
import {
  createLogger,
  Logger,
  NestLogger,
  startOrExplain,
  startWatchdog,
  stopOnSignals,
  warnOfUnknownSettings,
} from '@baton/telemetry';
import { NestFactory } from '@nestjs/core';
import { HealthServer } from './health-server.js';
import { WorkerModule } from './worker.module.js';

async function main(): Promise<void> {
  hideProcess();
  await awaitSchema();
  // No log of Nest before the logger exists. `startOrExplain` prints an earlier failure.
  const app = await NestFactory.createApplicationContext(WorkerModule, {
    logger: false,
    abortOnError: false,
  });
  const logger = app.get(Logger);
  app.useLogger(new NestLogger(logger));
  warnOfUnknownSettings(logger);
  // An unhandled rejection in one agent must not end the runs of the others.
  process.on('unhandledRejection', (error) => {
    logger.error('unhandled promise rejection', { err: error });
  });
  const { workerGraceMs, loopStallMs, workerConcurrency } = app.get(Environment);
  const active = app.get(ActiveRuns, { strict: false });
  startWatchdog({ processName: 'worker', limitMs: loopStallMs, inHand: () => active.size, logger });
  stopOnSignals(logger, workerGraceMs, () => app.close());
  const readiness = app.get(PlatformReadiness, { strict: false });
  readiness.prepareWith(() => app.get(RunStore, { strict: false }).prepare());
  process.send?.({ type: 'ready', url: app.get(HealthServer, { strict: false }).url });
  await readiness.untilReady();
  logger.info('worker is ready', { slots: workerConcurrency });
}

/**
 * Waits until the migrations of this release were applied: on an older schema every claim and every sweep would fail. Does not wait for
 * a Postgres that is away, because claims and sweeps wait for it themselves.
 */
async function awaitSchema(): Promise<void> {
  const {
    databaseDirectUrl: url,
    databaseSystemKey: systemKey,
    allowRlsBypass,
    logLevel,
  } = loadEnvironment();
  const database = new Database({ url, systemKey, poolSize: 1, allowRlsBypass });
  try {
    await awaitMigrations(database, createLogger({ logLevel }, 'worker'), { isAwayFine: true });
  } finally {
    await database.close();
  }
}

startOrExplain('The worker', main);
