/** Postgres can't be reached, or the connection was lost; the same call may succeed a moment later. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';
}

const SOCKET_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);

/** The driver reports a lost connection by its message alone. */
const CONNECTION_MESSAGE =
  /^(Connection terminated|Query read timeout|timeout expired|timeout exceeded when trying to connect|Client (has encountered a connection error|was closed))/;

/** SQLSTATEs of a server that is going away, coming up or full. */
const CONNECTION_STATE = /^(08|53|57P0[1-5])/;

/** Deadlock, serialization failure, lock or statement timeout; and Prisma's codes for a lost connection. */
const RETRYABLE_CODES = new Set([
  '40001',
  '40P01',
  '55P03',
  '57014',
  'P1001',
  'P1002',
  'P1008',
  'P1017',
  'P2024',
  'P2034',
]);

const codeOf = (error: Error): string => {
  const { code } = error as { code?: unknown };
  return typeof code === 'string' ? code : '';
};

const isConnectionError = (error: Error): boolean => {
  const code = codeOf(error);
  return SOCKET_CODES.has(code) || CONNECTION_STATE.test(code) || CONNECTION_MESSAGE.test(error.message);
};

/**
 * Whether the same call may succeed when it is made again: Postgres was away, the connection was cut, or two
 * transactions got into each other's way. After a cut connection nobody knows whether the transaction was
 * committed, so whatever is repeated must be safe to repeat.
 */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof DatabaseUnavailableError || isConnectionError(error)) return true;
  return RETRYABLE_CODES.has(codeOf(error)) || isTransient(error.cause);
}

/** A connection error as one plain sentence; any other error as it is. */
export function plainError(error: unknown): unknown {
  if (!(error instanceof Error) || !isConnectionError(error)) return error;
  const reason = error.message || codeOf(error);
  return new DatabaseUnavailableError(`Postgres is not available: ${reason}`, { cause: error });
}
