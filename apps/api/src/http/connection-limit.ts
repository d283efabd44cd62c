import type { Server } from 'node:http';
import type { Logger } from '@baton/telemetry';

/** Files that a process needs besides its callers' connections: Postgres, Redis, modules. */
const OWN_FILES = 128;
/** Below this an API is full before it is busy. */
const FEW_FILES = 4_096;
const WARN_EVERY_MS = 10_000;

/** How many files this process may have open; Infinity where there is no limit. Node has raised it to the hard limit. */
export function openFilesLimit(): number {
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft: number | 'unlimited' } };
  };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Infinity;
}

/**
 * Refuse connections while there are still files left for everything else: each connection is an open file, and a
 * server that has none left can't reach its database either. Says so in the log, since callers only see a
 * connection that is closed.
 */
export function limitConnections(server: Server, openFiles: number, logger: Logger): void {
  if (openFiles === Infinity) return;
  const connections = Math.max(openFiles - OWN_FILES, 1);
  const remedy =
    'raise the limit of open files (ulimit -n, LimitNOFILE=, --ulimit nofile=) or add API processes';
  if (openFiles < FEW_FILES)
    logger.warn(`only ${connections} callers can be connected: ${remedy}`, { openFiles });
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
