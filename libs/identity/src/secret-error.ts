/** A secret that cannot be encrypted or read. The message is for the operator and never holds a value. */
export class SecretError extends Error {
  override readonly name = 'SecretError';

  /** @param field the invalid one of name, value and origins, if any */
  constructor(
    message: string,
    readonly field?: string,
  ) {
    super(message);
  }
}
