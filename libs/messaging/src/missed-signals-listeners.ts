import { type ControlMessage, type Unsubscribe } from './messaging.js';
import { QuietLog } from './quiet-log.js';

/** Listeners that read again when signals may be lost. */
export class MissedSignalsListeners {
  private readonly listeners = new Set<() => void>();

  constructor(private readonly log: QuietLog) {}

  add(listener: () => void): Unsubscribe {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  }

  /** Another process reports that it could not publish. */
  readonly onControl = ({ type }: ControlMessage): void => {
    if (type === 'signals-lost') this.call();
  };

  /** Calls all listeners. A failure of one is logged. */
  call(): void {
    for (const listener of this.listeners) {
      try {
        listener();
      } catch (error) {
        this.log.warn('listener for missed signals failed', error);
      }
    }
  }
}
