import { EXIT } from './exit.js';
import { OperatorError } from './operator-error.js';

/** The server cannot be reached, or not at the moment. */
export class UnreachableError extends OperatorError {
  constructor(message: string, options: ErrorOptions = {}) {
    super(message, { exitCode: EXIT.unreachable, ...options });
  }
}
