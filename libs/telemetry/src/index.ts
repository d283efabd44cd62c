export { countDatabaseTimeouts } from './database-timeouts.js';
export { createLogger, hideInLogs, type LogContext, Logger, NestLogger, traceIdsOf } from './logger.js';
export { counter, gauge, histogram, type MetricOf, Metrics } from './metrics.js';
export { startOrExplain, stopOnSignals, warnOfUnknownSettings } from './process-life.js';
export { Silence } from './silence.js';
export { startWatchdog } from './watchdog.js';
export { FailureLog, OutageLog } from './outage-log.js';
export { type Attributes, type Span, type Tracer, Tracing } from './tracing.js';
export { TelemetryModule } from './telemetry.module.js';
