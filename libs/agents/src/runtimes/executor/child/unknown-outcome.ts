/** A step with an unknown outcome that must not be guessed fails with this. */
export class UnknownOutcome extends Error {
  override readonly name = 'UnknownOutcome';

  constructor() {
    super('whether it was carried out is not known: its process ended while it ran');
  }
}
