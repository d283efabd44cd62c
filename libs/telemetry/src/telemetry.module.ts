import { Environment } from '@baton/config';
import { type DynamicModule, Global, Module, type Provider } from '@nestjs/common';
import { createLogger, Logger } from './logger.js';
import { Metrics } from './metrics.js';
import { Tracing } from './tracing.js';

const loggerOf = (processName?: string): Provider => ({
  provide: Logger,
  useFactory: (environment: Environment) => createLogger(environment, processName),
  inject: [Environment],
});

const tracingOf = (processName?: string): Provider => ({
  provide: Tracing,
  useFactory: (environment: Environment, logger: Logger, metrics: Metrics) =>
    Tracing.open(environment, { logger, metrics }, processName),
  inject: [Environment, Logger, Metrics],
});

/** Provides Logger, Metrics and Tracing to every module of a process. */
@Global()
@Module({ providers: [loggerOf(), Metrics, tracingOf()], exports: [Logger, Metrics, Tracing] })
export class TelemetryModule {
  /** @param processName written into every line of the log */
  static named(processName: string): DynamicModule {
    return { module: TelemetryModule, providers: [loggerOf(processName), tracingOf(processName)] };
  }
}
