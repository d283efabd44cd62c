import type { Server } from 'node:net';
import type { Logger } from '@baton/telemetry';

/** Open files reserved for everything but callers: Postgres, Redis, modules. */
const OWN_FILES = 128;
/** With fewer open files a process runs out of connections before it is busy. */
const FEW_FILES = 4_096;
const WARN_EVERY_MS = 10_000;

/** Maximum number of open files of this process; Infinity without a limit. Node has raised it to the hard limit. */
export function openFilesLimit(): number {
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft: number | 'unlimited' } };
  };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Infinity;
}

/**
 * Limits the connections, so that open files are left for everything else: each connection is one, and without any left
 * the server can't reach its database. It logs refused connections, since callers only see a closed connection.
 */
export function limitConnections(server: Server, openFiles: number, logger: Logger): void {
  if (openFiles === Infinity) return;
  const connections = Math.max(openFiles - OWN_FILES, 1);
  const remedy =
    'raise the limit of open files (ulimit -n, LimitNOFILE=, --ulimit nofile=) or add API processes';
  if (openFiles < FEW_FILES)
    logger.warn(`this process accepts at most ${connections} connections: ${remedy}`, { openFiles });
  server.maxConnections = connections;
  let warnedAt = -Infinity;
  let refused = 0;
  server.on('drop', () => {
    refused += 1;
    if (performance.now() - warnedAt < WARN_EVERY_MS) return;
    warnedAt = performance.now();
    logger.warn(`connections refused, ${connections} are open: ${remedy}`, { refused, openFiles });
  });
}
