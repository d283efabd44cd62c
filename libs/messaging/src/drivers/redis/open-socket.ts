import type { RedisOptions } from 'ioredis';
import { createConnection, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';

/** A server that does not answer must not hold up the end of the process. */
export const DISCONNECT_MS = 2_000;

/**
 * Opens a connection as ioredis' connectors do, but listens to every error of it. TLS has a second one if the connection is closed
 * during the handshake. ioredis listens to the first, and the second would end the process.
 */
export function openSocket(
  to: { host?: string; port?: number; family?: number },
  tls: RedisOptions['tls'],
  failed: (error: Error) => void,
): Socket {
  const socket = tls ? connectTls({ ...to, ...tls }) : createConnection({ port: 6379, ...to });
  return socket.on('error', failed);
}
