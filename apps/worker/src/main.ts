import 'reflect-metadata';
import { Logger, NestLogger } from '@baton/telemetry';
import { NestFactory } from '@nestjs/core';
import { WorkerModule } from './worker.module.js';

async function main(): Promise<void> {
  const app = await NestFactory.createApplicationContext(WorkerModule, {
    bufferLogs: true,
    abortOnError: false,
  });
  app.useLogger(new NestLogger(app.get(Logger)));
  // An agent's forgotten promise must not end the runs of everybody else.
  process.on('unhandledRejection', (error) => {
    app.get(Logger).error('a promise was rejected and nobody cared', { err: error });
  });
  app.enableShutdownHooks(['SIGTERM', 'SIGINT']);
  // A parent that is gone can't stop us any more.
  process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
  process.send?.({ type: 'ready' });
}

main().catch((error: unknown) => {
  process.stderr.write(
    `The worker could not start: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  process.exit(1);
});
