/** The task tree already has the maximum number of child tasks. */
export class TooManyChildrenError extends Error {
  override readonly name = 'TooManyChildrenError';
}
