/** The caller disconnected before its request was complete. It gets no answer. */
export class CallerLeft extends Error {
  override readonly name = 'CallerLeft';
}
