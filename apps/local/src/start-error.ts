/** Why `npm start` can't go on: one plain sentence with the remedy, shown as it is. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** Whatever was thrown, as text for a person. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
