import { untilStatementEnded } from '@baton/postgres';
import type { Logger } from '@baton/telemetry';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../connection/database.js';

/** A process that waits for a migration starts about a second after its end. */
const POLL_MS = 1_000;

/** The remedy for pending migrations: for a log line or a readiness check. */
export const pendingText = (pending: readonly string[]): string =>
  `run \`npm run migrate\`; ${pending.join(', ')} not applied`;

/**
 * Resolves when the database has every migration that this build needs. One line of the log says that the process waits, for
 * which migrations, and what to do. Keeps the process alive for as long as it waits.
 * @param options.isAwayFine true: resolve at once while Postgres cannot be asked; false: wait for it, too
 * @param options.isLeaving whether the process shuts down: a Postgres that is away is then its own closed pool
 */
export async function awaitMigrations(
  database: Pick<Database, 'pendingMigrations'>,
  logger: Pick<Logger, 'warn'>,
  options: { isAwayFine: boolean; isLeaving?: () => boolean },
): Promise<void> {
  const logged = new Set<string>();
  const sayOnce = (text: string, fields: Record<string, unknown>): void => {
    if (!logged.has(text)) logger.warn(text, fields);
    logged.add(text);
  };
  for (;;) {
    try {
      const pending = await database.pendingMigrations();
      if (pending.length === 0) return;
      sayOnce(`waiting for migrations: ${pendingText(pending)}`, { pending });
    } catch (error) {
      if (options.isAwayFine || options.isLeaving?.()) return;
      sayOnce('waiting for Postgres', { err: error });
      await untilStatementEnded(error);
    }
    // Not all processes of an installation at once.
    await delay(POLL_MS * (0.75 + Math.random() / 2));
  }
}
