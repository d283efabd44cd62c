/** Thrown by a tool whose call may have been carried out, and must not be repeated without a person's word. */
export class UndecidedCall extends Error {
  override readonly name = 'UndecidedCall';
}
