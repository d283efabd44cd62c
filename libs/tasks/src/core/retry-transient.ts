import { isTransient } from '@baton/database';
import { setTimeout as delay } from 'node:timers/promises';

const RETRY_MS = 250;

/**
 * Ask Postgres until it has answered: an outage while a run is being prepared must not fail somebody's task. Only
 * for reads, and for writes that may be done twice. Rejects with what does not pass by itself, or with the last error once `signal` is aborted.
 */
export async function retryTransient<T>(read: () => Promise<T>, signal: AbortSignal): Promise<T> {
  for (;;) {
    try {
      return await read();
    } catch (error) {
      if (signal.aborted || !isTransient(error)) throw error;
      await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}
