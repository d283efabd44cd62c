/** A slug or another unique name is taken. The message is for the operator. */
export class NameTakenError extends Error {
  override readonly name = 'NameTakenError';
}

/** For the error of an insert: throws `NameTakenError` if a unique name is taken. */
export const explainTaken =
  (taken: string) =>
  (error: unknown): never => {
    throw (error as { code?: string }).code === 'P2002' ? new NameTakenError(taken, { cause: error }) : error;
  };
