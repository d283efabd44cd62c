/** As many tasks were made below the first one as may be. */
export class TooManyChildrenError extends Error {
  override readonly name = 'TooManyChildrenError';
}
