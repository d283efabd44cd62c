/**
 * Postgres, its database, its role or a pooler is set up so that Baton cannot use it. The message is one plain sentence with the
 * remedy, shown as it is.
 */
export class DatabaseSetupError extends Error {
  override readonly name: string = 'DatabaseSetupError';
}
