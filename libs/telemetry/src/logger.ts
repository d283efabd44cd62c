import { types } from 'node:util';
import type { Environment } from '@baton/config';
import { LRUCache } from 'lru-cache';
import pino from 'pino';

/** What a line is about; child loggers carry these ids into every line they write. */
export interface LogContext {
  requestId?: string;
  tenantId?: string;
  taskId?: string;
  runId?: string;
  [key: string]: unknown;
}

// Redaction has no "at any depth": two levels cover a field, and a field of headers or of an error's cause.
const SECRET_FIELDS = ['authorization', 'Authorization', 'token', 'secret', 'password', 'masterKey'];
const REDACTED = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]);

/** Values that no line of this process may show, and what removes each. A value that is not used any more is forgotten. */
const hidden = new LRUCache<string, (line: string) => string>({ max: 2_000, ttl: 25 * 3_600_000 });

/**
 * Removes a secret from all lines of this process for a day and an hour, because a turn may take a day.
 * @param redact removes the value, in all spellings that a line may have, from the JSON text of a line
 */
export function hideInLogs(value: string, redact: (line: string) => string): void {
  hidden.set(value, redact);
}

let forward: ((line: string) => void) | undefined;

/** Passes every line of this process, without its secrets, to a second receiver as well. Undefined: no longer. */
export function forwardLogs(to: ((line: string) => void) | undefined): void {
  forward = to;
}

function withoutHidden(line: string): string {
  let clean = line;
  for (const redact of hidden.values()) clean = redact(clean);
  return clean;
}

/** Structured log: one JSON object a line on standard output. Inject it by class. */
export class Logger {
  constructor(private readonly sink: pino.Logger) {}

  /** A logger whose every line carries these fields as well. */
  child(context: LogContext): Logger {
    return new Logger(this.sink.child(context));
  }

  /** @param fields what happened, as data; an Error goes into `err` */
  debug(message: string, fields: LogContext = {}): void {
    this.sink.debug(fields, message);
  }

  info(message: string, fields: LogContext = {}): void {
    this.sink.info(fields, message);
  }

  warn(message: string, fields: LogContext = {}): void {
    this.sink.warn(fields, message);
  }

  error(message: string, fields: LogContext = {}): void {
    this.sink.error(fields, message);
  }

  /** Whether lines of this level are written. */
  isEnabled(level: pino.Level): boolean {
    return this.sink.isLevelEnabled(level);
  }

  /** A logger without output, for tests and short-lived commands. */
  static silent(): Logger {
    return new Logger(pino({ level: 'silent' }));
  }
}

/** Errors go by their `name`: a bundle may have renamed their class. What else was thrown is written as it is. */
const ERROR = (thrown: unknown): unknown => {
  if (!(thrown instanceof Error || types.isNativeError(thrown))) return thrown;
  const error = pino.stdSerializers.err(thrown);
  error.type = thrown.name;
  return error;
};

/**
 * The root logger of a process.
 *
 * @param processName written into every line as `process`
 * @param destination where lines go; standard output by default
 */
export function createLogger(
  environment: Pick<Environment, 'logLevel'>,
  processName: string,
  destination: pino.DestinationStream = pino.destination(1),
): Logger {
  const options: pino.LoggerOptions = {
    level: environment.logLevel,
    base: { process: processName, pid: process.pid },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: ERROR },
    redact: { paths: REDACTED, censor: '[redacted]' },
  };
  const write = (line: string): void => {
    const clean = withoutHidden(line);
    destination.write(clean);
    forward?.(clean);
  };
  return new Logger(pino(options, { write }));
}

/** Nest passes [context], or [stack, context] with errors. */
export function fields(rest: unknown[]): { context?: string; stack?: string } {
  const strings = rest.filter((value) => typeof value === 'string');
  const context = strings.at(-1);
  const stack = strings.length > 1 ? strings[0] : undefined;
  return { ...(context ? { context } : {}), ...(stack ? { stack } : {}) };
}
