import 'reflect-metadata';
import { Environment } from '@baton/config';
import { ActiveRuns } from '@baton/tasks';
import {
  Logger,
  NestLogger,
  startOrExplain,
  startWatchdog,
  stopOnSignals,
  warnOfUnknownSettings,
} from '@baton/telemetry';
import { NestFactory } from '@nestjs/core';
import { WorkerModule } from './worker.module.js';

async function main(): Promise<void> {
  // Silent until our own log is there: what fails before is said in one sentence below.
  const app = await NestFactory.createApplicationContext(WorkerModule, {
    logger: false,
    abortOnError: false,
  });
  const logger = app.get(Logger);
  app.useLogger(new NestLogger(logger));
  warnOfUnknownSettings(logger);
  // An agent's forgotten promise must not end the runs of everybody else.
  process.on('unhandledRejection', (error) => {
    logger.error('a promise was rejected and nobody cared', { err: error });
  });
  const { workerGraceMs, loopStallMs } = app.get(Environment);
  const active = app.get(ActiveRuns, { strict: false });
  startWatchdog({ processName: 'worker', limitMs: loopStallMs, inHand: () => active.size, logger });
  stopOnSignals(logger, workerGraceMs, () => app.close());
  process.send?.({ type: 'ready' });
}

startOrExplain('The worker', main);
