import 'reflect-metadata';
import { type Environment, EnvironmentError, loadEnvironment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { ApiModule } from './api.module.js';
import { prepareApi } from './create-api.js';
import { createFastifyAdapter } from './http/fastify-adapter.js';
import { listen, shutDown } from './serve.js';

async function main(): Promise<void> {
  const environment = loadEnvironment();
  const app = await NestFactory.create<NestFastifyApplication>(
    ApiModule.use(environment),
    createFastifyAdapter(environment),
    // Silent until `prepareApi` gives it our log: what fails before is said in one sentence below.
    { bodyParser: false, logger: false, abortOnError: false },
  );
  prepareApi(app);
  const url = await listen(app).catch((error: unknown) => {
    throw explain(error, environment);
  });
  stopOnSignals(app);
  app.get(Logger).info('api is ready', { url });
  process.send?.({ type: 'ready', url });
}

/** SIGTERM, SIGINT, or a parent that is gone: stop once; a second signal does not cut the first one short. */
function stopOnSignals(app: NestFastifyApplication): void {
  let stopping = false;
  const stop = (): void => {
    if (stopping) return;
    stopping = true;
    shutDown(app).then(
      () => process.exit(0),
      (error: unknown) => {
        app.get(Logger).error('shutdown failed', { err: error });
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop);
  process.on('disconnect', stop);
}

function explain(error: unknown, { host, port }: Environment): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE') {
    return new Error(
      `port ${String(port)} on ${host} is taken: set PORT to a free one, or stop what uses it.`,
    );
  }
  if (code === 'EACCES') return new Error(`port ${String(port)} is not allowed: set PORT to 1024 or above.`);
  return error;
}

main().catch((error: unknown) => {
  const reason = error instanceof Error ? error.message : String(error);
  process.stderr.write(
    error instanceof EnvironmentError ? `${reason}\n` : `The API could not start: ${reason}\n`,
  );
  process.exit(1);
});
