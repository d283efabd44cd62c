import { type StepFailure } from '../step-protocol.js';

/** A step has failed for good: the same error in every attempt. Live, `cause` is what its function threw. */
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
