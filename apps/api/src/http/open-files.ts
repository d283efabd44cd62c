import type { Environment } from '@baton/config';

/** Modules, logs, threads, Redis, and calls to issuers and receivers of pushes. */
const OTHER_FILES = 96;

/** Maximum number of open files of this process; Infinity without a limit. Node has raised it to the hard limit. */
export function openFilesLimit(): number {
  const { userLimits } = process.report.getReport() as {
    userLimits?: { open_files?: { soft: number | 'unlimited' } };
  };
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Infinity;
}

/** Open files that callers never get: those of Postgres, Redis and everything else that keeps the process alive. */
export function ownFiles({
  databasePoolSize,
  databaseReplicaUrl,
}: Pick<Environment, 'databasePoolSize' | 'databaseReplicaUrl'>): number {
  return OTHER_FILES + databasePoolSize * (databaseReplicaUrl === undefined ? 1 : 2);
}
