import { type LinkPorts, linksTo } from './links.js';
import type { RemoteMcpServer } from './mcp-config.js';
import { isTransient, wasNotStarted } from './failure-checks.js';
import { ModernConnection } from './modern-connection.js';

/** Cancels a task at a server. Never rejects. @returns false: the server did not get the cancel, so it can be tried again */
export async function cancelAtServer(
  config: RemoteMcpServer,
  ports: LinkPorts,
  taskId: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { modern } = await linksTo(config, ports);
    if (!modern) return true;
    const { connectTimeout, timeout } = config;
    await new ModernConnection({ ...modern, connectTimeout, timeout }).cancelTask(taskId, signal);
    return true;
  } catch (error) {
    // It has answered: the task is unknown, or the cancel is refused.
    return !(signal.aborted || isTransient(error) || wasNotStarted(error));
  }
}
