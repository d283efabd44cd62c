/** Thrown by a tool whose call may have been carried out, and must not be repeated without a person's word. */
export class OutcomeUnknown extends Error {
  override readonly name = 'OutcomeUnknown';
}
