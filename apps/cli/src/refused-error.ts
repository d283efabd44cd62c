import type { WrongField } from '@baton/contract';
import { EXIT } from './exit.js';
import { OperatorError } from './operator-error.js';

/** Exit codes of statuses. Every other refusal ends with 1. */
const EXIT_OF: Partial<Record<number, number>> = { 403: EXIT.notAllowed, 404: EXIT.notFound };

/** The server has refused the request. */
export class RefusedError extends OperatorError {
  constructor(
    origin: string,
    /** Status of HTTP. */
    readonly status: number,
    /** The message of the server, without a full stop. */
    readonly reason: string,
    /** The wrong fields of the request. */
    readonly fields: readonly WrongField[] = [],
  ) {
    const exitCode = EXIT_OF[status];
    super(`${origin} answers ${status}: ${reason}.`, { ...(exitCode !== undefined && { exitCode }) });
  }
}
