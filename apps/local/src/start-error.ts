/** Why `npm start` can't go on: one plain sentence with the remedy, shown as it is. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** Whatever was thrown, as text for a person. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The same promise, whose rejection tells the person at the terminal what to do about it. */
export const orTell = <T>(promise: Promise<T>, remedy: string): Promise<T> =>
  promise.catch((error: unknown) => {
    throw new StartError(`${reasonOf(error)}. ${remedy}`);
  });
