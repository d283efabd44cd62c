/** The code of an agent cannot be kept. */
export class TooLargeToKeep extends Error {
  override readonly name = 'TooLargeToKeep';
}
