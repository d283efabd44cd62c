import { type LinkPorts, waysTo } from './links.js';
import type { McpServerConfig } from './mcp-config.js';
import { McpConnection } from './mcp-connection.js';
import { ModernConnection } from './modern-connection.js';
import type { ServerEra } from './server-connection.js';

/**
 * The way to a server in the protocol that it speaks. Servers of earlier revisions are connected with their first request. Rejects with
 * an Error that `whyUnusable` explains.
 * @param known what it spoke before; undefined: that is not known
 * @param onError called with errors outside of calls
 */
export async function connectionTo(
  config: McpServerConfig,
  ports: LinkPorts,
  known: ServerEra | undefined,
  signal: AbortSignal,
  onError: (error: Error) => void = () => undefined,
): Promise<McpConnection | ModernConnection> {
  const { links, modern } = await waysTo(config, ports);
  const { connectTimeout, timeout } = config;
  if (modern && known !== 'legacy') {
    const connection = new ModernConnection({ ...modern, connectTimeout, timeout });
    if (await connection.discover(signal, known === 'modern')) return connection;
  }
  return new McpConnection({ links, connectTimeout, timeout, onError });
}
