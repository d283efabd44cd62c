import { setTimeout as delay } from 'node:timers/promises';
import { isTransient } from './failure-checks.js';

/** A server that restarts or is busy answers one of three tries within half a second. A run holds its slot meanwhile. */
const TRIES = 3;
/** The pause before the second try is twice this long, and then doubles. */
const BACKOFF_MS = 100;

/**
 * Sends again after a failure that may pass, for what changes nothing at the server.
 * @throws the last failure, or the reason of the signal
 */
export async function retryFailure<T>(send: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await send();
    } catch (error) {
      signal.throwIfAborted();
      if (tries === TRIES || !isTransient(error)) throw error;
      await delay(BACKOFF_MS * 2 ** tries, undefined, { signal });
    }
  }
}
