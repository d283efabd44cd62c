import type { LoggerService } from '@nestjs/common';
import { Logger, fields } from './logger.js';

/** Lets Nest write into our log. Its notes on modules and routes are `debug`: they say nothing to an operator. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(text(message), fields(rest));
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.logger.warn(text(message), fields(rest));
  }

  error(message: unknown, ...rest: unknown[]): void {
    const err = message instanceof Error ? { err: message } : {};
    this.logger.error(text(message), { ...err, ...fields(rest) });
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.error(message, ...rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(text(message), fields(rest));
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.logger.debug(text(message), fields(rest));
  }
}

function text(message: unknown): string {
  if (message instanceof Error) return message.message;
  return typeof message === 'string' ? message : JSON.stringify(message);
}
