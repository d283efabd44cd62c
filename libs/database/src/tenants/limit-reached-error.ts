import type { LimitName } from '@baton/config';

/** A limit of the tenant does not allow it. Nothing was written. */
export class LimitReachedError extends Error {
  override readonly name = 'LimitReachedError';

  constructor(
    readonly limit: LimitName,
    readonly max: number,
  ) {
    super(`The limit ${limit} is ${max}`);
  }
}
