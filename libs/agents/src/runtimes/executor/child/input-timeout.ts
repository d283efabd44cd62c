import { StepError } from './step-error.js';

/** The code by which authors recognize the error. */
export const INPUT_TIMEOUT = 'INPUT_TIMEOUT';

/** A question was not answered within its `timeout`. Every attempt throws the same error. */
export class InputTimeout extends StepError {
  override readonly name = 'InputTimeout';
  readonly code = INPUT_TIMEOUT;
}
