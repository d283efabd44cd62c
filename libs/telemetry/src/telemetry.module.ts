import { Environment } from '@baton/config';
import { type DynamicModule, Global, Module, type Provider } from '@nestjs/common';
import { createLogger, Logger } from './logger.js';
import { Metrics } from './metrics.js';
import { Tracing } from './tracing.js';
import { endpointsOf } from './otlp-endpoints.js';

const loggerOf = (processName: string): Provider => ({
  provide: Logger,
  useFactory: (environment: Environment) => createLogger(environment, processName),
  inject: [Environment],
});

/** @param processName `api` or `worker`: the service is `baton-<process>`, unless OTEL_SERVICE_NAME names another */
const tracingOf = (processName: string): Provider => ({
  provide: Tracing,
  useFactory: async (environment: Environment, logger: Logger, metrics: Metrics) => {
    const endpoints = endpointsOf(environment);
    if (Object.keys(endpoints).length === 0) return new Tracing();
    const { openTelemetry } = await import('./open-telemetry.js');
    const { tracer, close } = openTelemetry(endpoints, environment, { logger, metrics }, processName);
    return new Tracing(tracer, close);
  },
  inject: [Environment, Logger, Metrics],
});

/** Provides Logger, Metrics and Tracing to every module of a process. */
@Global()
@Module({ providers: [Metrics], exports: [Logger, Metrics, Tracing] })
export class TelemetryModule {
  /** @param processName written into every line of the log */
  static named(processName: string): DynamicModule {
    return { module: TelemetryModule, providers: [loggerOf(processName), tracingOf(processName)] };
  }
}
