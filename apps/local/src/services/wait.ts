import { setTimeout as delay } from 'node:timers/promises';

/**
 * Asks `condition` again and again until it holds. Resolves to false if it does not within `timeoutMs`; rejects
 * as soon as `condition` does.
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number,
  everyMs = 20,
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await delay(everyMs);
  }
  return true;
}
