import type { LoggerService } from '@nestjs/common';
import { Logger, fields } from './logger.js';

/** Lets Nest write into our log. Its notes on modules and routes are `debug`: they say nothing to an operator. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(textOfMessage(message), fields(rest));
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.logger.warn(textOfMessage(message), fields(rest));
  }

  error(message: unknown, ...rest: unknown[]): void {
    const err = message instanceof Error ? { err: message } : {};
    this.logger.error(textOfMessage(message), { ...err, ...fields(rest) });
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.error(message, ...rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(textOfMessage(message), fields(rest));
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(textOfMessage(message), fields(rest));
  }
}

function textOfMessage(message: unknown): string {
  if (message instanceof Error) return message.message;
  return typeof message === 'string' ? message : JSON.stringify(message);
}
