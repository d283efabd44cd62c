import { Environment } from '@baton/config';
import { type DynamicModule, Global, Module, type Provider } from '@nestjs/common';
import { createLogger, Logger } from './logger.js';
import { Metrics } from './metrics.js';

const loggerOf = (processName?: string): Provider => ({
  provide: Logger,
  useFactory: (environment: Environment) => createLogger(environment, processName),
  inject: [Environment],
});

/** Provides Logger and Metrics to every module of a process. */
@Global()
@Module({ providers: [loggerOf(), Metrics], exports: [Logger, Metrics] })
export class TelemetryModule {
  /** @param processName written into every line of the log */
  static named(processName: string): DynamicModule {
    return { module: TelemetryModule, providers: [loggerOf(processName)] };
  }
}
