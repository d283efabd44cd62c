/** A step fails with it whose outcome is unknown and must not be guessed. */
export class UnknownOutcome extends Error {
  override readonly name = 'UnknownOutcome';

  constructor() {
    super('whether it was carried out is not known: its process ended while it ran');
  }
}
