import { type LinkPorts, linksTo } from './links.js';
import type { McpServerConfig } from './mcp-config.js';
import { McpConnection } from './mcp-connection.js';
import { McpFailure } from './mcp-failure.js';
import { isTransient } from './failure-checks.js';
import { ModernConnection } from './modern-connection.js';
import type { ServerEra } from './server-connection.js';

/**
 * A connection to a server in the revision that it supports. Servers of earlier revisions are mostly connected with their first
 * request. Rejects with an Error that `whyUnusable` explains.
 * @param known its revision at the last connection; undefined: unknown
 * @param onError called with errors outside of calls
 */
export async function connectionTo(
  config: McpServerConfig,
  ports: LinkPorts,
  known: ServerEra | undefined,
  signal: AbortSignal,
  onError: (error: Error) => void = () => undefined,
): Promise<McpConnection | ModernConnection> {
  const { links, modern } = await linksTo(config, ports);
  const { connectTimeout, timeout } = config;
  const older = () => new McpConnection({ links, connectTimeout, timeout, onError });
  if (!modern || known === 'legacy') return older();
  const newer = new ModernConnection({ ...modern, connectTimeout, timeout });
  const speaks = await newer.discover(signal, known === 'modern');
  if (speaks === 'modern') return newer;
  const connection = older();
  if (speaks === 'older') return connection;
  try {
    await connection.open(signal);
    return connection;
  } catch (error) {
    await connection.close();
    signal.throwIfAborted();
    // A server that was too busy to name its revisions has now refused the handshake of earlier revisions.
    if (isTransient(error) || (error instanceof McpFailure && error.kind === 'silent')) throw error;
    if ((await newer.discover(signal, true)) === 'modern') return newer;
    throw error;
  }
}
