import { EXIT } from './exit.js';
import { OperatorError } from './operator-error.js';

/** Exit codes of statuses. Every other refusal ends with 1. */
const EXIT_OF: Partial<Record<number, number>> = { 403: EXIT.notAllowed, 404: EXIT.notFound };

/** A field of a request that cannot be used. */
export interface WrongField {
  /** Its path, such as `config.agents[0]`. */
  field: string;
  description: string;
}

/** The server has refused the request. */
export class RefusedError extends OperatorError {
  constructor(
    origin: string,
    /** Of HTTP. */
    readonly status: number,
    /** What the server says, without a full stop. */
    readonly reason: string,
    /** The wrong fields of the request. */
    readonly fields: readonly WrongField[] = [],
  ) {
    const exitCode = EXIT_OF[status];
    super(`${origin} answers ${status}: ${reason}.`, { ...(exitCode !== undefined && { exitCode }) });
  }
}
