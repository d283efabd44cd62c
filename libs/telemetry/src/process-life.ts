import { messageOf } from './message-of.js';
import { EnvironmentError, unknownSettings } from '@baton/config';
import type { Logger } from './logger.js';

/** Maximum time of a shutdown after the grace time. */
const STOP_MARGIN_MS = 15_000;

/**
 * Stop once on SIGTERM, SIGINT, or the death of the parent. A second signal does not shorten the shutdown. Work that
 * waits for a missing service is abandoned: other workers take it over when the leases expire.
 * @param graceMs maximum time for current work to end
 */
export function stopOnSignals(logger: Logger, graceMs: number, stop: () => Promise<void>): void {
  let stopping = false;
  const stopOnce = (): void => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => {
      logger.error('the shutdown took too long and was aborted', { graceMs });
      process.exit(1);
    }, graceMs + STOP_MARGIN_MS).unref();
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        logger.error('shutdown failed', { err: error });
        process.exit(1);
      },
    );
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stopOnce);
  process.on('disconnect', stopOnce);
}

/** Warns about every name in the environment that resembles a setting but is none, such as a mistyped one. */
export function warnOfUnknownSettings(logger: Logger): void {
  for (const sentence of unknownSettings(process.env)) logger.warn(sentence);
}

/**
 * Start a process. If that fails, it prints the reason in one sentence and exits with 1.
 * @param name of what starts, such as `The API`
 */
export function startOrExplain(name: string, main: () => Promise<void>): void {
  main().catch((error: unknown) => {
    const reason = messageOf(error);
    process.stderr.write(
      error instanceof EnvironmentError ? `${reason}\n` : `${name} could not start: ${reason}\n`,
    );
    process.exit(1);
  });
}
