/** As many of the tenant's runs wait as may; the new one was refused. */
export class TooManyWaitingError extends Error {
  override readonly name = 'TooManyWaitingError';
}
