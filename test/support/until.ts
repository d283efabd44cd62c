import { setTimeout as delay } from 'node:timers/promises';

/**
 * Resolves with the first value of `look` that is neither false nor undefined. It looks again after a pause: a loop without one takes the CPU
 * from other files. Rejects when `look` does.
 */
export async function until<T>(
  look: () => T | Promise<T>,
  pauseMs = 50,
): Promise<Exclude<T, false | undefined>> {
  for (;;) {
    const seen = await look();
    if (seen !== false && seen !== undefined) return seen as Exclude<T, false | undefined>;
    await delay(pauseMs);
  }
}

/** As `until`, of a server that is starting: its errors count as false. */
export const untilReady = (condition: () => Promise<boolean>): Promise<boolean> =>
  until(() => condition().catch(() => false));
