import { StepError } from './step-error.js';

/** The code of the error, by which authors know it. */
export const INPUT_TIMEOUT = 'INPUT_TIMEOUT';

/** Nobody has answered a question within its `timeout`: the same error in every attempt. */
export class InputTimeout extends StepError {
  override readonly name = 'InputTimeout';
  readonly code = INPUT_TIMEOUT;
}
