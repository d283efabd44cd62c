import { setTimeout as delay } from 'node:timers/promises';
import { types } from 'node:util';
import { DatabaseUnavailableError } from './database-unavailable-error.js';

/** Codes of the socket, and Prisma's for a server that it cannot reach, that hung up, or that has no connection left. */
const CONNECTION_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'P1001',
  'P1002',
  'P1008',
  'P1011',
  'P1017',
  'P2037',
  'DatabaseNotReachable',
  'ConnectionClosed',
  'SocketTimeout',
  'TlsConnectionError',
  'TooManyConnections',
]);

/** The driver reports a lost connection by its message alone. */
const CONNECTION_MESSAGE =
  /^(Connection terminated|Query read timeout|timeout expired|timeout exceeded when trying to connect|Client (has encountered a connection error|was closed))/;

/** Node.js refuses the server's certificate. Runs wait until the operator has mended it, as in any outage. */
const CERTIFICATE_CODE =
  /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_|UNABLE_TO_(GET_ISSUER|VERIFY))/;

/** The message of Postgres for a full disk. It counts with any code of the error. */
const DISK_FULL_MESSAGE = /No space left on device|disk full/i;

/**
 * SQLSTATEs of a server that is going away, coming up or full, that is read-only (a standby until it is promoted), or that has ended
 * the session because this process paused in a transaction (25P03, 25P04).
 */
const CONNECTION_STATE = /^(08|53|57P0[1-5]|25006|25P0[34])/;

/** Deadlock, serialization failure, lock or statement timeout; and the like from Prisma. */
const RETRYABLE_CODES = new Set(['40001', '40P01', '55P03', '57014', 'P2024', 'P2028', 'P2034']);

/** Prisma's codes for an error of Postgres that it has no code of its own for, and for that of a raw query; Postgres' own lies inside. */
const OTHER_DATABASE_ERRORS: readonly unknown[] = ['P2039', 'P2010'];

/** The error of Prisma's driver: Postgres' own code, or at least the kind of error. */
interface DriverCause {
  originalCode?: unknown;
  kind?: unknown;
}

interface Coded {
  code?: unknown;
  cause?: unknown;
  meta?: { driverAdapterError?: { cause?: DriverCause } };
}

/** In a transaction the driver's error comes as it is; elsewhere it lies inside of Prisma's. */
function driverCauseOf(error: Error): DriverCause | undefined {
  const { code, meta, cause } = error as Coded;
  if (error.name === 'DriverAdapterError') return cause ?? undefined;
  return OTHER_DATABASE_ERRORS.includes(code) ? meta?.driverAdapterError?.cause : undefined;
}

const codeOf = (error: Error): string => {
  const { originalCode, kind } = driverCauseOf(error) ?? {};
  const code = originalCode ?? kind ?? (error as Coded).code;
  return typeof code === 'string' ? code : '';
};

/** Errors of the socket may come from another realm than this code's. */
const isError = (value: unknown): value is Error => value instanceof Error || types.isNativeError(value);

const isConnectionError = (error: Error): boolean => {
  const code = codeOf(error);
  return (
    CONNECTION_CODES.has(code) ||
    CONNECTION_STATE.test(code) ||
    CERTIFICATE_CODE.test(code) ||
    CONNECTION_MESSAGE.test(error.message)
  );
};

/**
 * Whether the same call may succeed when it is made again: Postgres was away, the connection was cut, or two
 * transactions got into each other's way. After a cut connection it is unknown whether the transaction was committed. So
 * repeat only work that is safe to repeat.
 */
export function isTransient(error: unknown): boolean {
  if (!isError(error)) return false;
  if (error instanceof DatabaseUnavailableError || isConnectionError(error)) return true;
  return RETRYABLE_CODES.has(codeOf(error)) || isTransient(error.cause);
}

/** Pauses between tries, in milliseconds: the first one, doubled each time up to the longest. */
export interface Backoff {
  firstMs: number;
  maxMs: number;
}

export interface RetryOptions {
  /** Ends the retries: the last error is thrown then. */
  signal?: AbortSignal;
  /** Unset: a quarter of a second each time. */
  backoff?: Backoff;
  /** Unset: no limit. */
  maxTries?: number;
}

const STEADY: Backoff = { firstMs: 250, maxMs: 250 };

/**
 * Retry until Postgres answers, because an outage must not fail a task. Only for reads and idempotent writes. Rejects
 * with an error that is not transient, or with the last error when the signal aborts or no try is left.
 * @param work gets the number of failed tries: above 0, an earlier try may have been committed and its answer lost
 */
export async function retryTransient<T>(
  work: (failedTries: number) => Promise<T>,
  { signal, backoff = STEADY, maxTries = Infinity }: RetryOptions = {},
): Promise<T> {
  let pauseMs = backoff.firstMs;
  for (let tries = 0; ; tries++) {
    try {
      return await work(tries);
    } catch (error) {
      if (signal?.aborted || tries + 1 >= maxTries || !isTransient(error)) throw error;
      await delay(pauseMs * spread(backoff), undefined, { signal }).catch(() => undefined);
      pauseMs = Math.min(2 * pauseMs, backoff.maxMs);
    }
  }
}

/** Growing pauses are random, so that thousands of readers do not try at the same time. */
const spread = ({ firstMs, maxMs }: Backoff): number => (maxMs > firstMs ? 0.5 + Math.random() / 2 : 1);

/** Deadlock and serialization failure: Postgres has rolled the transaction back at once. */
const COLLISION_CODES = new Set(['40001', '40P01']);

/**
 * Whether a transaction that failed is certainly rolled back, and Postgres is well: parts of it may be tried at once.
 * After a cut connection it is unknown whether it was committed. After a timeout parts of it would wait as long again.
 */
export const isRolledBack = (error: unknown): boolean =>
  !isTransient(error) || (isError(error) && COLLISION_CODES.has(codeOf(error)));

/** Whether the server, the database or the role has no connection left. */
export const isFull = (error: unknown): boolean =>
  isError(error) && (['53300', 'P2037', 'TooManyConnections'].includes(codeOf(error)) || isFull(error.cause));

/** Whether the server could not write because a disk of it is full. */
export const isDiskFull = (error: unknown): boolean =>
  isError(error) &&
  (codeOf(error) === '53100' || DISK_FULL_MESSAGE.test(error.message) || isDiskFull(error.cause));

/** Whether the server refused a write because it is a standby, or was made one. */
export const isReadOnly = (error: unknown): boolean => isError(error) && codeOf(error) === '25006';

/** Whether a statement waited longer for a lock than it may (`lock_timeout`). */
export const isLockTimeout = (error: unknown): boolean => isError(error) && codeOf(error) === '55P03';

const failedTenants = new WeakMap<Error, string>();

/** In a transaction of several tenants, a statement of this one has failed. */
export const noteFailedTenant = (error: Error, tenantId: string): void =>
  void failedTenants.set(error, tenantId);

/** The tenant whose statement has failed a transaction of several tenants, if the error of Postgres names it. */
export const failedTenantOf = (error: unknown): string | undefined =>
  isError(error) ? failedTenants.get(error) : undefined;

/** The text as Postgres can store it: a column of the type text has no U+0000. */
export const plainText = (text: string): string => text.replaceAll('\0', '\uFFFD');

/** SQLSTATEs of values that Postgres cannot store: data exceptions, and values that are too large. */
const UNSTORABLE_STATE = /^(22|54)/;
/** Postgres has no code of its own for a value over 1 GiB. */
const TOO_LARGE_MESSAGE = /^(invalid memory alloc request size|out of memory|string buffer exceeds maximum)/;

/**
 * Whether a value can never be stored: Postgres refuses it, or Node.js cannot make a string of it.
 */
export function isUnstorable(error: unknown): boolean {
  if (!isError(error) || isTransient(error)) return false;
  if (error instanceof RangeError || UNSTORABLE_STATE.test(codeOf(error))) return true;
  return TOO_LARGE_MESSAGE.test(error.message);
}

/** A connection error as one plain sentence; any other error as it is. */
export function plainError(error: unknown): unknown {
  if (!isError(error) || !isConnectionError(error)) return error;
  // Prisma puts the reason last.
  const message = error.message.trim().split('\n').at(-1) || codeOf(error);
  const reason = CERTIFICATE_CODE.test(codeOf(error))
    ? `its certificate is refused (${message}): name the file of its CA in the URL (sslrootcert), and a host of the certificate`
    : message;
  return new DatabaseUnavailableError(`Postgres is not available: ${reason}`, { cause: error });
}

/** For `catch`: rejects with the plain error. */
export function rethrowPlain(error: unknown): never {
  throw plainError(error);
}
