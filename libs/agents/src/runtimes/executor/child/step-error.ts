import { type StepFailure } from '../step-protocol.js';

/** A step has failed for good: the same error in every attempt. In the attempt that failed, `cause` is the thrown error. */
export class StepError extends Error {
  override readonly name: string = 'StepError';

  constructor(
    /** The name of the step. */
    readonly step: string,
    { name, message }: StepFailure,
    cause?: unknown,
  ) {
    super(
      `step "${step}" failed: ${name === 'Error' ? '' : `${name}: `}${message}`,
      cause === undefined ? {} : { cause },
    );
  }
}
