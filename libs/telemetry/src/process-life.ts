import { EnvironmentError, type EnvironmentSource, unknownSettings } from '@baton/config';
import type { Logger } from './logger.js';

/** How long a shutdown may take beyond the grace time of what is in hand. */
const STOP_MARGIN_MS = 15_000;

/**
 * SIGTERM, SIGINT, or a parent that is gone: stop once; a second signal does not cut the first one short. What
 * waits for a service that never comes back is left to the leases of others.
 * @param graceMs how long what is in hand may take to end
 */
export function stopOnSignals(logger: Logger, graceMs: number, stop: () => Promise<void>): void {
  let stopping = false;
  const stopOnce = (): void => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => {
      logger.error('the shutdown took too long and was broken off', { graceMs });
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

/** A warning for every name in the environment that looks like a setting and is none, such as one that is mistyped. */
export function warnOfUnknownSettings(logger: Logger, source: EnvironmentSource = process.env): void {
  for (const sentence of unknownSettings(source)) logger.warn(sentence);
}

/**
 * Start a process. If that fails, it says why in one plain sentence and exits with 1.
 * @param name of what starts, such as `The API`
 */
export function startOrExplain(name: string, main: () => Promise<void>): void {
  main().catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(
      error instanceof EnvironmentError ? `${reason}\n` : `${name} could not start: ${reason}\n`,
    );
    process.exit(1);
  });
}
