/** Something the operator can put right. The message is one plain sentence with the remedy, shown as it is. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}
