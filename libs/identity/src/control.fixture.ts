import type { ControlMessage } from '@baton/messaging';

/** Control messages within one process, at once. */
export class ControlInMemory {
  readonly listeners = new Set<(message: ControlMessage) => void>();
  isAway = false;

  publishControl(message: ControlMessage): Promise<void> {
    if (this.isAway) return Promise.reject(new Error('Redis does not answer'));
    for (const listener of this.listeners) listener(message);
    return Promise.resolve();
  }

  subscribeControl(listener: (message: ControlMessage) => void): Promise<() => void> {
    this.listeners.add(listener);
    return Promise.resolve(() => void this.listeners.delete(listener));
  }

  onSignalsMissed(): () => void {
    return () => undefined;
  }
}
