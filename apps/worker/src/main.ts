import 'reflect-metadata';
import { EnvironmentError } from '@baton/config';
import { Logger, NestLogger } from '@baton/telemetry';
import type { INestApplicationContext } from '@nestjs/common';
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
  // An agent's forgotten promise must not end the runs of everybody else.
  process.on('unhandledRejection', (error) => {
    logger.error('a promise was rejected and nobody cared', { err: error });
  });
  stopOnSignals(app, logger);
  process.send?.({ type: 'ready' });
}

/** SIGTERM, SIGINT, or a parent that is gone: stop once; a second signal does not cut the first one short. */
function stopOnSignals(app: INestApplicationContext, logger: Logger): void {
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    app.close().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error('shutdown failed', { err: error });
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);
  process.on('disconnect', stop);
}

main().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    error instanceof EnvironmentError ? `${reason}\n` : `The worker could not start: ${reason}\n`,
  );
  process.exit(1);
});
