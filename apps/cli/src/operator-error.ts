/** An error that the operator can correct. The message is one plain sentence with the remedy, shown as it is. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';

  constructor(
    message: string,
    /** `exitCode`: what the command ends with, if not 1. */
    readonly options: ErrorOptions & { exitCode?: number } = {},
  ) {
    super(message, options);
  }
}
