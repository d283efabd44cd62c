import { parseIntoClientConfig } from 'pg-connection-string';

/** Options of the driver. A URL has the password as it is. */
type ClientConfig = ReturnType<typeof parseIntoClientConfig> & { password?: string };

/**
 * What the SQL of Baton relies on. A server, a database or a role may have other defaults, so every session sets all of these
 * itself: at its start, or through a pooler in each transaction (docs/inside/adr/0052-settings-of-a-session.md).
 */
export const SESSION_SETTINGS = {
  // Times are written and read. Prisma's adapter writes them without an offset, in UTC.
  TimeZone: 'UTC',
  DateStyle: 'ISO, YMD',
  IntervalStyle: 'iso_8601',
  // Values are written and read.
  array_nulls: 'on',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  // The meaning of statements.
  search_path: 'public',
  row_security: 'on',
  transform_null_equals: 'off',
  quote_all_identifiers: 'off',
  exit_on_error: 'off',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  // Baton's own timeouts apply. Each kind of connection has others.
  statement_timeout: '0',
  lock_timeout: '0',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  // How statements are planned. JIT compilation takes longer than any statement. Postgres would compile, because plans without
  // sequential scans have a high estimate.
  jit: 'off',
  plan_cache_mode: 'auto',
} as const satisfies Record<string, string>;

/**
 * With these, Postgres detects that a client's host is gone, and ends the session. The defaults take two hours. A session over a
 * Unix socket, and some systems, show others, so `SESSION_SETTINGS` does not have them.
 */
const SERVER_SOCKET = { tcp_keepalives_idle: '10', tcp_keepalives_interval: '5', tcp_keepalives_count: '3' };

/**
 * The options of a connection to Postgres itself, whose session has `SESSION_SETTINGS` from its start. A pooler for transactions
 * refuses it: it has no sessions.
 * @param url as in DATABASE_URL. Its own `options` come first, so that these win.
 * @param more further settings, or other values
 */
export function sessionConfig(url: string, more: Readonly<Record<string, string>> = {}): ClientConfig {
  const config = connectionConfig(url);
  const settings = Object.entries({ ...SESSION_SETTINGS, ...SERVER_SOCKET, ...more }).map(
    ([name, value]) => `-c ${name}=${value.replaceAll(/[\\\s]/g, '\\$&')}`,
  );
  return { ...config, options: [config.options, ...settings].filter(Boolean).join(' ') };
}

/** The options of a connection to a pooler for transactions. */
export function connectionConfig(url: string): ClientConfig {
  const config = parsedConfig(url);
  const database = databaseNameOf(url);
  return database === undefined ? config : { ...config, database };
}

/** If a file of the URL, such as that of the CA, cannot be read, the driver gets the URL and reports it when it connects. */
function parsedConfig(url: string): ClientConfig {
  try {
    return parseIntoClientConfig(url) as ClientConfig;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    return { connectionString: url };
  }
}

/**
 * The name of the database in a URL. Names may have characters that URLs write as `%2F`, which the driver does not decode.
 * @returns undefined if the text names none, or is not a URL, such as a path of a socket
 */
function databaseNameOf(url: string): string | undefined {
  try {
    const { pathname, protocol } = new URL(url);
    return protocol === 'socket:' || pathname.length < 2 ? undefined : decodeURIComponent(pathname.slice(1));
  } catch {
    return undefined;
  }
}
