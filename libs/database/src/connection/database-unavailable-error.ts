/** Postgres cannot be reached, or the connection was lost; the same call may succeed a moment later. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}
