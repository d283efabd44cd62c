/** A slug or another unique name is taken. The message is for the operator. */
export class NameTakenError extends Error {
  override readonly name = 'NameTakenError';
}
