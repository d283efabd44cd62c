/** The tenant already has the maximum number of waiting runs. */
export class TooManyWaitingError extends Error {
  override readonly name = 'TooManyWaitingError';
}
