import type { Unsubscribe } from './messaging.js';
import type { QuietLog } from './quiet-log.js';

/** Who wants to know that a lost connection is back. */
export class ReconnectListeners {
  private readonly listeners = new Set<() => void>();

  constructor(private readonly log: QuietLog) {}

  add(listener: () => void): Unsubscribe {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  call(): void {
    for (const listener of this.listeners) {
      try {
        listener();
      } catch (error) {
        this.log.warn('reconnect listener failed', error);
      }
    }
  }
}
