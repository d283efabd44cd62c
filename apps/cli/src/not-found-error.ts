import { EXIT } from './exit.js';
import { OperatorError } from './operator-error.js';

/** There is no such thing. */
export class NotFoundError extends OperatorError {
  constructor(message: string) {
    super(message, { exitCode: EXIT.notFound });
  }
}
