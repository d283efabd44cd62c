import { type StepFailure } from '../step-protocol.js';

/** A step has failed permanently: the same error in every attempt. `cause` has name, message, `code` and `data` of the thrown error. */
export class StepError extends Error {
  override readonly name: string = 'StepError';

  constructor(
    /** The name of the step. */
    readonly step: string,
    { name, message, ...extras }: StepFailure,
  ) {
    const cause = Object.assign(new Error(message), { name, ...extras });
    // Its stack would be that of this constructor.
    cause.stack = `${name}: ${message}`;
    super(`step "${step}" failed: ${name === 'Error' ? '' : `${name}: `}${message}`, { cause });
  }
}
