import { OperatorError } from './operator-error.js';
import { EXIT } from './exit.js';

/** The arguments cannot be used. */
export class UsageError extends OperatorError {
  constructor(message: string) {
    super(message, { exitCode: EXIT.usage });
  }
}
