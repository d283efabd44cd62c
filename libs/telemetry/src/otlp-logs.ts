import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { BatchLogRecordProcessor, LoggerProvider, type LogRecordExporter } from '@opentelemetry/sdk-logs';
import { forwardLogs } from './logger.js';
import type { Sender } from './tracing.js';

/** The numbers of OpenTelemetry's data model of logs. */
const SEVERITIES: Readonly<Record<string, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
  fatal: 21,
};
/** A tenant writes some of the values. */
const MAX_TEXT = 32_768;
/** Values of fields: texts, numbers and objects of these. */
type LogAttributes = NonNullable<
  Parameters<ReturnType<LoggerProvider['getLogger']>['emit']>[0]['attributes']
>;

interface LogLine {
  level: string;
  time: string;
  msg: string;
  traceId?: string;
  spanId?: string;
  process?: string;
  pid?: number;
  err?: { type?: string; message?: string; stack?: string };
}

/** Sends every line of the log, as standard output has it: without secrets, and from LOG_LEVEL on. */
export function sendLogs(exporter: LogRecordExporter, resource: Resource): Sender {
  const provider = new LoggerProvider({
    resource,
    logRecordLimits: { attributeValueLengthLimit: MAX_TEXT },
    processors: [new BatchLogRecordProcessor({ exporter })],
  });
  const logger = provider.getLogger('baton');
  forwardLogs((text) => {
    const {
      level,
      time,
      msg,
      traceId,
      spanId,
      process: _,
      pid: __,
      err,
      ...fields
    } = JSON.parse(text) as LogLine;
    const isTraced = traceId !== undefined && spanId !== undefined;
    logger.emit({
      timestamp: new Date(time),
      severityNumber: SEVERITIES[level] ?? 0,
      severityText: level,
      body: msg,
      attributes: { ...(fields as LogAttributes), ...(err && exceptionOf(err)) },
      ...(isTraced && { context: trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: 0 }) }),
    });
  });
  return {
    close: () => {
      forwardLogs(undefined);
      return provider.shutdown();
    },
  };
}

/** As the semantic conventions of OpenTelemetry name it. */
const exceptionOf = ({
  type = 'Error',
  message = '',
  stack = '',
}: NonNullable<LogLine['err']>): LogAttributes => ({
  'exception.type': type,
  'exception.message': message,
  'exception.stacktrace': stack,
});
